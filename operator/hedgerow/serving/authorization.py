"""Authorization: who may read metrics, as the API server decides.

It does in-process what kube-rbac-proxy does beside a program: a TokenReview says who asks, a
SubjectAccessReview whether they may.
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
    from hedgerow.kube.client import Cluster
    from hedgerow.runtime.clock import Clock

V = TypeVar("V")

ADMITTED, REFUSED = 60.0, 10.0
"""Seconds for which a verdict stands; a right that is taken away ends that much later."""
REMEMBERED = 256
"""Refused tokens, admitted tokens and addresses that are kept, each; the one that was not used for
longest goes first."""
KNOWN: Final = 3600.0
"""Seconds for which an address is known that brought a token which was admitted."""
MOST_REFUSALS = 5
"""Refused tokens of one address after which it is asked about no more for `REFUSED` seconds."""
STRANGERS = 16
"""Addresses that nothing good is known of, with a question each that is being asked."""

log = structlog.get_logger(__name__)


class Verdict(Enum):
    """What becomes of a request."""

    ADMITTED = "admitted"
    ANONYMOUS = "no bearer token was sent: send `Authorization: Bearer TOKEN`"
    UNKNOWN = "the API server does not know this bearer token"
    FORBIDDEN = "who asks lacks the right"
    UNDECIDED = "the API server could not be asked"
    BUSY = "too many tokens that are not known; try again later"


@dataclass(slots=True)
class _Question:
    """A token that the API server is being asked about; without a verdict where it came to none."""

    done: anyio.Event = field(default_factory=anyio.Event)
    verdict: Verdict | None = None


class _Recent(OrderedDict[bytes | str, V]):
    """What was used of late: the `REMEMBERED` newest."""

    def use(self, key: bytes | str, value: V) -> None:
        """Keep a value as the newest."""
        self[key] = value
        self.move_to_end(key)
        while len(self) > REMEMBERED:
            self.popitem(last=False)


class Access:
    """Judges bearer tokens by the right to `verb` a path that is no resource.

    Whoever makes tokens up takes no more than one of the operator's requests, one place of its
    address, and nothing of those who are known: a token that was admitted before, and an address
    that brought one, have a lane of their own. Tokens are remembered by their digests only.
    """

    def __init__(
        self, cluster: Cluster, clock: Clock, *, path: str = "/metrics", verb: str = "get"
    ) -> None:
        self._cluster = cluster
        self._clock = clock
        self._right = verb, path
        self._admitted = _Recent[float]()
        self._refused = _Recent[tuple[Verdict, float]]()
        self._neighbours = _Recent[float]()
        self._refusals = _Recent[tuple[int, float]]()
        self._pending: dict[bytes, _Question] = {}
        self._asking: set[str] = set()
        self._known_lane, self._lane = anyio.Lock(), anyio.Lock()
        self._trouble = ""

    async def judge(self, authorization: str, address: str = "") -> Verdict:
        """Judge the value of an Authorization header, which may be empty, and comes from there."""
        token = _token(authorization)
        if not token:
            return Verdict.ANONYMOUS
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

    def _recall(self, digest: bytes) -> Verdict | None:
        now = self._clock.monotonic()
        if now < self._admitted.get(digest, now):
            self._admitted.move_to_end(digest)
            return Verdict.ADMITTED
        verdict, until = self._refused.get(digest, (None, now))
        return verdict if now < until else None

    async def _ask_of_stranger(self, digest: bytes, token: str, address: str) -> Verdict:
        now = self._clock.monotonic()
        neighbour = now < self._neighbours.get(address, now)
        if address in self._asking:
            return Verdict.BUSY
        if not neighbour and (self._tiresome(address) or len(self._asking) >= STRANGERS):
            return Verdict.BUSY
        self._asking.add(address)
        try:
            lane = self._known_lane if neighbour else self._lane
            return await self._ask(lane, digest, token, address)
        finally:
            self._asking.discard(address)

    def _tiresome(self, address: str) -> bool:
        count, until = self._refusals.get(address, (0, 0.0))
        return count >= MOST_REFUSALS and self._clock.monotonic() < until

    async def _ask(self, lane: anyio.Lock, digest: bytes, token: str, address: str) -> Verdict:
        question = self._pending[digest] = _Question()
        try:
            async with lane:
                question.verdict = await self._asked(token)
            self._note(digest, address, question.verdict)
            return question.verdict
        finally:
            del self._pending[digest]
            question.done.set()

    async def _asked(self, token: str) -> Verdict:
        try:
            verdict = await self._review(token)
        except KubeError as error:
            if self._trouble != str(error):
                self._trouble = str(error)
                log.warning("access is not decided", path=self._right[1], error=str(error))
            return Verdict.UNDECIDED
        self._trouble = ""
        return verdict

    def _note(self, digest: bytes, address: str, verdict: Verdict) -> None:
        """Remember a verdict, with the address that the token came from."""
        now = self._clock.monotonic()
        if verdict is Verdict.UNDECIDED:
            return
        if verdict is Verdict.ADMITTED:
            self._admitted.use(digest, now + ADMITTED)
            self._neighbours.use(address, now + KNOWN)
            self._refusals.pop(address, None)
            return
        self._admitted.pop(digest, None)
        self._refused.use(digest, (verdict, now + REFUSED))
        count, until = self._refusals.get(address, (0, 0.0))
        self._refusals.use(address, (count + 1 if now < until else 1, now + REFUSED))

    async def _review(self, token: str) -> Verdict:
        user = await reviews.authenticate(self._cluster, token)
        if user is None:
            return Verdict.UNKNOWN
        allowed = await reviews.authorize(self._cluster, user, *self._right)
        return Verdict.ADMITTED if allowed else Verdict.FORBIDDEN


def _token(authorization: str) -> str:
    """Return the token of an Authorization header; nothing where there is none."""
    scheme, _, token = authorization.partition(" ")
    token = token.strip()
    return token if scheme.lower() == "bearer" and token.isascii() and token.isprintable() else ""
