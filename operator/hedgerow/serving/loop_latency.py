"""Loop latency: how promptly the event loop turns."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable

    from hedgerow.runtime.clock import Clock

BEAT = 0.05
"""Seconds between two beats; longer stalls of the loop are measured, up to one beat too short."""
TOO_LATE = 30.0
"""Seconds without a beat after which the loop counts as stuck."""
SPAN = 300.0
"""Seconds; `longest` covers this time, or up to twice as much."""


def _ignore(_: float) -> None:
    return


class Pulse:
    """Beats on the event loop `every` so many seconds, and measures how late each beat is.

    Without `every` it is what BEAT is by then: tests on a clock that jumps need no beats.
    """

    def __init__(
        self,
        clock: Clock,
        on_beat: Callable[[float], None] = _ignore,
        *,
        every: float | None = None,
    ) -> None:
        self._clock = clock
        self._every = BEAT if every is None else every
        self._on_beat = on_beat
        self._last = clock.monotonic()
        self.lag = 0.0
        self._began, self._longest, self._before = self._last, 0.0, 0.0

    async def beat(self) -> NoReturn:
        """Beat until cancelled; `on_beat` is called with each lag in seconds.

        A task that sleeps takes more than twice the CPU of a timer.
        """
        loop = asyncio.get_running_loop()
        failed: asyncio.Future[NoReturn] = loop.create_future()

        def turn() -> None:
            nonlocal timer
            try:
                self._turn()
            except Exception as error:  # noqa: BLE001 - it ends the task
                if not failed.done():
                    failed.set_exception(error)
            else:
                timer = loop.call_later(self._every, turn)

        self._last = self._clock.monotonic()
        timer = loop.call_later(self._every, turn)
        try:
            while True:
                await failed
        finally:
            timer.cancel()

    def _turn(self) -> None:
        now = self._clock.monotonic()
        self.lag = max(0.0, now - (self._last + self._every))
        self._last = now
        self._note(now)
        self._on_beat(self.lag)

    def longest(self) -> float:
        """Return the longest lag of the last minutes in seconds."""
        return max(self._longest, self._before)

    def _note(self, now: float) -> None:
        if now - self._began >= SPAN:
            self._began, self._before, self._longest = now, self._longest, 0.0
        self._longest = max(self._longest, self.lag)

    def silent(self) -> float:
        """Return the seconds since the last beat; callable from any loop: all share one clock."""
        return self._clock.monotonic() - self._last

    def check(self) -> str:
        """Return that the loop is stuck; empty while it turns."""
        silent = self.silent()
        return f"the event loop has not turned for {silent:.0f} s" if silent > TOO_LATE else ""

    def note(self) -> str:
        """Return how late the last beat was."""
        return f"{self.lag * 1000:.0f} ms late"
