"""CronJob: one Job for every scheduled start, never two, and a history of ended Jobs."""

from __future__ import annotations

from heapq import nsmallest
from typing import TYPE_CHECKING

from hedgerow import (
    Controller,
    Desired,
    Job,
    Keep,
    Lag,
    Notice,
    Observed,
    condition,
    ready,
    stalled,
)
from hedgerow import schedule as cron
from hedgerow.controllers.cronjob import starts, validation
from hedgerow.controllers.cronjob.history import last_success, outdated
from hedgerow.controllers.cronjob.missed import (
    MOST_MISSED,
    MissedCount,
    MissedStarts,
    missed_count,
    missed_starts,
)
from hedgerow.controllers.cronjob.starts import LONGEST_LOOK_BACK
from hedgerow.schedule import schedule_problems, timetable
from hedgerow_schemas.cronjob import CronJob, CronJobStatus, JobReference

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime, timedelta

    from hedgerow import Condition, Create
    from hedgerow.controllers.cronjob.starts import StartRecord

MOST_LISTED = 20
"""The most Jobs that `status.active` lists; `status.activeCount` counts all."""
MOST_WAITING = 2
"""The most starts in a row that may wait for Jobs and be missed while the CronJob is Ready."""
FULL = "ActiveLimitReached"
WAITS = "JobAlreadyActive"


def compose(cj: CronJob, observed: Observed) -> Desired:
    """Return the Jobs to keep, all but outdated ones, and the new Job of a start that is due.

    A recorded start that is ahead of our clock counts if the API server's clock has come to it: our
    clock is behind, and no start is made before it has come to that one, too.
    """
    there, now, created = observed.all(Job), observed.now, cj.metadata.creation_timestamp
    latest = max(now, observed.cluster_time)
    listed = starts.listed(cj)
    foreign = {job.name for job in there if starts.is_foreign(listed, job)}
    jobs = [job for job in there if job.name not in foreign]
    lost = [*missing(cj, there), *(Keep(Job, name) for name in sorted(foreign))]
    running = [job for job in observed.strays if isinstance(job, Job) and not job.finished]
    strays = [job for job in running if starts.is_listed(listed, job)]
    try:
        schedule = timetable(cj.spec.schedule, cj.spec.time_zone, created)
    except cron.ScheduleError:
        record = starts.record(cj, jobs, None, latest, observed.created(Job))
        verdict = (*unreadable(cj), *ahead(record))
        return Desired(
            (*kept(cj, jobs, record), *lost),
            status(cj, (*jobs, *strays), record, verdict),
            requeue_after=wait(record, None, now),
        )
    record = starts.record(cj, jobs, schedule, latest, observed.created(Job))
    wrong = clock_behind(record, now)
    since = max((time for time in (record.last, created) if time), default=now)
    plan = missed_starts(schedule, since, cj.spec.starting_deadline_seconds, now)
    behind = missed_count(cj, schedule, record, plan, since=since, now=now)
    due = None if cj.spec.suspend else plan.due
    blocking = [job.name for job in (*jobs, *strays) if blocks_next_start(cj, job)]
    # With Replace, all go but those that this CronJob does not control any more.
    staying = (
        [job.name for job in strays if blocks_next_start(cj, job)]
        if cj.spec.concurrency_policy == "Replace"
        else blocking
    )
    is_held = is_stuck(plan) or bool(due)
    full = is_held and not blocking and is_full(cj, (*jobs, *strays))
    replaced = frozenset(blocking if due and cj.spec.concurrency_policy == "Replace" else ())
    children = kept(cj, [job for job in jobs if job.name not in replaced], record)
    made = [starts.creation(cj, due)] if due and not blocking and not full else []
    taken = [start.name for start in made if start.name in foreign]
    made = [] if taken else made
    verdict = (
        *(name_taken(taken) or health(cj, plan, wrong, blocking=staying, full=full)),
        *ahead(record),
        *astray(strays),
    )
    return Desired(
        (*children, *lost, *made),
        status(
            cj,
            (*jobs, *strays),
            record,
            verdict,
            plan=plan if starts_any(cj) else None,
            missed=behind.missed,
        ),
        (
            *progress(cj, jobs, record),
            *remarks(cj, record, plan, behind, blocking=staying, full=full),
            *((wrong,) if wrong and starts_any(cj) else ()),
        ),
        wait(record, plan.upcoming if starts_any(cj) else None, now),
    )


def starts_any(cj: CronJob) -> bool:
    """Return whether a CronJob may start anything: not if suspended, nor with a deadline of 0."""
    return not cj.spec.suspend and cj.spec.starting_deadline_seconds != 0


def is_stuck(plan: MissedStarts) -> bool:
    """Return whether several starts in a row were missed, up to now."""
    return plan.missed > MOST_WAITING


def wait(record: StartRecord, upcoming: datetime | None, now: datetime) -> timedelta | None:
    """Return the time until the next start, or until a Job is no longer dated ahead of now."""
    times = [upcoming, *(dated.start for dated in record.ahead)]
    soonest = min((time for time in times if time), default=None)
    return None if soonest is None else min(soonest - now, LONGEST_LOOK_BACK)


def blocks_next_start(cj: CronJob, job: Job) -> bool:
    """Return whether a Job blocks the next start: it must end, or with Replace be deleted first."""
    policy = cj.spec.concurrency_policy
    return not job.finished and policy != "Allow" and not (policy == "Replace" and job.going)


def is_full(cj: CronJob, jobs: Sequence[Job]) -> bool:
    """Return whether the number of Jobs that have not ended reaches the limit."""
    return sum(not job.finished for job in jobs) >= cj.spec.active_limit


def kept(cj: CronJob, jobs: Sequence[Job], record: StartRecord) -> Iterator[Keep]:
    """Yield the Jobs to keep: all but outdated ones.

    The Jobs of the newest start and success stay until the status has recorded them.
    """
    spec = cj.spec
    success = last_success(jobs, cj.status.last_successful_time)
    old = outdated(jobs, spec.successful_jobs_history_limit, spec.failed_jobs_history_limit)
    for job in jobs:
        is_recorded = job.name not in record.unrecorded
        is_new_success = (
            job.succeeded and job.completion_time == success != cj.status.last_successful_time
        )
        if not is_recorded or is_new_success or job.name not in old:
            yield Keep(Job, job.name)


def status(
    cj: CronJob,
    jobs: Sequence[Job],
    record: StartRecord,
    verdict: tuple[Condition, ...],
    *,
    plan: MissedStarts | None = None,
    missed: int = 0,
) -> CronJobStatus:
    """Return the status: running Jobs, the last start, and the next start unless suspended."""
    running = [job for job in jobs if not job.finished]
    # The oldest Jobs are listed, so that a new start does not change the list.
    listed = nsmallest(MOST_LISTED, running, key=lambda job: job.name)
    return CronJobStatus(
        active=tuple(map(JobReference.of, listed)) or None,
        active_count=len(running),
        last_schedule_time=record.last,
        last_successful_time=last_success(jobs, cj.status.last_successful_time),
        next_schedule_time=plan.upcoming if plan else None,
        missed=missed if plan else None,
        conditions=verdict,
    )


def unreadable(cj: CronJob) -> tuple[Condition, ...]:
    """Return `Stalled` and not `Ready`, with everything that the user has to fix."""
    zones: list[str] = []
    schedules: list[str] = []
    for fault in schedule_problems(cj.spec.schedule, cj.spec.time_zone):
        if fault.field == "timeZone" and fault.error.field == cron.ZONE_FIELD:
            zones.append(f'Unknown time zone "{cj.spec.time_zone}": {fault.error.reason}')
        else:
            schedules.append(f'Unparseable schedule "{cj.spec.schedule}": {fault.error}')
    reason = "UnparseableSchedule" if schedules else "UnknownTimeZone"
    return stalled(reason, "; ".join((*schedules, *zones)))


def clock_behind(record: StartRecord, now: datetime) -> Notice | None:
    """Return the notice that no start is made while our clock is behind the last one, or None."""
    if not record.last or not starts.is_ahead(record.last, now):
        return None
    note = (
        f"the operator's clock is behind: it has not come to the start of {shown(record.last)},"
        f" which was made, and the API server's clock has. No start is made until it has, too: set"
        f" the clock right"
    )
    return Notice("ClockBehind", note, "Warning")


def health(
    cj: CronJob,
    plan: MissedStarts,
    wrong: Notice | None,
    *,
    blocking: Sequence[str],
    full: bool,
) -> tuple[Condition, ...]:
    """Return `Ready`, whether starts are made as declared; and `Stalled` if there is never any.

    A start may wait for a Job. If several in a row were missed for one, it is stuck.
    """
    if cj.spec.suspend:
        return (ready(True, "Suspended", "no starts are made"),)
    if cj.spec.starting_deadline_seconds == 0:
        return stalled("NeverInTime", "a deadline of 0 seconds lets nothing start")
    held = (wrong.reason, wrong.note) if wrong else None
    if full and not held:
        held = FULL, limited(cj)
    elif blocking and is_stuck(plan) and not held:
        held = WAITS, blocked(cj, plan.missed, blocking)
    if held:
        return (ready(False, *held),)
    if not plan.upcoming:
        return stalled("NeverAgain", "the schedule has no start in five years")
    return (ready(True, "Scheduled", "starts are made as scheduled"),)


def missed_in_a_row(status: CronJobStatus) -> int:
    """Return how many starts in a row were missed if the CronJob is not ready; 0 if it is.

    If it is ready, starts were missed because no operator ran, and the next one is made.
    """
    holds = any(
        condition.type == "Ready" and condition.status == "False" for condition in status.conditions
    )
    return status.missed or 0 if holds else 0


def ahead(record: StartRecord) -> Iterator[Condition]:
    """Yield a condition if Jobs are dated ahead of now; they do not hold back any start.

    Jobs that are ahead by no more than clocks may differ do not count.
    """
    jobs = [dated for dated in record.ahead if dated.job.name not in record.unrecorded]
    if jobs:
        first = min(jobs, key=lambda dated: (dated.start, dated.job.name))
        more = f" (and {len(jobs) - 1} more)" if len(jobs) > 1 else ""
        message = (
            f"Job {first.job.name} is dated {shown(first.start)}, later than now: it records no"
            f" start and holds no start back{more}. Delete it, or set the clock right"
        )
        yield condition("DatedAhead", True, "JobAhead", message)


def missing(cj: CronJob, jobs: Sequence[Job]) -> Iterator[Keep]:
    """Yield the Jobs that the status lists as running and that are not observed.

    They may have lost our label, so that no watch shows them. No start is made beside them. Each is
    read by name: of a status that somebody else wrote, no more are read than we would list.
    """
    observed = {job.name for job in jobs}
    for reference in (cj.status.active or ())[:MOST_LISTED]:
        if reference.name and reference.name not in observed:
            yield Keep(Job, reference.name)


def astray(strays: Sequence[Job]) -> Iterator[Condition]:
    """Yield a condition if running Jobs have lost their owner reference."""
    if strays:
        message = (
            f"Job {strays[0].name} still runs, and this CronJob no longer controls it: hedgerow"
            f" leaves the Job alone, and counts it as running until it ends or is deleted"
        )
        yield condition("JobAstray", True, "OwnerChanged", message)


def name_taken(names: Sequence[str]) -> tuple[Condition, ...]:
    """Return `Stalled` and not `Ready` if a Job of somebody else has the name of a start."""
    if not names:
        return ()
    message = (
        f"Job {names[0]} exists, and hedgerow did not create it: the start of that time is not made"
        " as long as it is there; delete it"
    )
    return stalled("NameTaken", message)


def limited(cj: CronJob) -> str:
    """Return the message that the limit holds starts back; without times, so that it is stable."""
    limit = cj.spec.active_limit
    jobs = "1 Job has" if limit == 1 else f"{limit} Jobs have"
    return f"{jobs} not ended, as many as spec.activeLimit allows: starts wait until a Job ends"


def blocked(cj: CronJob, missed: int, blocking: Sequence[str]) -> str:
    """Return the message that starts are missed, since a Job does not end."""
    more = f" (and {len(blocking) - 1} more)" if len(blocking) > 1 else ""
    return (
        f"{missed} starts in a row were missed: Job {blocking[0]} has not ended{more}, and with"
        f" concurrencyPolicy {cj.spec.concurrency_policy} none is started beside it"
    )


def progress(cj: CronJob, jobs: Sequence[Job], record: StartRecord) -> Iterator[Notice]:
    """Yield notices of Jobs that started or ended and that the status does not record yet."""
    running = {reference.name for reference in cj.status.active or ()}
    for job in jobs:
        if job.name in record.unrecorded:
            yield Notice("Started", f"started {job.name}")
        if job.finished and job.name in running:
            ended = ("Completed", "has completed") if job.succeeded else ("Failed", "has failed")
            yield Notice(ended[0], f"{job.name} {ended[1]}")


def remarks(
    cj: CronJob,
    record: StartRecord,
    plan: MissedStarts,
    behind: MissedCount,
    *,
    blocking: Sequence[str],
    full: bool,
) -> Iterator[Notice]:
    """Yield notices of starts that were skipped or wait, and of an invalid lastScheduleTime."""
    if record.refused:
        note = (
            f"status.lastScheduleTime {shown(record.refused)} is later than now, so it records no"
            f" start. Starts go on from now; starts missed before are not made up for"
        )
        yield Notice("RecordAhead", note, "Warning")
    if not starts_any(cj):
        return
    if behind.too_many:
        note = (
            f"more than {MOST_MISSED} starts since {shown(behind.since)} were missed: hedgerow"
            f" makes up for the newest only. Set or decrease .spec.startingDeadlineSeconds, or"
            f" check the"
            " clock"
        )
        yield Notice("TooManyMissedTimes", note, "Warning")
    if plan.late:
        note = f"the start of {shown(plan.late)} was missed: its deadline has passed"
        yield Notice("MissedStart", note, "Warning")
    if full:
        yield Notice(FULL, limited(cj), "Warning")
    if plan.due and blocking:
        yield Notice(WAITS, f"the start of {shown(plan.due)} waits: {blocking[0]} has not ended")


def shown(time: datetime) -> str:
    """Return an instant as the API writes it."""
    return f"{time:%Y-%m-%dT%H:%M:%SZ}"


def templates(cj: CronJob) -> Iterator[Create]:
    """Yield the Job that the template makes: that of the next start, or of any if there is none."""
    yield starts.creation(cj, cj.status.next_schedule_time or starts.ANY)


CONTROLLER = Controller(
    "cronjob",
    CronJob,
    compose,
    owns=(Job,),
    child_names={Job: ("{}-*",)},
    validate=validation.errors,
    templates=templates,
    lag=Lag(
        "cronjob_start_lag",
        "Time between the scheduled start and the creation of its Job.",
        starts.scheduled_at,
        missed_in_a_row,
    ),
)
