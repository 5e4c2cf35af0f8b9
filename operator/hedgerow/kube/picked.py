"""Picked: the few objects of a kind that are chosen by their metadata, read in whole.

Annotations cannot be selected by the API server. So all objects of the kind are listed and watched
without anything but their metadata, and only those that are picked are read. Nothing is remembered
of the others.
"""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

from hedgerow.kube.watch import Bookmark, Changed, Listing
from hedgerow.objects import metadata

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from hedgerow.kube.cluster import Cluster
    from hedgerow.kube.watch import WatchEvent
    from hedgerow_schemas.base import ApiResource, Object


def _unreduced(item: Object) -> Object:
    return item


class Picked:
    """The part of a cluster that `reflect` uses, which shows picked objects only.

    `picks` is called with an object that has metadata alone. An object that is not picked any more
    is told as deleted. An object may be newer than the event that it comes with, never older.
    """

    def __init__(self, cluster: Cluster, picks: Callable[[Object], bool]) -> None:
        self._cluster = cluster
        self._picks = picks

    async def list(
        self,
        api: ApiResource,
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        reduce: Callable[[Object], Object] = _unreduced,
    ) -> Listing:
        """Return the picked objects, each reduced when it was read."""

        def only_picked(item: Object) -> Object:
            return item if self._picks(item) else {}

        found = await self._cluster.list(
            api, namespace, labels=labels, fields=fields, partial=True, reduce=only_picked
        )
        whole = [await self._whole(api, item) for item in found.items if item]
        return Listing(tuple(reduce(item) for item in whole if item is not None), found.version)

    async def watch(
        self,
        api: ApiResource,
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        since: str = "",
        initial: bool = False,
        seconds: int = 290,
        idle: float = 90.0,
    ) -> AsyncGenerator[WatchEvent]:
        """Yield the events of picked objects, and a deletion for each other one."""
        events = self._cluster.watch(
            api,
            namespace,
            labels=labels,
            fields=fields,
            since=since,
            initial=initial,
            partial=True,
            seconds=seconds,
            idle=idle,
        )
        async with aclosing(events):
            async for event in events:
                yield event if isinstance(event, Bookmark) else await self._told(api, event)

    async def _told(self, api: ApiResource, event: Changed) -> Changed:
        if event.type != "DELETED" and self._picks(event.object):
            whole = await self._whole(api, event.object)
            if whole is not None:
                return Changed(event.type, whole, event.version)
        return Changed("DELETED", event.object, event.version)

    async def _whole(self, api: ApiResource, item: Object) -> Object | None:
        meta = metadata(item)
        return await self._cluster.read(api, meta["name"], meta.get("namespace", ""))
