"""Loop latency: how promptly the event loop turns."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

import anyio

if TYPE_CHECKING:
    from collections.abc import Callable

    from hedgerow.runtime.clock import Clock

BEAT = 0.25
"""Seconds between two beats."""
TOO_LATE = 30.0
"""Seconds without a beat after which the loop counts as stuck."""


class Pulse:
    """Beats on the event loop every `BEAT` seconds, and measures how late each beat is."""

    def __init__(self, clock: Clock, on_beat: Callable[[float], object] = lambda _: None) -> None:
        self._clock = clock
        self._on_beat = on_beat
        self._last = clock.monotonic()

    async def beat(self) -> NoReturn:
        """Beat until cancelled; `on_beat` is called with each lag in seconds."""
        self._last = self._clock.monotonic()
        while True:
            await anyio.sleep(BEAT)
            now = self._clock.monotonic()
            lag, self._last = now - (self._last + BEAT), now
            self._on_beat(max(0.0, lag))

    def check(self) -> str:
        """Return that the loop is stuck; empty while it turns. Callable on any loop."""
        silent = self._clock.monotonic() - self._last  # all loops share one clock
        return f"the event loop has not turned for {silent:.0f} s" if silent > TOO_LATE else ""
