"""Credentials: whether the API server takes ours, as its answers tell."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

import structlog

if TYPE_CHECKING:
    from hedgerow.runtime.clock import Clock

TOLD_FIRST, TOLD_AGAIN = 10.0, 300.0
"""Seconds until the log tells of refusals, as a token may just be renewed, and tells it again."""

log = structlog.get_logger(__name__)


class Credentials:
    """Hears every answer: from a 401 on they are refused, until there is another answer."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since: float | None = None
        self._told: float | None = None

    def heard(self, code: int) -> None:
        """Take note of an answer's code; 0 is none, and tells nothing."""
        if code == HTTPStatus.UNAUTHORIZED:
            self._tell()
        elif code:
            if self._told is not None:
                log.info("credentials are accepted again")
            self._since = self._told = None

    def check(self) -> str:
        """Return why the process is not ready, in one line; mostly nothing."""
        if self._since is None:
            return ""
        seconds = self._clock.monotonic() - self._since
        return f"the API server has refused these credentials for {seconds:.0f} s"

    def _tell(self) -> None:
        now = self._clock.monotonic()
        if self._since is None:
            self._since = now
        due = self._since + TOLD_FIRST if self._told is None else self._told + TOLD_AGAIN
        if now >= due:
            self._told = now
            log.warning("credentials are refused", seconds=round(now - self._since))
