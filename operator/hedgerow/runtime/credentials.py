"""Credentials: whether the API server accepts ours, according to its responses."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

import structlog

if TYPE_CHECKING:
    from hedgerow.runtime.clock import Clock

LOGGED_FIRST, LOGGED_AGAIN = 10.0, 300.0
"""Seconds until refusals are logged (a token may just be renewed), and until they are repeated."""

log = structlog.get_logger(__name__)


class Credentials:
    """Sees every response: a 401 means that credentials are refused, until any other response."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since: float | None = None
        self._logged: float | None = None

    def on_response(self, code: int) -> None:
        """Take in the code of a response; 0 means no response and changes nothing."""
        if code == HTTPStatus.UNAUTHORIZED:
            self._refused()
        elif code:
            if self._logged is not None:
                log.info("credentials are accepted again")
            self._since = self._logged = None

    def check(self) -> str:
        """Return why the process is not ready, in one line; else empty."""
        if self._since is None:
            return ""
        seconds = self._clock.monotonic() - self._since
        return f"the API server has refused these credentials for {seconds:.0f} s"

    def _refused(self) -> None:
        now = self._clock.monotonic()
        if self._since is None:
            self._since = now
        due = self._since + LOGGED_FIRST if self._logged is None else self._logged + LOGGED_AGAIN
        if now >= due:
            self._logged = now
            log.warning("credentials are refused", seconds=round(now - self._since))
