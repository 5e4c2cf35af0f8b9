"""Slow compose: logs and measures a compose that blocks the event loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import structlog

if TYPE_CHECKING:
    from hedgerow.runtime.clock import Clock
    from hedgerow.runtime.meters import Meter

SLOW: Final = 0.2
"""Seconds from which a compose is logged."""
SILENCE: Final = 60.0
"""Seconds between two lines about one controller: each of its resources may be slow."""
WHY: Final = "all other resources wait meanwhile: compose must not wait for a network or sleep"

log = structlog.get_logger(__name__)


class SlowCompose:
    """Measures one controller's slow calls of compose, each; the log has one a minute."""

    def __init__(self, clock: Clock, meter: Meter) -> None:
        self._clock, self._meter = clock, meter
        self._quiet_until = float("-inf")
        self._unlogged = 0

    def took(self, seconds: float) -> None:
        """Measure and log a call that took so many seconds on the event loop, if that is long."""
        if seconds < SLOW:
            return
        self._meter.blocked(seconds)
        now = self._clock.monotonic()
        if now < self._quiet_until:
            self._unlogged += 1
            return
        self._quiet_until = now + SILENCE
        log.warning(
            "compose blocks the event loop",
            seconds=round(seconds, 3),
            unlogged_before=self._unlogged,
            why=WHY,
        )
        self._unlogged = 0
