"""CronJob: a Job for every scheduled start, never two, and a history of those that ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.core import conditions, cron, cronjobs, starts
from hedgerow.core.agenda import TOO_MANY, Agenda, agenda, timetable
from hedgerow.core.contract import Controller, Desired, Finalized, Keep, Notice, Observed
from hedgerow.core.history import BEGINNING, last_success, outdated
from hedgerow.core.starts import START_GUARD
from hedgerow_schemas.cronjob import CronJob, CronJobStatus, JobReference
from hedgerow_schemas.job import Job

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from hedgerow_schemas.base import Condition

STUCK = "TooManyMissedStarts"


def compose(cj: CronJob, observed: Observed) -> Desired:
    """Keep the Jobs there are, but for outdated ones, and create the one whose start is due."""
    jobs, now = observed.all(Job), observed.now
    last = starts.latest(cj.metadata.name, jobs, cj.status.last_schedule_time, observed.made)
    since = max((t for t in (last, cj.metadata.creation_timestamp) if t), default=now)
    try:
        schedule = timetable(cj.spec.schedule, cj.spec.time_zone, cj.metadata.creation_timestamp)
        plan = agenda(schedule, since, cj.spec.starting_deadline_seconds, now)
    except cron.ScheduleError as error:
        reason = f'Unparseable schedule "{cj.spec.schedule}": {error}'
        stalled = conditions.stalled("UnparseableSchedule", reason)
        return Desired(tuple(kept(cj, jobs, last)), status(cj, jobs, last, None, stalled))
    due = None if cj.spec.suspend else plan.due
    rivals = [job for job in jobs if due and hinders(cj, job)]
    replaced = rivals if cj.spec.concurrency_policy == "Replace" else []
    children = kept(cj, [job for job in jobs if job not in replaced], last)
    return Desired(
        (*children, *([starts.creation(cj, due)] if due and not rivals else ())),
        status(cj, jobs, last, plan, health(cj, plan)),
        tuple(remarks(cj, plan, rivals)),
        plan.upcoming - now if plan.upcoming and not cj.spec.suspend else None,
    )


def hinders(cj: CronJob, job: Job) -> bool:
    """Tell whether a Job has to end, or with Replace to be deleted, before another start."""
    policy = cj.spec.concurrency_policy
    return not job.finished and policy != "Allow" and not (policy == "Replace" and job.going)


def kept(cj: CronJob, jobs: Sequence[Job], last: datetime | None) -> Iterator[Keep | Finalized]:
    """Keep all but outdated Jobs; the newest start and success stay until the status tells them."""
    spec, recorded = cj.spec, cj.status.last_schedule_time or BEGINNING
    success = last_success(jobs, cj.status.last_successful_time)
    old = outdated(jobs, spec.successful_jobs_history_limit, spec.failed_jobs_history_limit)
    for job in jobs:
        made = starts.start_of(cj.metadata.name, job) or BEGINNING
        told = made <= recorded or made < (last or BEGINNING)
        news = job.succeeded and job.completion_time == success != cj.status.last_successful_time
        if told and START_GUARD in job.finalizers:
            yield Finalized(Job, job.name, START_GUARD)
        elif not told or news or job.name not in old:
            yield Keep(Job, job.name)


def status(
    cj: CronJob,
    jobs: Sequence[Job],
    last: datetime | None,
    plan: Agenda | None,
    verdict: tuple[Condition, ...],
) -> CronJobStatus:
    """Say what runs, what was started last, and what comes next."""
    running = sorted((job for job in jobs if not job.finished), key=lambda job: job.name)
    active = tuple(map(JobReference.of, running))
    plan = None if cj.spec.suspend else plan
    # A count that grows without end would be written again at every restart.
    frozen = cj.status.observed_generation == cj.metadata.generation and any(
        condition.reason == STUCK for condition in cj.status.conditions
    )
    return CronJobStatus(
        active=active or None,
        active_count=len(active),
        last_schedule_time=last,
        last_successful_time=last_success(jobs, cj.status.last_successful_time),
        next_schedule_time=plan.upcoming if plan and not plan.too_many else None,
        missed=cj.status.missed if plan and plan.too_many and frozen else plan and plan.missed,
        conditions=verdict,
    )


def health(cj: CronJob, plan: Agenda) -> tuple[Condition, ...]:
    """Conclude `Ready`: whether starts are made as declared."""
    if cj.spec.suspend:
        return (conditions.ready(True, "Suspended", "no starts are made"),)
    if plan.too_many:
        return conditions.stalled(STUCK, TOO_MANY)
    if not plan.upcoming:
        return (conditions.ready(True, "NeverAgain", "the schedule has no start in five years"),)
    return (conditions.ready(True, "Scheduled", "starts are made as scheduled"),)


def remarks(cj: CronJob, plan: Agenda, rivals: Sequence[Job]) -> Iterator[Notice]:
    """Tell of the start that was skipped, or that waits."""
    if plan.late and not cj.spec.suspend:
        note = f"the start of {plan.late:%Y-%m-%dT%H:%M:%SZ} was missed: its deadline has passed"
        yield Notice("MissedStart", note, "Warning")
    if plan.due and rivals and cj.spec.concurrency_policy == "Forbid":
        note = f"the start of {plan.due:%Y-%m-%dT%H:%M:%SZ} waits: {rivals[0].name} has not ended"
        yield Notice("JobAlreadyActive", note)


CONTROLLER = Controller(
    "cronjob",
    CronJob,
    compose,
    owns=(Job,),
    finalizers=frozenset({START_GUARD}),
    child_names={Job: ("{}-*",)},
    validate=cronjobs.errors,
    default=cronjobs.defaulted,
)
