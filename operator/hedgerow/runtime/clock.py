"""Clock: the one place where time and randomness enter the program."""

from __future__ import annotations

import random
import time
import uuid
from datetime import UTC, datetime
from typing import Protocol

import anyio

JUMP = 1.0

_BOOT = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""Goes on while the machine sleeps; only Linux has it."""


class Clock(Protocol):
    """What the runtime asks of time; tests bring a virtual one."""

    def now(self) -> datetime:
        """Return the wall-clock time, in UTC."""
        ...

    def monotonic(self) -> float:
        """Return the event loop's time, in seconds."""
        ...

    def elapsed(self) -> float:
        """Return seconds that pass also while the process is stopped or the machine asleep."""
        ...

    def jitter(self) -> float:
        """Return a random number in [0, 1)."""
        ...


class SystemClock:
    """The clock of this machine."""

    def now(self) -> datetime:
        """Return the wall-clock time, in UTC."""
        return datetime.now(UTC)  # noqa: TID251 - the one place

    def monotonic(self) -> float:
        """Return the event loop's time, in seconds."""
        return anyio.current_time()

    def elapsed(self) -> float:
        """Return the seconds since the machine was started, its sleep included where it tells."""
        return time.clock_gettime(_BOOT)

    def jitter(self) -> float:
        """Return a random number in [0, 1)."""
        return random.random()  # noqa: S311 - spreads retries, guards nothing


def unique() -> str:
    """Return a string that nobody else has."""
    return str(uuid.uuid4())  # noqa: TID251 - the one place


class Wall:
    """Tells when the wall clock moved otherwise than time passed: set, or the machine asleep."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._offset = self._measured()

    def jumped(self) -> bool:
        """Return whether it jumped by more than a second since it was last asked."""
        before, self._offset = self._offset, self._measured()
        return abs(self._offset - before) > JUMP

    def _measured(self) -> float:
        return self._clock.now().timestamp() - self._clock.monotonic()
