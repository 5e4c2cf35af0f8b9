"""Namespaces: which ones allow claims, each read by name, at most once a minute."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple

import anyio
import structlog

from hedgerow.kube.errors import Forbidden
from hedgerow.plan.yield_and_claim import allows_claims
from hedgerow_schemas.base import ApiResource

if TYPE_CHECKING:
    from hedgerow.kube.object_api import ObjectApi
    from hedgerow.runtime.clock import Clock

NAMESPACES = ApiResource("v1", "Namespace", "namespaces", namespaced=False)
LOOK_AGAIN: Final = 60.0
"""Seconds between two reads of a namespace in which a resource has a claim."""

log = structlog.get_logger(__name__)


class Permission(NamedTuple):
    """Whether a namespace allows claims, and until when that counts, on the monotonic clock."""

    allows_claims: bool
    until: float = math.inf


class _Answer:
    """The permission as of the last read of a namespace; at first it is out of date."""

    def __init__(self) -> None:
        self.lock = anyio.Lock()
        self.permission = Permission(allows_claims=False, until=0.0)


class Namespaces:
    """Which namespaces allow claims, as their labels were read in the last minute.

    Only a namespace in which a resource has a claim is read. Without the right to read it, it
    allows none.
    """

    def __init__(self, cluster: ObjectApi, clock: Clock) -> None:
        self._cluster, self._clock = cluster, clock
        self._answers: dict[str, _Answer] = {}
        self._complained = False

    async def permission(self, name: str) -> Permission:
        """Return whether a namespace allows claims. Raises KubeError if it cannot be read now."""
        if not name:  # a cluster-scoped resource is in none
            return Permission(allows_claims=False)
        answer = self._answers.setdefault(name, _Answer())
        async with answer.lock:  # many passes ask at the same time
            if self._clock.monotonic() >= answer.permission.until:
                allows = await self._allows_claims(name)
                now = self._clock.monotonic()
                answer.permission = Permission(allows, now + LOOK_AGAIN)
                self._forget_unused(now)
        return answer.permission

    @property
    def known(self) -> tuple[str, ...]:
        """The namespaces whose answers are remembered."""
        return tuple(self._answers)

    async def _allows_claims(self, name: str) -> bool:
        try:
            namespace = await self._cluster.read_object(NAMESPACES, name)
        except Forbidden as error:
            if not self._complained:
                self._complained = True
                log.info("namespaces are not read", error=str(error))
            return False
        return allows_claims(namespace or {})

    def _forget_unused(self, now: float) -> None:
        """Forget the namespaces that nobody asks for any more."""
        self._answers = {
            name: answer
            for name, answer in self._answers.items()
            if now < answer.permission.until or answer.lock.locked()
        }
