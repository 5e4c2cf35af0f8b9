"""Clock: the one place where time and randomness enter the program."""

from __future__ import annotations

import random
import uuid
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol

from hedgerow.contract import Observed
from hedgerow.kube.retry import boot_time, loop_time

if TYPE_CHECKING:
    from collections.abc import Callable

JUMP = 1.0


class Clock(Protocol):
    """The time functions that the runtime uses; tests use a virtual clock."""

    def now(self) -> datetime:
        """Return the wall-clock time, in UTC."""
        ...

    def monotonic(self) -> float:
        """Return the event loop's time, in seconds."""
        ...

    def elapsed(self) -> float:
        """Return seconds that also count while the process is stopped or the machine sleeps."""
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
        return loop_time()

    def elapsed(self) -> float:
        """Return the seconds since the machine started; on Linux they include sleep."""
        return boot_time()

    def jitter(self) -> float:
        """Return a random number in [0, 1)."""
        return random.random()  # noqa: S311 - spreads retries, guards nothing


def unique() -> str:
    """Return a globally unique string."""
    return str(uuid.uuid4())  # noqa: TID251 - the one place


class ClusterClock:
    """A clock, but with the API server's time where the two differ by more than clocks may.

    `server_time` returns the time of the API server's clock; None if that is not known.
    """

    def __init__(self, clock: Clock, server_time: Callable[[], datetime | None]) -> None:
        self._clock = clock
        self._server_time = server_time
        self.monotonic = clock.monotonic
        self.elapsed = clock.elapsed
        self.jitter = clock.jitter

    def now(self) -> datetime:
        """Return the wall-clock time, in UTC."""
        return Observed(now=self._clock.now(), server_time=self._server_time()).cluster_time


class Wall:
    """Detects that the wall clock jumped: it was set, or the machine slept."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._offset = self._measured()

    def jumped(self) -> bool:
        """Return whether the clock jumped by more than a second since the last call."""
        before, self._offset = self._offset, self._measured()
        return abs(self._offset - before) > JUMP

    def _measured(self) -> float:
        return self._clock.now().timestamp() - self._clock.monotonic()
