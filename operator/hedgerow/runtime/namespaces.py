"""Namespaces: which ones are being deleted, and which ones allow claims."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import structlog

from hedgerow.kube.errors import Forbidden, KubeError
from hedgerow.kube.watch import Bookmark, Snapshot, reflect
from hedgerow.objects import is_terminating, metadata
from hedgerow.plan.yield_and_claim import ALLOW_CLAIMS, allows_claims
from hedgerow_schemas.base import ApiResource, Object

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from hedgerow.kube.cluster import Cluster
    from hedgerow.runtime.clock import Clock

NAMESPACES = ApiResource("v1", "Namespace", "namespaces", namespaced=False)
LOOK_AGAIN = 60.0
"""Seconds between two reads of a namespace, if we have no right to watch namespaces."""

log = structlog.get_logger(__name__)


def _ignore(_names: Collection[str]) -> None:
    """Do nothing."""


class Namespaces:
    """The namespaces that are being deleted, and those that allow claims, known from a watch.

    Without the right to watch namespaces both sets stay empty. The server then answers 403 to
    whatever is created in a namespace that is being deleted. Claims that are not known to be
    allowed are not allowed. `changed` is called with the namespaces that now allow claims, or no
    longer do; after the first list it is called with an empty collection, which means all.
    """

    def __init__(self) -> None:
        self.changed: Callable[[Collection[str]], None] = _ignore
        self.names: frozenset[str] = frozenset()
        """All namespaces that there are, as far as is known."""
        self._going: set[str] = set()
        self._claiming: set[str] = set()
        self._known = False
        self._complained = False

    def is_terminating(self, name: str) -> bool:
        """Return whether the namespace is being deleted."""
        return name in self._going

    def allows_claims(self, name: str) -> bool | None:
        """Return whether the namespace allows claims; None if not yet known."""
        return name in self._claiming if self._known else None

    async def follow(self, cluster: Cluster) -> None:
        """Watch until cancelled."""
        events = reflect(cluster, NAMESPACES, reduce=reduced, on_problem=self._trouble)
        async for event in events:
            match event:
                case Snapshot(items=items):
                    self.names = frozenset(metadata(item)["name"] for item in items)
                    self._going = {metadata(item)["name"] for item in items if is_terminating(item)}
                    self._allow({metadata(i)["name"] for i in items if allows_claims(i)})
                case Bookmark():
                    pass
                case _:
                    self._take(event.object, gone=event.type == "DELETED")

    async def read(self, cluster: Cluster, names: Iterable[str], clock: Clock) -> None:
        """Read these namespaces periodically until cancelled, as we may read but not watch them."""
        self.names = frozenset(names)
        while True:
            claiming = {name for name in self.names if await self._claims(cluster, name)}
            self._allow(claiming)
            await anyio.sleep(LOOK_AGAIN * (0.5 + clock.jitter()))

    async def _claims(self, cluster: Cluster, name: str) -> bool:
        """Return whether a namespace allows claims; without a response, the last known value."""
        try:
            found = await cluster.read(NAMESPACES, name)
        except Forbidden as error:
            self._complain(error)
            return False
        except KubeError as error:
            log.info("namespace not read", namespace=name, error=str(error))
            return name in self._claiming
        return allows_claims(found or {})

    def _take(self, namespace: Object, *, gone: bool) -> None:
        name = metadata(namespace)["name"]
        if gone or name not in self.names:
            self.names = self.names - {name} if gone else self.names | {name}
        if is_terminating(namespace) and not gone:
            self._going.add(name)
        else:
            self._going.discard(name)
        allowed = allows_claims(namespace) and not gone
        self._allow(self._claiming | {name} if allowed else self._claiming - {name})

    def _allow(self, claiming: set[str]) -> None:
        news = claiming ^ self._claiming if self._known else None
        self._claiming, self._known = claiming, True
        if news is None or news:
            self.changed(news or ())

    def _trouble(self, error: KubeError) -> None:
        if isinstance(error, Forbidden) and not self._known:
            self._allow(set())
        self._complain(error)

    def _complain(self, error: KubeError) -> None:
        if not self._complained:
            self._complained = True
            log.info("namespaces are not watched", error=str(error))


def reduced(namespace: Object) -> Object:
    """Return only a namespace's name, version, deletion time, and whether it allows claims."""
    kept = ("name", "resourceVersion", "deletionTimestamp")
    meta = metadata(namespace)
    allowed = {"labels": {ALLOW_CLAIMS: "true"}} if allows_claims(namespace) else {}
    return {"metadata": {key: meta[key] for key in kept if key in meta} | allowed}
