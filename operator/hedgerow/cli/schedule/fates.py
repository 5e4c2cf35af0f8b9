"""Fates: what becomes of each scheduled start, and why."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

Interval = tuple[datetime, datetime]
"""From an instant until another one, which is not part of it."""


class Happens(StrEnum):
    """What becomes of a start."""

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
    """What becomes of one start.

    `start` is its instant, `wall` what the clocks show then in the schedule's zone, without a
    zone itself. Of times that the clocks skip, `wall` is the first and `start` but a place in the
    order.
    `job` is the Job that is made and `began` when. `repeated` says which it is of two times that
    the clocks show alike: 1 or 2, else 0. `skipped` are the times that the clocks left out.
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
    """What is asked: the starts in (since, until], all instants with a zone and in whole seconds.

    Every Job takes `duration`; `down` are the times without an operator. `limit` bounds the fates
    told.
    """

    since: datetime
    until: datetime
    duration: timedelta
    down: tuple[Interval, ...] = ()
    limit: int = 100
    now: datetime | None = None
    """When it is asked, if the status is one of a cluster: what is ahead of it is no record."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """The fates of a CronJob's starts in order, and how many `more` starts there are.

    It `begins` later than asked if the field named by `since` knows of what was before.
    `missed_before` counts the starts before that no Job was made for, and `at_once` is the one of
    them that is made as soon as the operator looks. `refused` is what the status has for a record
    although it lies ahead of now.
    """

    fates: tuple[Fate, ...]
    more: int
    begins: datetime
    since: str | None
    missed_before: int
    at_once: datetime | None = None
    refused: datetime | None = None
