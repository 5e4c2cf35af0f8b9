"""Virtual: an event loop and a clock on which waiting takes no time."""

from __future__ import annotations

import asyncio
import selectors
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

import anyio

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

T = TypeVar("T")

EPOCH = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)


class VirtualLoop(asyncio.SelectorEventLoop):
    """Jumps to the next timer when nothing else is left; fails where it would wait for ever."""

    def __init__(self) -> None:
        super().__init__(_Jumping(self))
        self.elapsed = 0.0

    def time(self) -> float:
        """Return the seconds since the loop was made, all of them virtual."""
        return self.elapsed


class _Jumping(selectors.SelectSelector):
    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> Any:
        ready = super().select(0)
        if not ready and timeout is None:
            raise AssertionError("everything waits, and nothing is left that could happen")
        if not ready and timeout:
            self._loop.elapsed += timeout
        return ready


class VirtualClock:
    """The loop's time, on a wall that began at EPOCH; jitter as told, the middle by default."""

    def __init__(self, jitter: Iterator[float] | None = None) -> None:
        self._jitter = jitter

    def now(self) -> datetime:
        """Return the time on the wall, in UTC."""
        return EPOCH + timedelta(seconds=self.monotonic())

    def monotonic(self) -> float:
        """Return the loop's time, in seconds."""
        return anyio.current_time()

    def elapsed(self) -> float:
        """Return the loop's time, in seconds: nothing sleeps here."""
        return anyio.current_time()

    def jitter(self) -> float:
        """Return the next number that was given, or 0.5."""
        return next(self._jitter) if self._jitter else 0.5


BACKEND = ("asyncio", {"loop_factory": VirtualLoop})


def run(main: Callable[..., Awaitable[T]], *args: Any) -> T:
    """Run a coroutine on a loop of its own, as one example of a property needs it."""
    return anyio.run(main, *args, backend=BACKEND[0], backend_options=BACKEND[1])
