"""Served: the certificates of our servers, renewed while they serve."""

from __future__ import annotations

from abc import ABC, abstractmethod
from datetime import timedelta
from typing import TYPE_CHECKING, Final, NoReturn

import anyio
import structlog

from hedgerow.backoff import backoff
from hedgerow.kube.errors import AlreadyExists, Invalid, KubeError, Stale
from hedgerow.serving.certificates.material import Served, UnusableError
from hedgerow.serving.certificates.tls import LiveContext

if TYPE_CHECKING:
    import ssl

    from hedgerow.runtime.clock import Clock

LONGEST_PAUSE: Final = timedelta(seconds=30)
SHORTEST_PAUSE: Final = 1.0
"""Seconds."""

log = structlog.get_logger(__name__)


class Certificates(ABC):
    """A live TLS context that always gets a valid certificate.

    Private keys are never logged, and are never part of an error.
    """

    def __init__(self, clock: Clock, pause: timedelta = LONGEST_PAUSE) -> None:
        self._clock = clock
        self._live = LiveContext()
        self._pause = pause
        self._failures = 0
        self._wait = 0.0
        self._trouble = ""

    @property
    def context(self) -> ssl.SSLContext:
        """The context to serve with, the same for the life of the process."""
        return self._live.context

    async def keep(self) -> NoReturn:
        """Renew and reload until cancelled."""
        while True:
            await anyio.sleep(self._wait)
            await self.prepare()

    def check(self) -> str:
        """Return why clients cannot trust the served certificate; empty if they can."""
        served = self._live.served
        if served is None:
            return self._trouble or "there is no certificate yet"
        if self._clock.now() < served.since:
            return f"the certificate is not valid before {served.since:%Y-%m-%dT%H:%M:%SZ}"
        if self._clock.now() >= served.until:
            expired = f"the certificate expired at {served.until:%Y-%m-%dT%H:%M:%SZ}"
            return f"{expired}; {self._trouble}" if self._trouble else expired
        return self._mistrust()

    @abstractmethod
    async def _refresh(self) -> str:
        """Check the certificate, renew or load it if needed; return the problem, or empty.

        Raises KubeError and UnusableError.
        """

    def _mistrust(self) -> str:
        """Return why a certificate that has not expired is not trusted; empty if it is."""
        return ""

    def _serve(self, served: Served) -> None:
        changed = self._live.served is not None and self._live.served != served
        self._live.load(served)
        if changed:
            log.info("serving a new certificate", until=f"{served.until:%Y-%m-%dT%H:%M:%SZ}")

    async def prepare(self) -> None:
        """Check once, so that there normally is a certificate before anything is served.

        Errors are logged but not raised; `keep` tries again.
        """
        draw, wait = self._clock.jitter(), 0.0
        try:
            trouble = await self._refresh()
            self._failures = 0
        except (KubeError, UnusableError) as error:
            # Another replica was faster and has done what is needed: this is not a problem.
            trouble = "" if isinstance(error, Stale | AlreadyExists) else error_text(error)
            self._failures += 1
            wait = backoff(self._failures, draw, getattr(error, "after", 0.0))
        if trouble and trouble != self._trouble:
            log.warning("certificates", trouble=trouble)
        elif self._trouble and not trouble:
            log.info("certificates are in order again")
        self._trouble = trouble
        self._wait = wait or self._patience() * (0.75 + draw / 2)

    def _patience(self) -> float:
        """Return the seconds until the next check: fewer shortly before the certificate expires.

        One that is mounted may be valid for minutes.
        """
        served, longest = self._live.served, self._pause.total_seconds()
        if served is None:
            return longest
        left = (served.until - self._clock.now()).total_seconds()
        return min(longest, max(SHORTEST_PAUSE, left / 8))


def error_text(error: KubeError | UnusableError) -> str:
    """Return an error as text, without the server's message, which may repeat the body."""
    if isinstance(error, Invalid):
        fields = ", ".join(cause.field for cause in error.causes)
        return f"{error.request}: refused with {error.code} {error.reason} {fields}".rstrip()
    return str(error)
