"""Access: who may read what the operator tells of itself, as the API server judges.

It does in-process what kube-rbac-proxy does beside a program: a TokenReview says who asks, a
SubjectAccessReview whether they may.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from enum import Enum
from typing import TYPE_CHECKING

import anyio
import structlog

from hedgerow.kube import reviews
from hedgerow.kube.errors import KubeError

if TYPE_CHECKING:
    from hedgerow.kube.client import Cluster
    from hedgerow.runtime.clock import Clock

ADMITTED, REFUSED = 60.0, 10.0
"""Seconds for which a verdict stands; a right that is taken away ends that much later."""
REMEMBERED = 256
"""Tokens whose verdicts are kept; the one that was not asked with for longest goes first."""

log = structlog.get_logger(__name__)


class Verdict(Enum):
    """What becomes of a request."""

    ADMITTED = "admitted"
    ANONYMOUS = "no bearer token was sent: send `Authorization: Bearer TOKEN`"
    UNKNOWN = "the API server does not know this bearer token"
    FORBIDDEN = "who asks lacks the right"
    UNDECIDED = "the API server could not be asked"


class Access:
    """Judges bearer tokens by the right to `verb` a path that is no resource.

    Tokens are asked about one at a time, so that whoever makes them up takes no more than one of
    the operator's requests; they are remembered by their digests only.
    """

    def __init__(
        self, cluster: Cluster, clock: Clock, *, path: str = "/metrics", verb: str = "get"
    ) -> None:
        self._cluster = cluster
        self._clock = clock
        self._right = verb, path
        self._known: OrderedDict[bytes, tuple[Verdict, float]] = OrderedDict()
        self._asking = anyio.Lock()
        self._trouble = ""

    async def judge(self, authorization: str) -> Verdict:
        """Judge the value of an Authorization header, which may be empty."""
        scheme, _, token = authorization.partition(" ")
        token = token.strip()
        if (
            scheme.lower() != "bearer"
            or not token.isascii()
            or not token.isprintable()
            or not token
        ):
            return Verdict.ANONYMOUS
        digest = hashlib.sha256(token.encode()).digest()
        known = self._recall(digest)
        if known is not None:
            return known
        async with self._asking:
            # Whoever was first may have asked with the same token.
            return self._recall(digest) or await self._ask(digest, token)

    def _recall(self, digest: bytes) -> Verdict | None:
        verdict, until = self._known.get(digest, (None, 0.0))
        if verdict is None or until <= self._clock.monotonic():
            return None
        self._known.move_to_end(digest)
        return verdict

    async def _ask(self, digest: bytes, token: str) -> Verdict:
        try:
            verdict = await self._review(token)
        except KubeError as error:
            if self._trouble != str(error):
                self._trouble = str(error)
                log.warning("access is not decided", path=self._right[1], error=str(error))
            return Verdict.UNDECIDED
        self._trouble = ""
        stands = ADMITTED if verdict is Verdict.ADMITTED else REFUSED
        self._known[digest] = verdict, self._clock.monotonic() + stands
        self._known.move_to_end(digest)
        if len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
        return verdict

    async def _review(self, token: str) -> Verdict:
        user = await reviews.authenticate(self._cluster, token)
        if user is None:
            return Verdict.UNKNOWN
        allowed = await reviews.authorize(self._cluster, user, *self._right)
        return Verdict.ADMITTED if allowed else Verdict.FORBIDDEN
