"""Fates: what happens to each scheduled start, and why."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

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
class Fate:
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
class Forecast:
    """The fates of a CronJob's starts in order, and how many `more` starts there are.

    It `begins` later than asked if the field named by `since` covers the time before.
    `missed_before` is the number of earlier starts without a Job; `at_once` is the one of them that
    the operator makes immediately. `refused` is a lastScheduleTime in the status that is ahead of
    now.
    """

    fates: tuple[Fate, ...]
    more: int
    begins: datetime
    since: str | None
    missed_before: int
    at_once: datetime | None = None
    refused: datetime | None = None
