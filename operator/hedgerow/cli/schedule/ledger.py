"""Ledger: the starts that were due, what prevents each, and what happened to it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from hedgerow.cli.schedule import clock_changes
from hedgerow.cli.schedule.fates import Fate, Happens
from hedgerow.controllers.cronjob import schedule as cron
from hedgerow.controllers.cronjob import starts

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from hedgerow.cli.schedule.fates import Interval, Question
    from hedgerow.cli.schedule.passes import Pass
    from hedgerow_schemas.cronjob import CronJob


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
    still = f"{jobs} {'Job' if jobs == 1 else 'Jobs'} still ran"
    return Hindrance(
        Happens.LIMITED,
        lasts=f"{still}, and {limit}",
        over=f"fewer than {jobs} run, and {limit}" if jobs > 1 else f"none runs, and {limit}",
        skips=f"{still} when the next start came, and {limit}",
    )


class Ledger:
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
        self._fates: dict[datetime, Fate] = {}
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

    def fates(self) -> Iterable[Fate]:
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

    def note(self, passed: Pass, now: datetime) -> None:
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
        while self._suspended and self._listed and self._next:
            self._close(self._next, self._fate(self._next, Happens.SUSPENDED, SUSPENDED))
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

    def _made(self, start: datetime, passed: Pass, now: datetime) -> Fate:
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
    ) -> Fate:
        twice = cron.repeated(start, self._schedule.zone)
        wall = clock_changes.wall(self._schedule, start)
        if twice:
            nth = "second" if twice > 1 else "first"
            why = f"{why}; the clocks show {wall:%H:%M} twice, this is the {nth} time"
        return Fate(start, wall, happens, why, job, began, twice)

    def _close(self, start: datetime, fate: Fate) -> None:
        self._open.pop(start, None)
        self._fates[start] = fate

    def _shown(self, start: datetime, instant: datetime) -> str:
        """Return an instant in local time, without the date if it is the start's date."""
        wall = clock_changes.wall(self._schedule, instant)
        same = wall.date() == clock_changes.wall(self._schedule, start).date()
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
