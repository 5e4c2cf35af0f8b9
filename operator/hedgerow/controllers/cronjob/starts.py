"""Starts: the Job of a scheduled start, the start of a Job, and which start was made last."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from hedgerow.contract import Create
from hedgerow.controllers.cronjob.missed import LONGEST_LOOK_BACK
from hedgerow.objects import annotation
from hedgerow_schemas.base import View
from hedgerow_schemas.job import Job, instant

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hedgerow.controllers.cronjob.schedule import Schedule
    from hedgerow_schemas.base import Object
    from hedgerow_schemas.cronjob import CronJob

START_GUARD = "batch.tutorial.kubebuilder.io/start-guard"
SCHEDULED_AT = "batch.tutorial.kubebuilder.io/scheduled-at"
TOLERANCE: Final = timedelta(minutes=1)
"""How far the clocks of two replicas may differ: a record that is ahead by less is believed."""
_LAST_SECOND = int(datetime.max.replace(microsecond=0, tzinfo=UTC).timestamp())
_SECOND = timedelta(seconds=1)
_NEVER = datetime.min.replace(tzinfo=UTC)
_LOOK_BACK = (timedelta(hours=1), timedelta(days=40), LONGEST_LOOK_BACK)
"""Spans in which the newest start is looked for: to count those of years takes long."""


@dataclass(frozen=True, slots=True)
class Dated:
    """A Job, and the time that it is dated to."""

    job: Job
    start: datetime


@dataclass(frozen=True, slots=True)
class Record:
    """What is known of the starts that were made.

    `last` is the newest of them. `recorded` is what the status has of it; `refused` is what the
    status has instead if that lies ahead of now. `fresh` are the starts made since, as far as they
    are known, and `before` is the newest one made before these, or the creation. `ahead` are the
    Jobs that are dated ahead of now, which are no record either, and `news` names the Jobs that no
    status tells of yet.
    """

    last: datetime | None
    recorded: datetime | None
    refused: datetime | None
    fresh: frozenset[datetime]
    before: datetime | None
    ahead: tuple[Dated, ...]
    news: frozenset[str]


def name_of(owner: str, start: datetime) -> str:
    """Name the Job of a start after its second: to make it twice, two would need one name."""
    return f"{owner}-{int(start.timestamp())}"


def named(owner: str, name: str) -> datetime | None:
    """Return the start that a Job of that name was made for; None when the name tells of none."""
    prefix, _, digits = name.rpartition("-")
    if prefix == owner and digits.isascii() and digits.isdecimal():
        return datetime.fromtimestamp(min(int(digits[:12]), _LAST_SECOND), UTC)
    return None


def start_of(owner: str, job: Job) -> datetime | None:
    """Return the start that a Job was made for: by its name, which nobody can edit, if it tells."""
    start = named(owner, job.name)
    if start:
        return start
    noted = instant(job.text("metadata", "annotations", SCHEDULED_AT))
    try:
        return noted.astimezone(UTC).replace(microsecond=0) if noted else None
    except OverflowError:
        return None  # before the year 1 or after 9999, by its offset


def scheduled_at(job: Object) -> datetime | None:
    """Return the start that a Job says it was made for, by its annotation."""
    return instant(annotation(job, SCHEDULED_AT))


def is_ahead(time: datetime, now: datetime) -> bool:
    """Return whether a time on record lies further ahead of now than clocks may differ."""
    return time - now > TOLERANCE


def record(
    cj: CronJob,
    jobs: Iterable[Job],
    schedule: Schedule | None,
    now: datetime,
    made: Iterable[tuple[str, str]] = (),
) -> Record:
    """Return what is known of the starts made: by the status, and by the Jobs there are.

    `made` are kinds and names of what was made since and need not be there any more. Without a
    schedule, which is one that cannot be read, every Job that is dated counts.

    What lies ahead of now tells of no start: its clock was wrong. A Job counts once its time has
    come. A status is ahead after a pass under a wrong clock; what it said before that is lost, so
    every start until now is taken as made, for none may be made twice.
    """
    told, created = cj.status.last_schedule_time, cj.metadata.creation_timestamp
    refused = told if schedule and told and is_ahead(told, now) else None
    recorded = _caught_up(cj, schedule, now) if schedule and refused else told
    dated = [Dated(job, start) for job in jobs if (start := start_of(cj.metadata.name, job))]
    come = [each for each in dated if (recorded or _NEVER) < each.start <= now]
    newer = {each.start for each in come if _counts(each, schedule)}
    since = (named(cj.metadata.name, name) for _, name in made)
    newer |= {at for at in since if at and at > (recorded or _NEVER) and not is_ahead(at, now)}
    last = max(newer, default=recorded)
    # A status that somebody else holds does not move: there the Jobs tell what came before.
    fresh = newer & {last} if _is_held(cj) else newer
    first = min(fresh, default=_NEVER)
    known = (created, recorded, *(newer - fresh))
    news = [each for each in dated if each.start == last and last in newer]
    news += [each for each in dated if now < each.start <= now + TOLERANCE]
    return Record(
        last=last,
        recorded=None if refused else recorded,
        refused=refused,
        fresh=frozenset(fresh),
        before=max((time for time in known if time and time < first), default=None),
        ahead=tuple(each for each in dated if each.start > now),
        news=frozenset(each.job.name for each in news),
    )


def _counts(dated: Dated, schedule: Schedule | None) -> bool:
    """Return whether a Job took the place of the start that it is dated to.

    One that somebody made by hand, under a time at which the schedule has no start, did not.
    """
    return schedule is None or is_made_here(dated.job) or schedule.has(dated.start)


def _is_held(cj: CronJob) -> bool:
    """Return whether another field manager holds the record in the status."""
    return any(field.path == ".status.lastScheduleTime" for field in cj.status.contested)


def _caught_up(cj: CronJob, schedule: Schedule, now: datetime) -> datetime | None:
    """Return the newest start until now that is not to be made any more.

    The next start that the status announced is still to be made: where another field manager
    keeps the status from being corrected, this is what lets starts go on.
    """
    announced = cj.status.next_schedule_time
    until = min(now, announced - _SECOND) if announced else now
    created = cj.metadata.creation_timestamp or now
    for span in _LOOK_BACK:
        newest = schedule.missed(max(created, until - span), until).latest
        if newest:
            return newest
    return None


def is_made_here(job: Job) -> bool:
    """Return whether this controller made a Job, whatever the schedule was then."""
    entries = job.items("metadata", "managedFields")
    return any(View(entry).text("manager").startswith("hedgerow-") for entry in entries)


def creation(cj: CronJob, at: datetime) -> Create:
    """Create the Job of one start, once: what the template becomes later is for later Jobs."""
    template = cj.spec.job_template
    given: Object = template.get("metadata") or {}
    scheduled = {SCHEDULED_AT: f"{at:%Y-%m-%dT%H:%M:%SZ}"}
    metadata: Object = {
        "labels": given.get("labels") or {},
        "annotations": (given.get("annotations") or {}) | scheduled,
        **({"finalizers": [START_GUARD]} if cj.spec.start_guard else {}),
    }
    name = name_of(cj.metadata.name, at)
    return Create(Job, name, {"metadata": metadata, "spec": template.get("spec") or {}})
