"""Mirror: objects of several kinds, read once and then kept up to date."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

import anyio

from hedgerow.kube.errors import UNDECODABLE, Undecodable
from hedgerow.kube.watch import Bookmark, Snapshot, reflect
from hedgerow.objects import metadata

if TYPE_CHECKING:
    from collections.abc import Callable

    from hedgerow.kube.cluster import Cluster
    from hedgerow.kube.errors import KubeError
    from hedgerow.kube.watch import Changed
    from hedgerow_schemas.base import ApiResource, Object

NamespacedName = tuple[str, str]
"""An object's namespace and name."""


class Mirror:
    """The objects of each kind, and the problem of each kind that cannot be read or followed."""

    def __init__(self, cluster: Cluster) -> None:
        self.objects: dict[ApiResource, dict[NamespacedName, Object]] = {}
        self.problems: dict[ApiResource, KubeError] = {}
        self._cluster = cluster
        self._changed = anyio.Event()

    async def read_kind(
        self,
        api: ApiResource,
        namespace: str,
        reduce: Callable[[Object], Object],
        *,
        fields: str = "",
    ) -> None:
        """Read objects of a kind, each of which is reduced. Raises KubeError."""
        listing = await self._cluster.list(api, namespace, fields=fields, reduce=reduce)
        self.objects[api] = {_key(obj): obj for obj in listing.items}
        for item in listing.undecoded:
            self.problems[api] = Undecodable(f"{'/'.join(filter(None, item.key))} {UNDECODABLE}")

    async def follow(
        self,
        api: ApiResource,
        namespace: str,
        reduce: Callable[[Object], Object],
    ) -> None:
        """Keep the objects of a kind up to date until cancelled."""

        def note(error: KubeError) -> None:
            self.problems[api] = error
            self._changed.set()

        events = reflect(self._cluster, api, namespace, reduce=reduce, on_problem=note)
        async with aclosing(events) as heard:
            async for event in heard:
                self.problems.pop(api, None)
                self._take_event(api, event)
                self._changed.set()

    async def changed(self) -> None:
        """Wait until something has changed since the last call."""
        await self._changed.wait()
        self._changed = anyio.Event()

    def _take_event(self, api: ApiResource, event: Snapshot | Changed | Bookmark) -> None:
        match event:
            case Snapshot(items=items):
                self.objects[api] = {_key(obj): obj for obj in items}
            case Bookmark():
                pass
            case _ if event.type == "DELETED":
                self.objects.get(api, {}).pop(_key(event.object), None)
            case _:
                self.objects.setdefault(api, {})[_key(event.object)] = event.object


def _key(obj: Object) -> NamespacedName:
    meta = metadata(obj)
    return meta.get("namespace", ""), meta["name"]
