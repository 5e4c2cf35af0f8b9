"""Worlds: what a consumer of `reflect` makes of its events, and how to look over its shoulder."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio

from hedgerow.kube import errors
from hedgerow.kube.cluster import Cluster
from hedgerow.kube.watch import Bookmark, Changed, Snapshot, reflect
from hedgerow_schemas.base import Object
from kube.asking import CONFIG_MAP

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable


class World:
    """What a consumer of `reflect` believes to be there."""

    def __init__(self) -> None:
        self.objects: dict[str, Object] = {}
        self.snapshots = 0
        self.problems: list[errors.KubeError] = []
        self._news = anyio.Event()

    def take(self, event: Snapshot | Changed | Bookmark) -> None:
        match event:
            case Snapshot(items):
                self.objects = {item["metadata"]["name"]: item for item in items}
                self.snapshots += 1
            case Changed("DELETED", item):
                del self.objects[item["metadata"]["name"]]
            case Changed(_, item):
                self.objects[item["metadata"]["name"]] = item
        self._tell()

    def hear(self, problem: errors.KubeError) -> None:
        self.problems.append(problem)
        self._tell()

    def _tell(self) -> None:
        self._news.set()
        self._news = anyio.Event()

    async def until(self, holds: Callable[[], object], within: float = 60) -> None:
        with anyio.fail_after(within):
            while not holds():
                await self._news.wait()


@asynccontextmanager
async def reflected(cluster: Any, namespace: str, **more: Any) -> AsyncGenerator[World]:
    """Return a world that is kept up to date, from its first snapshot on."""
    world = World()

    async def keep() -> None:
        async for event in reflect(cluster, CONFIG_MAP, namespace, on_problem=world.hear, **more):
            world.take(event)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(keep)
        await world.until(lambda: world.snapshots)
        yield world
        tasks.cancel_scope.cancel()


class Recorder:
    """A cluster that writes down from where it was watched; may forget what it was told."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.list = cluster.list
        self.asked: list[tuple[str, bool]] = []
        self.since: dict[int, str] = {}

    async def watch(self, *where: Any, since: str = "", initial: bool = False, **more: Any) -> Any:
        since = self.since.get(len(self.asked), since)
        self.asked.append((since, initial))
        async for event in self.cluster.watch(*where, since=since, initial=initial, **more):
            yield event
