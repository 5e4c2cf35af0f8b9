"""Simulation: runs the CronJob controller in virtual time, and returns each start's fate."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Final, cast

from hedgerow import schedule as cron
from hedgerow.contract import Create, Desired, Observed
from hedgerow.controllers.cronjob import starts
from hedgerow.controllers.cronjob.controller import CONTROLLER, FULL, WAITS
from hedgerow.controllers.cronjob.starts import LONGEST_LOOK_BACK
from hedgerow.plan.conditions import conclude, stamp
from hedgerow.schedule import timetable
from hedgerow.texts import numbered
from hedgerow_schemas.job import Job

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Sequence

    from hedgerow.schedule import Schedule
    from hedgerow_schemas.base import Object
    from hedgerow_schemas.cronjob import CronJob, CronJobStatus

Interval = tuple[datetime, datetime]
"""Start and end; the end is exclusive."""


class Happens(StrEnum):
    """What happens to a start."""

    RUNS = "runs"
    LATE = "runsLate"
    REPLACES = "replaces"
    FORBIDDEN = "forbidden"
    DEADLINE = "deadlinePassed"
    MISSED = "missed"
    LIMITED = "activeLimit"
    SUSPENDED = "suspended"
    SKIPPED = "skippedByClocks"


@dataclass(frozen=True, slots=True)
class StartFate:
    """What happens to one start.

    `start` is its instant; `wall` is its local time in the schedule's zone, as a datetime without
    zone. For skipped times, `wall` is the first one, and `start` serves only for sorting.
    `job` is the Job that is created, and `began` when. `repeated` is 1 or 2 if the clock shows this
    time twice, else 0. `skipped` are the times that the clock skips.
    """

    start: datetime
    wall: datetime
    happens: Happens
    why: str
    job: str | None = None
    began: datetime | None = None
    repeated: int = 0
    skipped: tuple[datetime, ...] = ()


@dataclass(frozen=True, slots=True)
class Question:
    """The question: the starts in (since, until]; all instants have a zone and whole seconds.

    Every Job takes `duration`. `down` are the times without an operator. `limit` is the most fates
    to report.
    """

    since: datetime
    until: datetime
    duration: timedelta
    down: tuple[Interval, ...] = ()
    limit: int = 100
    now: datetime | None = None
    """The current time, if the status is from a cluster: later times in it are not records."""


@dataclass(frozen=True, slots=True)
class StartForecast:
    """The fates of a CronJob's starts in order, and how many `more` starts there are.

    It `begins` later than asked if the field named by `since` covers the time before.
    `missed_before` is the number of earlier starts without a Job; `at_once` is the one of them that
    the operator makes immediately. `refused` is a lastScheduleTime in the status that is ahead of
    now.
    """

    fates: tuple[StartFate, ...]
    more: int
    begins: datetime
    since: str | None
    missed_before: int
    at_once: datetime | None = None
    refused: datetime | None = None


MOST: Final = 60
"""The most times of one clock change that are listed; there may be one for each minute."""

_NAMED: Final = 3


def local_time(schedule: Schedule, start: datetime) -> datetime:
    """Return the local time of an instant in the schedule's zone, as a datetime without zone."""
    return start.astimezone(schedule.zone).replace(tzinfo=None, fold=0)


def skipped(
    schedule: Schedule, begin: datetime, starts: Iterable[datetime], until: datetime
) -> Iterator[StartFate]:
    """Yield the skipped times between the starts after `begin`, which are in order.

    After the last start, skipped times are included until `until`.
    """
    last = begin
    for start in starts:
        yield from _left_out(schedule, last, start, start)
        last = start
    following = schedule.after(last)
    if following:
        yield from _left_out(schedule, last, following, until)


def _left_out(
    schedule: Schedule, last: datetime, start: datetime, until: datetime
) -> Iterator[StartFate]:
    times = schedule.skipped(last, start, MOST)
    met = tuple(time for time in times if _instant(schedule, time) <= until)
    if met:
        at = max(_instant(schedule, met[0]), last)
        yield StartFate(at, met[0], Happens.SKIPPED, _why(met), skipped=met)


def _why(times: tuple[datetime, ...]) -> str:
    days = {time.date() for time in times}
    shown = [f"{time:%H:%M}" if len(days) == 1 else f"{time}" for time in times[:_NAMED]]
    more = f" and {len(times) - _NAMED} more" if len(times) > _NAMED else ""
    return f"the clocks skip {', '.join(shown)}{more}"


def _instant(schedule: Schedule, time: datetime) -> datetime:
    """Return the instant of a local time; for one that does not exist, before the gap ends.

    It uses the offset after the change (PEP 495), so it is not later than any following start.
    """
    return time.replace(tzinfo=schedule.zone, fold=1).astimezone(UTC)


class SimulatedJobs:
    """The Jobs of one CronJob: each begins when it is created and succeeds after the duration."""

    def __init__(self, namespace: str, duration: timedelta) -> None:
        self._namespace = namespace
        self._duration = duration
        self._jobs: dict[str, Object] = {}
        self._ends: dict[str, datetime] = {}

    def __contains__(self, name: str) -> bool:
        """Return whether a Job of this name exists."""
        return name in self._jobs

    def create(self, name: str, declared: Object, began: datetime) -> None:
        """Create a Job that begins at an instant, with the declared metadata."""
        identity = {"name": name, "namespace": self._namespace, "uid": name}
        metadata: Object = {**declared.get("metadata", {}), **identity}
        self._jobs[name] = {"metadata": metadata, "status": {"startTime": began.isoformat()}}
        self._ends[name] = began + self._duration

    def delete(self, name: str) -> None:
        """Delete a Job."""
        del self._jobs[name], self._ends[name]

    def jobs(self, now: datetime) -> tuple[Job, ...]:
        """Return the Jobs at an instant; those whose duration is over have succeeded."""
        for name, end in self._ends.items():
            job = self._jobs[name]
            if end <= now and "conditions" not in job["status"]:
                succeeded = [{"type": "Complete", "status": "True"}]
                ended = {"completionTime": end.isoformat(), "conditions": succeeded}
                self._jobs[name] = {**job, "status": job["status"] | ended}
        return tuple(Job(job) for job in self._jobs.values())

    def running(self, now: datetime) -> tuple[str, ...]:
        """Return the names of Jobs that have not ended at an instant, in order of creation."""
        return tuple(name for name, end in self._ends.items() if end > now)

    def surplus(self, named: Container[str]) -> tuple[str, ...]:
        """Return the names of Jobs that are not in `named`."""
        return tuple(name for name in self._jobs if name not in named)

    def next_end(self, now: datetime) -> datetime | None:
        """Return when the next Job ends after an instant; None if none does."""
        return min((end for end in self._ends.values() if end > now), default=None)


@dataclass(frozen=True, slots=True)
class SimulatedPass:
    """What one pass did, and what it left waiting.

    `created` is the new Job, `beside` are Jobs that keep running, and `replaced` those that were
    deleted while running. `waits_for` is the running Job that forbids the start that is due.
    `limited`: no more Jobs may run. `suspended`: no starts are made. `again` is the time of the
    next pass, if nothing happens before.
    """

    created: str | None
    beside: tuple[str, ...]
    replaced: tuple[str, ...]
    waits_for: str | None
    limited: bool
    suspended: bool
    again: datetime | None


class SimulatedController:
    """The CronJob controller at work on one resource, in a world that nobody else changes."""

    def __init__(self, resource: CronJob, world: SimulatedJobs) -> None:
        self.resource = resource
        self._world = world

    def settle(self, now: datetime) -> SimulatedPass:
        """Compose and write, step by step, until nothing is left to write; return the pass."""
        before, made = self._world.running(now), None
        while True:
            desired = CONTROLLER.compose(self.resource, Observed(now, self._world.jobs(now)))
            new = next(self._missing(desired), None)
            if new:
                self._world.create(new.name, new.fields, now)
                made = new.name
            elif not (self._prune(desired) or self._tell(desired, now)):
                return self._concluded(desired, before, made, now)

    def _missing(self, desired: Desired) -> Iterator[Create]:
        for child in desired.children:
            if isinstance(child, Create) and child.name not in self._world:
                yield child

    def _prune(self, desired: Desired) -> bool:
        surplus = self._world.surplus({child.name for child in desired.children})
        for name in surplus:
            self._world.delete(name)
        return bool(surplus)

    def _tell(self, desired: Desired, now: datetime) -> bool:
        """Set the status, stamped as by the runtime; return whether it changed."""
        old, generation = self.resource.status, self.resource.metadata.generation
        composed = cast("CronJobStatus", desired.status)
        concluded = conclude(composed.conditions, (), ())
        stamped = stamp(concluded, old.conditions, generation, now)
        told = {"observed_generation": generation, "conditions": stamped}
        status = composed.model_copy(update=told)
        self.resource = self.resource.model_copy(update={"status": status})
        return status != old

    def _concluded(
        self, desired: Desired, before: tuple[str, ...], made: str | None, now: datetime
    ) -> SimulatedPass:
        running = self._world.running(now)
        told = {notice.reason for notice in desired.events}
        return SimulatedPass(
            created=made,
            beside=tuple(name for name in before if name in running),
            replaced=tuple(name for name in before if name not in running),
            waits_for=running[0] if WAITS in told else None,
            limited=FULL in told,
            suspended=self.resource.spec.suspend,
            again=now + desired.requeue_after if desired.requeue_after else None,
        )


@dataclass(frozen=True, slots=True)
class Hindrance:
    """Why a start has not been made yet: `lasts` is the text while it lasts, `over` afterwards.

    `skips` says why a start is never made if a newer one comes first.
    """

    happens: Happens = Happens.MISSED
    lasts: str = ""
    over: str = ""
    skips: str = ""


NONE = Hindrance()
ONLY_NEWEST = "only the newest missed start is made up for"
BEFORE = Hindrance(
    lasts="it was missed before",
    over="it was missed before",
    skips=f"it was missed before, and {ONLY_NEWEST}",
)
DOWN = Hindrance(
    lasts="the operator was down",
    over="the operator is back",
    skips=f"the operator was down, and {ONLY_NEWEST}",
)
SUSPENDED = "spec.suspend is true"
FINAL = {Happens.SUSPENDED, Happens.DEADLINE}
"""The fates that are final even without a newer start."""


def blocked_by(job: str) -> Hindrance:
    """Return the hindrance of a running Job."""
    return Hindrance(
        Happens.FORBIDDEN,
        lasts=f"{job} still ran",
        over=f"{job} has ended",
        skips=f"{job} still ran when the next start came",
    )


def limited_to(jobs: int) -> Hindrance:
    """Return the hindrance of so many running Jobs, if no more may run."""
    limit = f"spec.activeLimit is {jobs}"
    still = f"{numbered(jobs, 'Job')} still ran"
    return Hindrance(
        Happens.LIMITED,
        lasts=f"{still}, and {limit}",
        over=f"fewer than {jobs} run, and {limit}" if jobs > 1 else f"none runs, and {limit}",
        skips=f"{still} when the next start came, and {limit}",
    )


class StartTally:
    """The reported starts of one CronJob; `missed` is the newest one missed before."""

    def __init__(
        self,
        cj: CronJob,
        schedule: cron.Schedule,
        begin: datetime,
        question: Question,
        missed: datetime | None,
    ) -> None:
        self._name = cj.metadata.name
        self._deadline = cj.spec.starting_deadline_seconds
        self._limited = limited_to(cj.spec.active_limit)
        self._schedule = schedule
        self._question = question
        self._next = schedule.after(begin)
        self._open: dict[datetime, Hindrance] = {}
        self._fates: dict[datetime, StartFate] = {}
        self._suspended = False
        self.down = _merged(question.down)
        if missed and begin <= question.until:
            self._open[missed] = NONE if missed == begin else BEFORE

    @property
    def complete(self) -> bool:
        """Whether the fate of every start to report is known."""
        return not self._open and not self._listed

    @property
    def horizon(self) -> datetime:
        """The end of the reported time."""
        return max(self._fates) if self._full else self._question.until

    def fates(self) -> Iterable[StartFate]:
        """Return the fates of the starts."""
        return self._fates.values()

    def back(self, instant: datetime) -> datetime:
        """Return the first instant from this one on at which an operator runs."""
        return next((end for begin, end in self.down if begin <= instant < end), instant)

    def look(self, now: datetime) -> None:
        """Record the starts that have come until now."""
        while self._listed and self._next and self._next <= now:
            away = self.back(self._next) > self._next
            self._open[self._next] = DOWN if away else NONE
            self._next = self._schedule.after(self._next)

    def note(self, passed: SimulatedPass, now: datetime) -> None:
        """Record what one pass of the operator does about the starts that have come."""
        self._suspended = passed.suspended
        made = starts.named(self._name, passed.created or "")
        if made and made in self._open:
            self._close(made, self._made(made, passed, now))
        overtaken = self._next is not None and self._next <= now
        newest = max(self._open, default=None)
        for start, hindrance in tuple(self._open.items()):
            happens, why = self._unmade(start, hindrance, now)
            if happens in FINAL or start != newest or overtaken:
                self._close(start, self._fate(start, happens, why))
            elif passed.waits_for:
                self._open[start] = blocked_by(passed.waits_for)
            elif passed.limited:
                self._open[start] = self._limited

    def close(self) -> None:
        """Record the starts that are still to come, after the operator's last pass."""
        while (self._suspended or self._deadline == 0) and self._listed and self._next:
            self._close(
                self._next, self._fate(self._next, *self._unmade(self._next, NONE, self._next))
            )
            self._next = self._schedule.after(self._next)

    @property
    def _full(self) -> bool:
        return len(self._fates) + len(self._open) >= self._question.limit

    @property
    def _listed(self) -> bool:
        """Whether the next start must be reported."""
        return not self._full and self._next is not None and self._next <= self._question.until

    def _unmade(self, start: datetime, hindrance: Hindrance, now: datetime) -> tuple[Happens, str]:
        """Return what happens to a start that is never made, and why."""
        if self._suspended:
            return Happens.SUSPENDED, SUSPENDED
        late = (now - start).total_seconds()
        if self._deadline is not None and late >= self._deadline:
            passed = self._shown(start, start + timedelta(seconds=self._deadline))
            why = f": {hindrance.lasts}" if hindrance.lasts else ""
            return Happens.DEADLINE, f"its deadline passed at {passed}{why}"
        return hindrance.happens, hindrance.skips

    def _made(self, start: datetime, passed: SimulatedPass, now: datetime) -> StartFate:
        """Return the fate of a start whose Job is created now."""
        happens, why = Happens.RUNS, "on time"
        if now > start:
            over = self._open[start].over
            happens, why = Happens.LATE, f"late at {self._shown(start, now)}: {over}"
        if passed.replaced:
            happens, why = (
                Happens.REPLACES,
                f"{why}; {_named(passed.replaced, 'is', 'are')} deleted for it",
            )
        elif passed.beside:
            why = f"{why}; {_named(passed.beside, 'still runs', 'still run')}"
        return self._fate(start, happens, why, passed.created, now)

    def _fate(
        self,
        start: datetime,
        happens: Happens,
        why: str,
        job: str | None = None,
        began: datetime | None = None,
    ) -> StartFate:
        twice = cron.repeated(start, self._schedule.zone)
        wall = local_time(self._schedule, start)
        if twice:
            nth = "second" if twice > 1 else "first"
            why = f"{why}; the clocks show {wall:%H:%M} twice, this is the {nth} time"
        return StartFate(start, wall, happens, why, job, began, twice)

    def _close(self, start: datetime, fate: StartFate) -> None:
        self._open.pop(start, None)
        self._fates[start] = fate

    def _shown(self, start: datetime, instant: datetime) -> str:
        """Return an instant in local time, without the date if it is the start's date."""
        wall = local_time(self._schedule, instant)
        same = wall.date() == local_time(self._schedule, start).date()
        return f"{wall:%H:%M:%S}" if same else f"{wall:%Y-%m-%d %H:%M:%S}"


def _merged(intervals: Iterable[Interval]) -> tuple[Interval, ...]:
    """Return the same times as intervals that neither touch nor overlap, in order."""
    merged: list[Interval] = []
    for begin, end in sorted(intervals):
        if merged and begin <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((begin, end))
    return tuple(merged)


def _named(jobs: Sequence[str], one: str, several: str) -> str:
    """Return the first Job's name, the number of others, and the fitting verb."""
    return f"{jobs[0]} {one}" if len(jobs) == 1 else f"{jobs[0]} and {len(jobs) - 1} more {several}"


def forecast(resource: CronJob, question: Question) -> StartForecast:
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
    tally = StartTally(cj, schedule, begin, question, missed.latest)
    _run(SimulatedController(cj, world), world, tally, begin)
    newest = next((fate for fate in tally.fates() if fate.start == missed.latest), None)
    told = sorted(fate.start for fate in tally.fates() if fate.start > begin)
    gaps = skipped(schedule, begin, told, tally.horizon)
    fates = sorted((*tally.fates(), *gaps), key=lambda fate: (fate.start, fate.wall))
    shown = fates[: question.limit]
    real = sum(fate.happens is not Happens.SKIPPED for fate in shown)
    there_are = schedule.missed(begin, question.until).count + min(missed.count, 1)
    field = "status.lastScheduleTime" if known == last else "metadata.creationTimestamp"
    return StartForecast(
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


def _world(cj: CronJob, question: Question) -> SimulatedJobs:
    """Return a world with the Jobs that the status lists as active; each began at its start."""
    world = SimulatedJobs(cj.metadata.namespace, question.duration)
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


def _run(
    operator: SimulatedController, world: SimulatedJobs, tally: StartTally, begin: datetime
) -> None:
    """Make a pass whenever the operator would: when due, when a Job ends, after a downtime."""
    now: datetime | None = tally.back(begin)
    while now is not None and not tally.complete:
        tally.look(now)
        passed = operator.settle(now)
        tally.note(passed, now)
        ends = (end for _, end in tally.down if end > now)
        due = min(filter(None, (passed.again, world.next_end(now), *ends)), default=None)
        now = tally.back(due) if due else None
    tally.close()
