"""Stand-in: the cluster in memory as a watch sees it, with cuts, outages and compactions."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio

from hedgerow.kube.errors import Dropped, Gone, Invalid, KubeError, Unreachable
from hedgerow.kube.retry import RetryClock
from hedgerow.kube.watch import Bookmark, Changed, Listing
from hedgerow.testing.memory.kinds import BUILTIN
from hedgerow.testing.memory.server import Server
from hedgerow_schemas.base import ApiResource

Object = dict[str, Any]
CONFIG_MAP = ApiResource("v1", "ConfigMap", "configmaps")
Step = Callable[[], object]


class StandIn:
    """Whenever the watch is up to date, the next step is done; after the last one comes `end`.

    `refusals` are errors by kind that answer every list and watch.
    """

    namespace = "default"

    def __init__(self, *steps: Step) -> None:
        self.model = Server(BUILTIN, ("default", "other"))
        self.steps = list(steps)
        self.end: Callable[[], Awaitable[None]] = anyio.sleep_forever
        self.refusals: dict[str, KubeError] = {}
        self.connections: list[Object] = []
        self.asked: list[Any] = []
        self.on_asked: Step = int
        self.streams = True
        """Whether the server knows WatchLists."""
        self.refused_live: KubeError | None = None
        """What answers a watch from a version on."""
        self._cut: KubeError | None = None
        self._down = 0
        self._oldest = 0

    # --- steps --------------------------------------------------------------------------------

    def put(
        self, name: str, namespace: str = "default", manager: str = "user", **data: str
    ) -> Object:
        """Apply a ConfigMap."""
        return self.model.apply({**config(name, namespace), "data": data}, manager)[0]

    def remove(self, name: str, namespace: str = "default") -> None:
        self.model.delete(config(name, namespace))

    def cut(self) -> None:
        """End the open watch as a lost connection does."""
        self._cut = Dropped("cut")

    def go_down(self, attempts: int = 1) -> None:
        """End the open watch, and answer none of so many requests."""
        self.cut()
        self._down = attempts

    def compact(self) -> None:
        """Write something of another kind, and forget all events before: they are Gone now."""
        self.model.version += 1
        self._oldest = self.model.version

    def restore(self, backup: Server) -> None:
        """Go on from a backup, whose versions are older."""
        self.model = backup
        self._oldest = 0

    # --- what `reflect` asks ------------------------------------------------------------------

    async def list(
        self, api: ApiResource, namespace: str = "", *, labels: str = "", reduce: Any, **_: Any
    ) -> Listing:
        self.asked.append(("list", api.kind, namespace, labels))
        await self._answer(api)
        found = self.model.list(api.group, api.kind, namespace)
        return Listing(tuple(map(reduce, found.items)), found.version)

    async def watch(
        self,
        api: ApiResource,
        namespace: str = "",
        *,
        labels: str = "",
        since: str = "",
        initial: bool = False,
        **_: Any,
    ) -> AsyncGenerator[Changed | Bookmark]:
        self.asked.append(("watch", api.kind, namespace, labels))
        await self._answer(api)
        if initial and not self.streams:
            raise Invalid("sendInitialEvents is forbidden", code=422)
        if not initial and self.refused_live:
            raise self.refused_live
        if not initial and int(since) < self._oldest:
            raise Gone("too old resource version", code=410)
        position = int(since or 0)
        if initial:
            found = self.model.list(api.group, api.kind, namespace)
            for item in found.items:
                yield Changed("ADDED", item, item["metadata"]["resourceVersion"])
            position = int(found.version)
            yield Bookmark(found.version, synced=True)
        while True:
            if self._cut:
                error, self._cut = self._cut, None
                raise error
            for event in self.model.events_since(position, api):
                position = int(event.version)
                here = namespace in {"", event.object["metadata"]["namespace"]}
                yield event if here else Bookmark(event.version)
            await self._next()

    async def _next(self) -> None:
        await anyio.lowlevel.checkpoint()
        if self.steps:
            self.steps.pop(0)()
        else:
            await self.end()

    async def _answer(self, api: ApiResource) -> None:
        self.on_asked()
        await anyio.lowlevel.checkpoint()
        if self._down:
            self._down -= 1
            raise Unreachable("connection refused", sent=False, request="GET /api")
        if api.kind in self.refusals:
            raise self.refusals[api.kind]

    # --- what the command asks besides --------------------------------------------------------

    @asynccontextmanager
    async def connect(self, **given: Any):
        self.connections.append(given)
        yield self

    async def get(self, path: str, **_: Any) -> Any:
        kinds: dict[str, list[Object]] = {}
        for kind in BUILTIN:
            root = f"/apis/{kind.api.group_version}" if kind.api.group else "/api/v1"
            kinds.setdefault(root, []).append(listed(kind.api))
        kinds["/api/v1"].append(listed(ApiResource("v1", "Pod", "pods"), shortNames=["po"]))
        kinds["/api/v1"].append(listed(ApiResource("v1", "Node", "nodes", namespaced=False)))
        if path == "/api":
            return {"versions": ["v1"]}
        if path == "/apis":
            versions = [root.removeprefix("/apis/") for root in kinds if root != "/api/v1"]
            return {"groups": [{"preferredVersion": {"groupVersion": v}} for v in versions]}
        return {"resources": kinds[path]}


def config(name: str, namespace: str = "default") -> Object:
    meta = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}


def listed(api: ApiResource, **more: Any) -> Object:
    """Return an entry of discovery."""
    named = {"name": api.plural, "kind": api.kind, "namespaced": api.namespaced}
    return {**named, "singularName": api.kind.lower(), "verbs": ["get", "watch"], **more}


def impatient() -> RetryClock:
    """Time that passes by sleeping."""
    now = 0.0

    async def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds
        await anyio.lowlevel.checkpoint()

    return RetryClock(now=lambda: now, sleep=sleep, draw=lambda: 0.0)


def all_of(*steps: Step) -> Step:
    """Return one step that does all of these, before anything of them is seen."""

    def together() -> None:
        for step in steps:
            step()

    return together
