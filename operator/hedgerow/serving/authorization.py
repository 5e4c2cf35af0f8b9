"""Authorization: who may read metrics, decided by the API server.

It does in-process what kube-rbac-proxy does as a sidecar: a TokenReview tells who the client is, a
SubjectAccessReview tells whether they may read metrics.
"""

from __future__ import annotations

import hashlib
from enum import Enum
from typing import TYPE_CHECKING

import anyio
import structlog

from hedgerow.kube import reviews
from hedgerow.kube.errors import KubeError

if TYPE_CHECKING:
    from hedgerow.kube.cluster import Cluster
    from hedgerow.runtime.clock import Clock

PATH = "/metrics"
ADMITTED, REFUSED = 60.0, 10.0
"""Seconds for which a verdict is cached; so a revoked right may last that much longer."""
REMEMBERED = 256
"""The most verdicts in the cache; the oldest is dropped first."""

log = structlog.get_logger(__name__)


class AccessVerdict(Enum):
    """The decision about a request."""

    ADMITTED = "admitted"
    ANONYMOUS = "no bearer token was sent: send `Authorization: Bearer TOKEN`"
    UNKNOWN = "the API server does not know this bearer token"
    FORBIDDEN = "this user lacks the right"
    UNDECIDED = "the API server could not be asked"


class Access:
    """Checks bearer tokens for the right to `get` the path `/metrics`.

    One token is checked at a time, so that clients with invented tokens take no more than one of
    the operator's requests. Only digests of tokens are kept.
    """

    def __init__(self, cluster: Cluster, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock
        self._verdicts: dict[bytes, tuple[AccessVerdict, float]] = {}
        self._lock = anyio.Lock()
        self._trouble = ""

    async def judge(self, authorization: str) -> AccessVerdict:
        """Return the verdict on an Authorization header, which may be empty."""
        token = _token(authorization)
        if not token:
            return AccessVerdict.ANONYMOUS
        digest = hashlib.sha256(token.encode()).digest()
        if known := self._recall(digest):
            return known
        async with self._lock:
            # Another request with this token may have waited for the lock, too.
            return self._recall(digest) or await self._ask(digest, token)

    def _recall(self, digest: bytes) -> AccessVerdict | None:
        verdict, until = self._verdicts.get(digest, (None, 0.0))
        return verdict if self._clock.monotonic() < until else None

    async def _ask(self, digest: bytes, token: str) -> AccessVerdict:
        try:
            verdict = await self._review(token)
        except KubeError as error:
            if self._trouble != str(error):
                self._trouble = str(error)
                log.warning("access is not decided", path=PATH, error=str(error))
            return AccessVerdict.UNDECIDED
        self._trouble = ""
        self._remember(digest, verdict)
        return verdict

    def _remember(self, digest: bytes, verdict: AccessVerdict) -> None:
        seconds = ADMITTED if verdict is AccessVerdict.ADMITTED else REFUSED
        self._verdicts.pop(digest, None)
        self._verdicts[digest] = verdict, self._clock.monotonic() + seconds
        if len(self._verdicts) > REMEMBERED:
            del self._verdicts[next(iter(self._verdicts))]

    async def _review(self, token: str) -> AccessVerdict:
        user = await reviews.authenticate(self._cluster, token)
        if user is None:
            return AccessVerdict.UNKNOWN
        allowed = await reviews.authorize(self._cluster, user, "get", PATH)
        return AccessVerdict.ADMITTED if allowed else AccessVerdict.FORBIDDEN


def _token(authorization: str) -> str:
    """Return the bearer token of an Authorization header; empty if there is none."""
    scheme, _, token = authorization.partition(" ")
    token = token.strip()
    return token if scheme.lower() == "bearer" and token.isascii() and token.isprintable() else ""
