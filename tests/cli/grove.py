"""Grove: a cluster of these objects that lists and watches, as far as a tree asks for it."""

from __future__ import annotations

import copy
import os
import signal
from collections.abc import AsyncGenerator, Awaitable, Callable
from math import inf
from typing import Any

import anyio
from anyio.abc import ObjectSendStream

from hedgerow.kube.errors import KubeError, Missing, discovery_of
from hedgerow.kube.watch import Bookmark, Changed, Listing
from hedgerow_schemas.base import ApiResource

Object = dict[str, Any]


class Grove:
    """When all that is watched was told, `meanwhile` runs; then comes Ctrl-C."""

    namespace = "ns"

    def __init__(self, *objects: Object) -> None:
        self.objects: dict[tuple[str, str, str], Object] = {}
        self.refusals: dict[str, Exception] = {}
        self.unserved: set[str] = set()
        self.lists: list[tuple[str, str, str]] = []
        self.watches: list[tuple[str, str]] = []
        self.asked: list[Object] = []
        self.meanwhile: Callable[[], Awaitable[None]] | None = None
        self.acting = "Deployment"
        """The kind that is watched when `meanwhile` begins."""
        self._streams: dict[str, ObjectSendStream[Any]] = {}
        for obj in objects:
            self.put(obj)

    def put(self, obj: Object) -> None:
        meta = obj["metadata"]
        self.objects[obj["kind"], meta["namespace"], meta["name"]] = obj

    async def list(
        self, api: ApiResource, namespace: str = "", *, fields: str = "", reduce: Any, **_: Any
    ) -> Listing:
        self.lists.append((api.kind, namespace, fields))
        self.lists.sort(key=lambda asked: (not asked[2], asked))
        self._refuse(api.kind)
        name = fields.partition("=")[2]
        found = self._there(api.kind, namespace)
        named = (obj for obj in found if name in {"", obj["metadata"]["name"]})
        return Listing(tuple(reduce(copy.deepcopy(obj)) for obj in named), "1")

    async def resource(self, group_version: str, kind: str) -> None:
        if kind in self.unserved:
            raise Missing("not served", request=discovery_of(kind, group_version))

    async def read(self, api: ApiResource, name: str, namespace: str = "", **_: Any) -> Any:
        self._refuse(api.kind)
        return copy.deepcopy(self.objects.get((api.kind, namespace, name)))

    async def watch(
        self, api: ApiResource, namespace: str = "", **_: Any
    ) -> AsyncGenerator[Changed | Bookmark]:
        self.watches.append((api.kind, namespace))
        self._refuse(api.kind)
        for obj in self._there(api.kind, namespace):
            yield Changed("ADDED", copy.deepcopy(obj), "1")
        send, receive = anyio.create_memory_object_stream[Any](inf)
        self._streams[api.kind] = send
        yield Bookmark("1", synced=True)
        cut: KubeError | None = None
        async with send, receive, anyio.create_task_group() as group:
            if api.kind == self.acting and self.meanwhile is not None:
                group.start_soon(self._act)
            async for event in receive:
                if isinstance(event, KubeError):
                    cut = event
                    break
                yield event
        if cut is not None:
            raise cut

    async def tell(self, obj: Object, kind: Any = "MODIFIED") -> None:
        """Tell of a change, and let it be seen before anything else happens."""
        await self._streams[obj["kind"]].send(Changed(kind, obj, "2"))
        await _seen()

    async def mark(self, kind: str) -> None:
        """Tell that nothing happened."""
        await self._streams[kind].send(Bookmark("2"))
        await _seen()

    async def fail(self, kind: str, error: KubeError) -> None:
        """Cut a watch, and refuse it from now on."""
        self.refusals[kind] = error
        await self._streams[kind].send(error)
        await _seen()

    async def _act(self) -> None:
        await _seen()
        assert self.meanwhile is not None
        await self.meanwhile()
        os.kill(os.getpid(), signal.SIGINT)

    def _there(self, kind: str, namespace: str) -> list[Object]:
        keys = sorted(key for key in self.objects if key[0] == kind)
        return [self.objects[key] for key in keys if namespace in {"", key[1]}]

    def _refuse(self, kind: str) -> None:
        if kind in self.refusals:
            raise self.refusals[kind]


async def _seen() -> None:
    await anyio.wait_all_tasks_blocked()
