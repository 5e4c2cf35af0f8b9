"""Authorization: who may read metrics, decided by the API server.

It does in-process what kube-rbac-proxy does as a sidecar: a TokenReview tells who the client is, a
SubjectAccessReview tells whether they may read metrics.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Final, TypeVar

import anyio
import structlog

from hedgerow.kube import reviews
from hedgerow.kube.errors import KubeError

if TYPE_CHECKING:
    from hedgerow.kube.cluster import Cluster
    from hedgerow.runtime.clock import Clock

V = TypeVar("V")

PATH = "/metrics"
ADMITTED, REFUSED = 60.0, 10.0
"""Seconds for which a verdict is cached; so a revoked right may last that much longer."""
REMEMBERED = 256
"""The most refused tokens, admitted tokens and addresses in each cache; the least recently used is
dropped first."""
KNOWN: Final = 3600.0
"""Seconds for which an address counts as known after it sent an admitted token."""
MOST_REFUSALS = 5
"""After so many refused tokens of an address, its tokens are not checked for `REFUSED` seconds."""
STRANGERS = 16
"""The most unknown addresses that may have a check running at the same time."""

log = structlog.get_logger(__name__)


class AccessVerdict(Enum):
    """The decision about a request."""

    ADMITTED = "admitted"
    ANONYMOUS = "no bearer token was sent: send `Authorization: Bearer TOKEN`"
    UNKNOWN = "the API server does not know this bearer token"
    FORBIDDEN = "this user lacks the right"
    UNDECIDED = "the API server could not be asked"
    BUSY = "too many tokens that are not known; try again later"


@dataclass(slots=True)
class _Question:
    """A token that is being checked; the verdict stays None if the check was cancelled."""

    done: anyio.Event = field(default_factory=anyio.Event)
    verdict: AccessVerdict | None = None


class _Recent(OrderedDict[bytes | str, V]):
    """The `REMEMBERED` most recently used entries."""

    def use(self, key: bytes | str, value: V) -> None:
        """Store a value as the newest."""
        self[key] = value
        self.move_to_end(key)
        while len(self) > REMEMBERED:
            self.popitem(last=False)


class Access:
    """Checks bearer tokens for the right to `get` the path `/metrics`.

    A client with invented tokens can use only one of the operator's requests at a time, and one
    check per address. It does not delay known clients: tokens that were admitted before, and
    addresses that sent one, have a lane of their own. Only digests of tokens are kept.
    """

    def __init__(self, cluster: Cluster, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock
        self._admitted = _Recent[float]()
        self._refused = _Recent[tuple[AccessVerdict, float]]()
        self._neighbours = _Recent[float]()
        self._refusals = _Recent[tuple[int, float]]()
        self._pending: dict[bytes, _Question] = {}
        self._asking: set[str] = set()
        self._known_lane, self._lane = anyio.Lock(), anyio.Lock()
        self._trouble = ""

    async def judge(self, authorization: str, address: str = "") -> AccessVerdict:
        """Return the verdict on an Authorization header, which may be empty, from an address."""
        token = _token(authorization)
        if not token:
            return AccessVerdict.ANONYMOUS
        digest = hashlib.sha256(token.encode()).digest()
        while question := self._pending.get(digest):
            await question.done.wait()
            if question.verdict is not None:
                return question.verdict
        known = self._recall(digest)
        if known is not None:
            return known
        if digest in self._admitted:
            return await self._ask(self._known_lane, digest, token, address)
        return await self._ask_of_stranger(digest, token, address)

    def _recall(self, digest: bytes) -> AccessVerdict | None:
        now = self._clock.monotonic()
        if now < self._admitted.get(digest, now):
            self._admitted.move_to_end(digest)
            return AccessVerdict.ADMITTED
        verdict, until = self._refused.get(digest, (None, now))
        return verdict if now < until else None

    async def _ask_of_stranger(self, digest: bytes, token: str, address: str) -> AccessVerdict:
        now = self._clock.monotonic()
        neighbour = now < self._neighbours.get(address, now)
        if address in self._asking:
            return AccessVerdict.BUSY
        if not neighbour and (self._tiresome(address) or len(self._asking) >= STRANGERS):
            return AccessVerdict.BUSY
        self._asking.add(address)
        try:
            lane = self._known_lane if neighbour else self._lane
            return await self._ask(lane, digest, token, address)
        finally:
            self._asking.discard(address)

    def _tiresome(self, address: str) -> bool:
        count, until = self._refusals.get(address, (0, 0.0))
        return count >= MOST_REFUSALS and self._clock.monotonic() < until

    async def _ask(
        self, lane: anyio.Lock, digest: bytes, token: str, address: str
    ) -> AccessVerdict:
        question = self._pending[digest] = _Question()
        try:
            async with lane:
                question.verdict = await self._asked(token)
            self._note(digest, address, question.verdict)
            return question.verdict
        finally:
            self._pending.pop(digest, None)
            question.done.set()

    async def _asked(self, token: str) -> AccessVerdict:
        try:
            verdict = await self._review(token)
        except KubeError as error:
            if self._trouble != str(error):
                self._trouble = str(error)
                log.warning("access is not decided", path=PATH, error=str(error))
            return AccessVerdict.UNDECIDED
        self._trouble = ""
        return verdict

    def _note(self, digest: bytes, address: str, verdict: AccessVerdict) -> None:
        """Remember a verdict, and the address from which the token came."""
        now = self._clock.monotonic()
        if verdict is AccessVerdict.UNDECIDED:
            return
        if verdict is AccessVerdict.ADMITTED:
            self._admitted.use(digest, now + ADMITTED)
            self._neighbours.use(address, now + KNOWN)
            self._refusals.pop(address, None)
            return
        self._admitted.pop(digest, None)
        self._refused.use(digest, (verdict, now + REFUSED))
        count, until = self._refusals.get(address, (0, 0.0))
        self._refusals.use(address, (count + 1 if now < until else 1, now + REFUSED))

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
