"""Simulation: runs the CronJob controller in virtual time, and returns each start's fate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.cli.schedule import clock_changes
from hedgerow.cli.schedule.fates import Forecast, Happens
from hedgerow.cli.schedule.ledger import Ledger
from hedgerow.cli.schedule.passes import Operator
from hedgerow.cli.schedule.world import World
from hedgerow.controllers.cronjob import starts
from hedgerow.controllers.cronjob.missed import LONGEST_LOOK_BACK, timetable

if TYPE_CHECKING:
    from datetime import datetime

    from hedgerow.cli.schedule.fates import Question
    from hedgerow_schemas.cronjob import CronJob


def forecast(resource: CronJob, question: Question) -> Forecast:
    """Return what happens to a CronJob's starts in a simulated cluster.

    The Jobs that its status lists as active exist at the beginning. Starts missed before are
    handled as the operator would handle them. Raises ScheduleError.
    """
    cj = _prepared(resource, question.since)
    schedule = timetable(cj.spec.schedule, cj.spec.time_zone, cj.metadata.creation_timestamp)
    world = _world(cj, question)
    asked = question.now or max(filter(None, (question.since, cj.status.last_schedule_time)))
    record = starts.record(cj, world.jobs(question.since), schedule, asked)
    last = record.last
    cj = cj.model_copy(update={"status": cj.status.model_copy(update={"last_schedule_time": last})})
    known = max(filter(None, (last, cj.metadata.creation_timestamp)))
    begin = max(question.since, known)
    missed = schedule.missed(max(known, begin - LONGEST_LOOK_BACK), begin)
    ledger = Ledger(cj, schedule, begin, question, missed.latest)
    _run(Operator(cj, world), world, ledger, begin)
    newest = next((fate for fate in ledger.fates() if fate.start == missed.latest), None)
    told = sorted(fate.start for fate in ledger.fates() if fate.start > begin)
    gaps = clock_changes.skipped(schedule, begin, told, ledger.horizon)
    fates = sorted((*ledger.fates(), *gaps), key=lambda fate: (fate.start, fate.wall))
    shown = fates[: question.limit]
    real = sum(fate.happens is not Happens.SKIPPED for fate in shown)
    there_are = schedule.missed(begin, question.until).count + min(missed.count, 1)
    field = "status.lastScheduleTime" if known == last else "metadata.creationTimestamp"
    return Forecast(
        fates=tuple(shown),
        more=there_are - real,
        begins=begin,
        since=field if begin > question.since else None,
        missed_before=missed.count,
        at_once=missed.latest if newest and newest.began == begin else None,
        refused=record.refused,
    )


def _prepared(resource: CronJob, since: datetime) -> CronJob:
    """Return the CronJob without its template, which does not matter, and with a creation time."""
    created = resource.metadata.creation_timestamp
    if created is None:
        created = min(since, resource.status.last_schedule_time or since)
    created = created.replace(microsecond=0)
    metadata = resource.metadata.model_copy(update={"creation_timestamp": created})
    spec = resource.spec.model_copy(update={"job_template": {}})
    return resource.model_copy(update={"metadata": metadata, "spec": spec})


def _world(cj: CronJob, question: Question) -> World:
    """Return a world with the Jobs that the status lists as active; each began at its start."""
    world = World(cj.metadata.namespace, question.duration)
    listed = cj.status.active or ()
    for reference in listed:
        name = reference.name or ""
        start = starts.named(cj.metadata.name, name)
        began = start if start and start <= question.until else question.since
        world.create(name, {}, began)
    # A status lists some Jobs and counts all; Jobs beyond the limit make no difference.
    unlisted = min(cj.status.active_count or 0, cj.spec.active_limit) - len(listed)
    for number in range(unlisted):
        world.create(f"{cj.metadata.name}-unlisted-{number + 1}", {}, question.since)
    return world


def _run(operator: Operator, world: World, ledger: Ledger, begin: datetime) -> None:
    """Make a pass whenever the operator would: when due, when a Job ends, after a downtime."""
    now: datetime | None = ledger.back(begin)
    while now is not None and not ledger.complete:
        ledger.look(now)
        passed = operator.settle(now)
        ledger.note(passed, now)
        ends = (end for _, end in ledger.down if end > now)
        due = min(filter(None, (passed.again, world.next_end(now), *ends)), default=None)
        now = ledger.back(due) if due else None
    ledger.close()
