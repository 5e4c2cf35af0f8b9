"""Mirror: objects of several kinds, read once and then kept up to date."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

import anyio

from hedgerow.kube.watch import Bookmark, Snapshot, reflect
from hedgerow.objects import metadata

if TYPE_CHECKING:
    from collections.abc import Callable

    from hedgerow.kube.cluster import Cluster
    from hedgerow.kube.errors import KubeError
    from hedgerow.kube.watch import Changed
    from hedgerow_schemas.base import ApiResource, Object

Key = tuple[str, str]
"""An object's namespace and name."""


class Mirror:
    """The objects of each kind that was read, and the problem of each that cannot be followed.

    `told` is called after each change.
    """

    def __init__(self, cluster: Cluster, told: Callable[[], None] | None = None) -> None:
        self.objects: dict[ApiResource, dict[Key, Object]] = {}
        self.problems: dict[ApiResource, KubeError] = {}
        self._cluster, self._told = cluster, told
        self._news = anyio.Event()

    async def read(
        self,
        api: ApiResource,
        namespace: str,
        reduce: Callable[[Object], Object],
        *,
        labels: str = "",
        fields: str = "",
    ) -> None:
        """Read objects of a kind, each of which is reduced. Raises KubeError."""
        found = await self._cluster.list(
            api, namespace, labels=labels, fields=fields, reduce=reduce
        )
        self.objects[api] = {_key(obj): obj for obj in found.items}

    async def follow(
        self,
        api: ApiResource,
        namespace: str,
        reduce: Callable[[Object], Object],
        *,
        labels: str = "",
    ) -> None:
        """Keep the objects of a kind up to date until cancelled."""

        def note(error: KubeError) -> None:
            self.problems[api] = error
            self.tell()

        events = reflect(
            self._cluster, api, namespace, labels=labels, reduce=reduce, on_problem=note
        )
        async with aclosing(events) as heard:
            async for event in heard:
                self.problems.pop(api, None)
                self._take(api, event)
                self.tell()

    def tell(self) -> None:
        """Have whoever waits in `changed` go on."""
        self._news.set()
        if self._told:
            self._told()

    async def changed(self) -> None:
        """Wait until something has changed since the last call."""
        await self._news.wait()
        self._news = anyio.Event()

    def _take(self, api: ApiResource, event: Snapshot | Changed | Bookmark) -> None:
        match event:
            case Snapshot(items=items):
                self.objects[api] = {_key(obj): obj for obj in items}
            case Bookmark():
                pass
            case _ if event.type == "DELETED":
                self.objects.get(api, {}).pop(_key(event.object), None)
            case _:
                self.objects.setdefault(api, {})[_key(event.object)] = event.object


def _key(obj: Object) -> Key:
    meta = metadata(obj)
    return meta.get("namespace", ""), meta["name"]
