"""Watched: the cluster in memory with watches, each told as soon as something happens."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import anyio

from hedgerow.contract import unreduced
from hedgerow.kube.watch import Bookmark, Changed, WatchEvent
from hedgerow_testing.memory.cluster import MemoryCluster
from hedgerow_testing.memory.feed import Feed

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from hedgerow.kube.errors import KubeError
    from hedgerow.runtime.cache.caches import Source
    from hedgerow_schemas.base import ApiResource
    from hedgerow_testing.memory.server import Server


class Watched(MemoryCluster):
    """Also counts the watches that are open; `held` kinds stay silent, `broken` ones fail."""

    def __init__(self, server: Server) -> None:
        super().__init__(server)
        self.open = 0
        self.held: set[str] = set()
        self.broken: dict[str, KubeError] = {}
        self.tried: list[str] = []
        self._feeds: dict[tuple[str, str, str, str], Feed] = {}
        self._news = anyio.Event()

    def wake(self) -> None:
        """Let the watches look at all objects."""
        self._news.set()
        self._news = anyio.Event()

    async def _ask(self, sent: Any, act: Any) -> Any:
        try:
            return await super()._ask(sent, act)
        finally:
            self.wake()

    async def watch(
        self,
        api: ApiResource,
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        initial: bool = False,
        **_how: Any,
    ) -> AsyncGenerator[WatchEvent, None]:
        """Yield the events of the objects, with `initial` the present ones first."""
        self.tried.append(api.plural)
        source = SimpleNamespace(
            api=api,
            namespace=namespace,
            labels=labels,
            fields=fields,
            reduce=unreduced,
            picks=None,
        )
        feed = self._feeds.setdefault(
            (api.plural, namespace, labels, fields), Feed(self.model, cast("Source", source))
        )
        self.open += 1
        try:
            if initial:
                while api.kind in self.held:
                    await self._news.wait()
                self._fail(api)
                snapshot = feed.relist()
                for item in snapshot.items:
                    yield Changed("ADDED", item, item["metadata"]["resourceVersion"])
                yield Bookmark(snapshot.version, synced=True)
            while True:
                self._fail(api)
                event = feed.step()
                if event is None:
                    await self._news.wait()
                else:
                    yield event
        finally:
            self.open -= 1

    def _fail(self, api: ApiResource) -> None:
        if api.kind in self.broken:
            raise self.broken[api.kind]
