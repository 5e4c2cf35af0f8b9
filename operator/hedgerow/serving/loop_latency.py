"""Loop latency: how promptly the event loop turns."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

import anyio

if TYPE_CHECKING:
    from collections.abc import Callable

    from hedgerow.runtime.clock import Clock

BEAT = 0.05
"""Seconds between two beats; what holds the loop for longer is seen, all but a beat of it."""
TOO_LATE = 30.0
"""Seconds without a beat that speak of a loop that is stuck."""
SPAN = 300.0
"""Seconds; the longest lag told is that of this time, or of up to twice as long."""


def _unheard(_: float) -> None:
    return


class Pulse:
    """Beats on the event loop, `every` so many seconds, and knows how late the last beat came."""

    def __init__(
        self, clock: Clock, on_beat: Callable[[float], None] = _unheard, *, every: float = BEAT
    ) -> None:
        self._clock, self._every = clock, every
        self._on_beat = on_beat
        self._last = clock.monotonic()
        self.lag = 0.0
        self._began, self._longest, self._before = self._last, 0.0, 0.0

    async def beat(self) -> NoReturn:
        """Beat until cancelled; `on_beat` hears the lag of each in seconds."""
        self._last = self._clock.monotonic()
        while True:
            await anyio.sleep(self._every)
            now = self._clock.monotonic()
            self.lag = max(0.0, now - self._last - self._every)
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
        """Return the seconds since the last beat; from any loop, since all have the same time."""
        return self._clock.monotonic() - self._last

    def check(self) -> str:
        """Say that the loop is stuck; nothing while it turns."""
        silent = self.silent()
        return f"the event loop has not turned for {silent:.0f} s" if silent > TOO_LATE else ""

    def note(self) -> str:
        """Say how late the last beat came."""
        return f"{self.lag * 1000:.0f} ms late"
