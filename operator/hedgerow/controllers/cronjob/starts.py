"""Starts: the Job of a scheduled start, the start of a Job, and which start was made last."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from hedgerow import Create, Job, View, instant, is_manager_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hedgerow import Object
    from hedgerow.schedule import Schedule
    from hedgerow_schemas.cronjob import CronJob

SCHEDULED_AT = "batch.tutorial.kubebuilder.io/scheduled-at"
LONGEST_LOOK_BACK: Final = timedelta(days=5 * 366)
TOLERANCE: Final = timedelta(minutes=1)
"""How far the clocks of two replicas may differ; a record that is ahead by less is accepted."""
ANY: Final = datetime(2100, 1, 1, tzinfo=UTC)
"""A start of no schedule: its Job is never created, and has a name as long as any other."""
_LAST_SECOND = int(datetime.max.replace(microsecond=0, tzinfo=UTC).timestamp())
_SECOND = timedelta(seconds=1)
_NEVER = datetime.min.replace(tzinfo=UTC)
_LOOK_BACK = (timedelta(hours=1), timedelta(days=40), LONGEST_LOOK_BACK)
"""Spans in which to look for the newest start, shortest first: counting years takes long."""


@dataclass(frozen=True, slots=True)
class DatedJob:
    """A Job, and the scheduled start that it was made for."""

    job: Job
    start: datetime


@dataclass(frozen=True, slots=True)
class StartRecord:
    """The record of the starts that were made.

    `last` is the newest start. `refused` is the status's lastScheduleTime if that is ahead of now.
    `fresh` are the known starts made since it, and `before` is the newest one made before these, or
    the creation. `ahead` are the Jobs dated ahead of now, which do not count as starts.
    `unrecorded` names the Jobs that are not yet recorded in the status.
    """

    last: datetime | None
    refused: datetime | None
    fresh: frozenset[datetime]
    before: datetime | None
    ahead: tuple[DatedJob, ...]
    unrecorded: frozenset[str]


def name_of(owner: str, start: datetime) -> str:
    """Return the Job name of a start, with its second: a second Job for it cannot be created."""
    return f"{owner}-{int(start.timestamp())}"


def named(owner: str, name: str) -> datetime | None:
    """Return the start that a Job of this name was made for; None if the name has no start.

    A Job's annotation is for people, and decides nothing.
    """
    prefix, _, digits = name.rpartition("-")
    if prefix == owner and digits.isascii() and digits.isdecimal():
        return datetime.fromtimestamp(min(int(digits[:12]), _LAST_SECOND), UTC)
    return None


def scheduled_at(job: Object) -> datetime | None:
    """Return the start in a Job's annotation, or None."""
    return instant(View(job).text("metadata", "annotations", SCHEDULED_AT))


def is_ahead(time: datetime, now: datetime) -> bool:
    """Return whether a recorded time is further ahead of now than clocks may differ."""
    return time - now > TOLERANCE


def record(
    cj: CronJob,
    jobs: Iterable[Job],
    schedule: Schedule | None,
    now: datetime,
    made: Iterable[str] = (),
) -> StartRecord:
    """Return the record of starts from the status and the existing Jobs.

    `now` is the later time of our clock and the API server's: a start to which one of them has come
    may have been made.

    `made` are the names of Jobs that were created, not yet recorded in status; they may have been
    deleted already. If the schedule is None (it cannot be read), every dated Job counts.

    A time ahead of now is not a start: it comes from a wrong clock. A Job dated ahead counts once
    its time has come. If the status is ahead, a pass ran under a wrong clock and the earlier record
    is lost. Then all starts until now are taken as made, because none may be made twice.
    """
    stored, created = cj.status.last_schedule_time, cj.metadata.creation_timestamp
    refused = stored if schedule and stored and is_ahead(stored, now) else None
    recorded = _caught_up(cj, schedule, now) if schedule and refused else stored
    dated = [DatedJob(job, start) for job in jobs if (start := named(cj.metadata.name, job.name))]
    come = [dated_job for dated_job in dated if (recorded or _NEVER) < dated_job.start <= now]
    newer = {dated_job.start for dated_job in come if _counts(dated_job, schedule)}
    since = (named(cj.metadata.name, name) for name in made)
    newer |= {at for at in since if at and at > (recorded or _NEVER) and not is_ahead(at, now)}
    last = max(newer, default=recorded)
    # If somebody else holds the status field, we cannot update it: use the Jobs instead.
    fresh = newer & {last} if _is_held(cj) else newer
    first = min(fresh, default=_NEVER)
    known = (created, recorded, *(newer - fresh))
    unrecorded = [dated_job for dated_job in dated if dated_job.start == last and last in newer]
    unrecorded += [dated_job for dated_job in dated if now < dated_job.start <= now + TOLERANCE]
    return StartRecord(
        last=last,
        refused=refused,
        fresh=frozenset(fresh),
        before=max((time for time in known if time and time < first), default=None),
        ahead=tuple(dated_job for dated_job in dated if dated_job.start > now),
        unrecorded=frozenset(dated_job.job.name for dated_job in unrecorded),
    )


def _counts(dated: DatedJob, schedule: Schedule | None) -> bool:
    """Return whether a Job counts as the start that it is dated to.

    A Job that somebody made by hand, for a time at which the schedule has no start, does not.
    """
    return schedule is None or is_made_here(dated.job) or schedule.has(dated.start)


def _is_held(cj: CronJob) -> bool:
    """Return whether another field manager holds `status.lastScheduleTime`."""
    return any(field.path == ".status.lastScheduleTime" for field in cj.status.contested)


def _caught_up(cj: CronJob, schedule: Schedule, now: datetime) -> datetime | None:
    """Return the newest start until now that counts as made.

    The status's nextScheduleTime is still to be made. Otherwise no start would ever be made while
    another field manager keeps us from correcting lastScheduleTime.
    """
    announced = cj.status.next_schedule_time
    until = min(now, announced - _SECOND) if announced else now
    created = cj.metadata.creation_timestamp or now
    for span in _LOOK_BACK:
        newest = schedule.missed(max(created, until - span), until).latest
        if newest:
            return newest
    return None


RunningJobs = frozenset[tuple[str | None, str]]
"""Name and uid of the Jobs that a status lists as running."""


def listed(cj: CronJob) -> RunningJobs:
    """Return the Jobs that the status lists as running; the uid is empty where it has none."""
    return frozenset((job.name, job.uid or "") for job in cj.status.active or ())


def is_listed(known: RunningJobs, job: Job) -> bool:
    """Return whether the status lists this very Job; it does not list another of its name."""
    return not known.isdisjoint([(job.name, job.uid), (job.name, "")])


def is_foreign(known: RunningJobs, job: Job) -> bool:
    """Return whether somebody else made a Job, whatever its name, labels and owner reference say.

    Its managed fields do not name us, and the status does not list it. A Job of ours whose managed
    fields somebody has replaced is listed while it runs.
    """
    is_told = bool(job.items("metadata", "managedFields"))
    return is_told and not (is_made_here(job) or is_listed(known, job))


def is_made_here(job: Job) -> bool:
    """Return whether a CronJob controller made a Job, even if the schedule was different then.

    It is one of any instance and program.
    """
    entries = job.items("metadata", "managedFields")
    return any(is_manager_of("cronjob", View(entry).text("manager")) for entry in entries)


def creation(cj: CronJob, at: datetime) -> Create:
    """Return the Job of one start, to create once: later template changes are for later Jobs."""
    template = cj.spec.job_template
    given: Object = template.get("metadata") or {}
    scheduled = {SCHEDULED_AT: f"{at:%Y-%m-%dT%H:%M:%SZ}"}
    metadata: Object = {
        "labels": given.get("labels") or {},
        "annotations": (given.get("annotations") or {}) | scheduled,
    }
    name = name_of(cj.metadata.name, at)
    return Create(Job, name, {"metadata": metadata, "spec": template.get("spec") or {}})
