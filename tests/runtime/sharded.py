"""Sharded: replicas in memory, each with some of the namespaces of one cluster."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager
from copy import copy
from typing import Any, cast

import anyio

from hedgerow.contract import Controller
from hedgerow.kube.selection import Selected
from hedgerow.kube.watch import Bookmark, Changed, Listing, WatchEvent
from hedgerow.objects import Installation
from hedgerow.runtime.cache.caches import build
from hedgerow.runtime.metrics import Meters
from hedgerow.runtime.observation import ResourcePlanner
from hedgerow.runtime.runner import ControllerRunner
from hedgerow.runtime.sharding import Division
from hedgerow.runtime.source_reports import Reports
from hedgerow.shards.slices import Slices, point_of
from hedgerow.testing.memory.cluster import has_fields, selects
from hedgerow.testing.memory.inmemory import any_claims
from hedgerow.testing.memory.server import Server
from hedgerow.testing.memory.watched import Watched
from hedgerow.testing.virtual import VirtualClock
from hedgerow_schemas.base import ApiResource, Resource
from runtime.world import CONTROLLER

Object = dict[str, Any]


def only(*namespaces: str) -> Slices:
    """Return the slices of these namespaces."""
    return Slices.of((point_of(name), point_of(name) + 1) for name in namespaces)


class Sliced(Watched):
    """The cluster of one replica; the watches of `slow` kinds tell of no change."""

    def __init__(self, server: Server) -> None:
        super().__init__(server)
        self.selection = Selected()
        self.slow: set[str] = set()
        self.asked: list[tuple[str, str, Slices]] = []
        self.shown: list[tuple[str, str]] = []

    def only(self, selection: Selected) -> Sliced:
        """Return the same, whose lists and watches have the selected objects alone."""
        part = copy(self)
        part.selection = selection
        part._whole = self._whole
        return part

    @property
    def _news(self) -> anyio.Event:
        return self._whole[0]

    @_news.setter
    def _news(self, event: anyio.Event) -> None:
        self.__dict__.setdefault("_whole", [event])[0] = event

    async def list(
        self,
        api: ApiResource,
        namespace: str = "",
        *,
        reduce: Callable[[Object], Object] = lambda item: item,
        **how: Any,
    ) -> Listing:
        self.asked.append(("list", api.plural, self.selection.slices))
        found = await super().list(api, namespace, **how)
        items = self._chosen(api, found.items)
        return Listing(tuple(map(reduce, items)), found.version)

    def _chosen(self, api: ApiResource, items: Iterable[Object]) -> Iterable[Object]:
        for item in items:
            if self.selection.has(item):
                self.shown.append((api.plural, item["metadata"].get("namespace", "")))
                yield item

    async def watch(
        self,
        api: ApiResource,
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        since: str = "",
        initial: bool = False,
        **_how: Any,
    ) -> AsyncGenerator[WatchEvent, None]:
        self.asked.append(("watch" if since else "fill", api.plural, self.selection.slices))
        if initial:
            while api.kind in self.held:
                await self._news.wait()
            self._fail(api)
            found = self.model.list(api.group, api.kind, namespace)
            since = found.version
            for item in self._chosen(api, found.items):
                if selects(labels, item) and has_fields(fields, item):
                    yield Changed("ADDED", item, item["metadata"]["resourceVersion"])
                    await anyio.lowlevel.checkpoint()
            yield Bookmark(since, synced=True)
        while True:
            self._fail(api)
            slow = api.kind in self.slow
            events = () if slow else self.model.events_since(since, api)
            for event in events:
                since = event.version
                is_chosen = selects(labels, event.object) and has_fields(fields, event.object)
                if is_chosen and any(self._chosen(api, (event.object,))):
                    yield event
            if not events:
                await self._news.wait()


class Replica:
    """One replica of an operator with one controller."""

    def __init__(
        self,
        server: Server,
        controller: Controller[Resource] = CONTROLLER,
        *,
        is_divided: bool = True,
        namespaces: tuple[str, ...] = (),
        reports: Reports | None = None,
    ) -> None:
        self.cluster = Sliced(server)
        self.cache = build(controller, Installation(), namespaces)
        planner = ResourcePlanner(
            controller=controller,
            installation=Installation(),
            cache=self.cache,
            clock=VirtualClock(),
            permission=any_claims,
            reports=reports or Reports(),
        )
        self.runner = ControllerRunner(
            cast("Any", self.cluster), planner, Meters(), division=Division(is_divided)
        )
        self.passes: list[tuple[str, str]] = []
        reconcile = self.runner._reconciler.reconcile

        async def counted(key: Any, size: Any = None) -> Any:
            self.passes.append(key)
            return await reconcile(key, size)

        self.runner._reconciler.reconcile = counted

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[Replica, None]:
        """Run it for as long as the block lasts, then stop it as a signal does."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.runner.run)
            try:
                yield self
            finally:
                self.runner.stop()
                tasks.cancel_scope.cancel()

    async def take(self, slices: Slices) -> None:
        """Have these slices, and no others."""
        assert await self.runner.select(slices)
        await self.runner.begin(slices)

    @property
    def writes(self) -> list[str]:
        return [str(sent) for sent in self.cluster.writes]

    def cached(self) -> dict[tuple[str, str, str], Object]:
        """Return the metadata of all that is cached, by kind, namespace and name."""
        return {
            (source.api.kind, *key): cast("Any", source.store.peek(key))["metadata"]
            for source in self.cache
            for key in sorted(source.store.keys())
        }
