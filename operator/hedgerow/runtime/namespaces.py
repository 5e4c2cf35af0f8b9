"""Namespaces: which ones are being deleted, so that nothing is written to what goes with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from hedgerow.core.meta import is_going, metadata
from hedgerow.kube.watch import Bookmark, Snapshot, reflect
from hedgerow_schemas.base import ApiResource, Object

if TYPE_CHECKING:
    from hedgerow.kube.client import Cluster
    from hedgerow.kube.errors import KubeError

NAMESPACES = ApiResource("v1", "Namespace", "namespaces", namespaced=False)

log = structlog.get_logger(__name__)


class Namespaces:
    """The names of the namespaces that are being deleted, as a watch tells of them.

    Without the right to watch namespaces the set stays empty; the server's 403 for whatever is
    created in such a namespace then tells the same, one request later.
    """

    def __init__(self) -> None:
        self._going: set[str] = set()
        self._complained = False

    def is_going(self, name: str) -> bool:
        """Tell whether the namespace is being deleted."""
        return name in self._going

    async def follow(self, cluster: Cluster) -> None:
        """Watch until cancelled."""
        events = reflect(cluster, NAMESPACES, reduce=reduced, on_problem=self._complain)
        async for event in events:
            match event:
                case Snapshot(items=items):
                    self._going = {metadata(item)["name"] for item in items if is_going(item)}
                case Bookmark():
                    pass
                case _:
                    self._take(event.object, gone=event.type == "DELETED")

    def _take(self, namespace: Object, *, gone: bool) -> None:
        name = metadata(namespace)["name"]
        if is_going(namespace) and not gone:
            self._going.add(name)
        else:
            self._going.discard(name)

    def _complain(self, error: KubeError) -> None:
        if not self._complained:
            self._complained = True
            log.info("namespaces are not watched", error=str(error))


def reduced(namespace: Object) -> Object:
    """Keep a namespace's name and whether it is being deleted."""
    kept = ("name", "resourceVersion", "deletionTimestamp")
    meta = metadata(namespace)
    return {"metadata": {key: meta[key] for key in kept if key in meta}}
