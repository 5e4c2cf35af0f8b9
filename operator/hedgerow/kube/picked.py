"""Picked: the few objects of a kind that are chosen by their metadata, read in whole.

Annotations cannot be selected by the API server. So all objects of the kind are listed and watched
without anything but their metadata, and only those that are picked are read. Nothing is remembered
of the others.
"""

from __future__ import annotations

from collections import deque
from contextlib import aclosing
from typing import TYPE_CHECKING, Final

import anyio

from hedgerow.contract import unreduced
from hedgerow.kube.errors import Invalid, Undecodable
from hedgerow.kube.watch import Bookmark, Changed, Listing, Undecoded
from hedgerow.objects import Key, metadata

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from hedgerow.kube.cluster import Cluster
    from hedgerow.kube.watch import WatchEvent
    from hedgerow_schemas.base import ApiResource, Object

AT_ONCE: Final = 8
"""Objects of a list that are read at the same time."""


class Picked:
    """The part of a cluster that `reflect` uses, which shows picked objects only.

    `picks` is called with an object that has metadata alone. An object that is not picked any more
    appears as deleted. An object may be newer than the event that it comes with, never older. One
    that `has` knows in the version of the event is not read again: mostly it is our own write.
    """

    def __init__(
        self,
        cluster: Cluster,
        picks: Callable[[Object], bool],
        has: Callable[[Object], bool] = lambda _item: False,
    ) -> None:
        self._cluster = cluster
        self._picks = picks
        self._has = has

    async def list(
        self,
        api: ApiResource,
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        reduce: Callable[[Object], Object] = unreduced,
    ) -> Listing:
        """Return the picked objects, each reduced when it was read."""

        def only_picked(item: Object) -> Object:
            return item if self._picks(item) else {}

        listing = await self._cluster.list(
            api, namespace, labels=labels, fields=fields, partial=True, reduce=only_picked
        )
        waiting = deque(item for item in listing.items if item)
        read: list[Object] = []
        undecoded = list(listing.undecoded)
        failed: list[Exception] = []

        async def read_them() -> None:
            while waiting and not failed:
                try:
                    whole = await self._whole(api, waiting.popleft())
                    if isinstance(whole, Undecoded):
                        undecoded.append(whole)
                    elif whole is not None:
                        read.append(reduce(whole))
                except Exception as error:  # noqa: BLE001 - a task group would wrap it
                    failed.append(error)

        async with anyio.create_task_group() as readers:
            for _ in range(min(AT_ONCE, len(waiting))):
                readers.start_soon(read_them)
        if failed:
            raise failed[0]
        return Listing(tuple(read), listing.version, tuple(undecoded))

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
        """Yield the events of picked objects, and a deletion for each other one.

        Raises Invalid if `initial` events are asked for, as a server does that has none. They would
        be read one after another, while `list` reads several objects at the same time.
        """
        if initial:
            raise Invalid("objects that are picked are listed")
        events = self._cluster.watch(
            api,
            namespace,
            labels=labels,
            fields=fields,
            since=since,
            partial=True,
            seconds=seconds,
            idle=idle,
        )
        async with aclosing(events):
            async for event in events:
                shown = await self._if_picked(api, event) if isinstance(event, Changed) else event
                yield shown

    async def _if_picked(self, api: ApiResource, event: Changed) -> WatchEvent:
        if event.type != "DELETED" and self._picks(event.object):
            if self._has(event.object):
                return Bookmark(event.version)
            whole = await self._whole(api, event.object)
            if isinstance(whole, Undecoded):
                return whole
            if whole is not None:
                return Changed(event.type, whole, event.version)
        return Changed("DELETED", event.object, event.version)

    async def _whole(self, api: ApiResource, item: Object) -> Object | Undecoded | None:
        meta = metadata(item)
        key = Key(meta.get("namespace", ""), meta["name"])
        try:
            return await self._cluster.read_object(api, key.name, key.namespace)
        except Undecodable:
            return Undecoded(key, meta["resourceVersion"])
