"""A part of the namespaces, read from a real API server that selects it.

From one that does not: test_sharding.py, and tests/runtime/test_sharding.py in memory.
"""

from __future__ import annotations

import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, cast

import anyio
import anyio.to_thread
import pytest

from hedgerow.controllers.bluegreen import controller as bluegreen
from hedgerow.kube.client import connect
from hedgerow.kube.cluster import Cluster
from hedgerow.kube.selection import Selected
from hedgerow.kube.wire import LineSplitter
from hedgerow.objects import Installation
from hedgerow.runtime.cache.caches import Cache, build
from hedgerow.runtime.clock import SystemClock
from hedgerow.runtime.metrics import Meters
from hedgerow.runtime.observation import ResourcePlanner
from hedgerow.runtime.runner import ControllerRunner
from hedgerow.runtime.sharding import Division
from hedgerow.sandbox.cluster import Options, Sandbox
from hedgerow.shards.slices import COUNT, Slices
from hedgerow.testing.api import Api
from hedgerow.testing.memory.inmemory import any_claims
from hedgerow.testing.sandboxes import running
from hedgerow.testing.waiting import eventually
from hedgerow_schemas.base import ApiResource
from hedgerow_schemas.builtin import Deployment
from runtime.sharded import only
from runtime.world import pods
from support.cluster.worlds import with_custom_resources

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("newest", "api")]

CONTROLLER = cast("Any", bluegreen.CONTROLLER)
CONFIG_MAP = ApiResource("v1", "ConfigMap", "configmaps")
GATE = "ShardedListAndWatch=true"
PAD = "x" * 20_000


@pytest.fixture(scope="module")
def gated(kubernetes: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """An API server that selects slices itself."""
    options = Options(kubernetes=kubernetes, feature_gates=GATE)
    with running(tmp_path_factory.mktemp("gated") / "cluster", options) as up:
        with_custom_resources(Api(up.kubeconfig)).close()
        yield up


@pytest.fixture
def people(gated: Sandbox) -> Iterator[People]:
    """Who edits BlueGreens on that server."""
    api = Api(gated.kubeconfig)
    yield People(api, gated.kubeconfig)
    api.close()


class Part:
    """A runner on a real server, that reads a part of it."""

    def __init__(self, cluster: Cluster) -> None:
        self.cache: Cache = build(CONTROLLER, Installation(), ())
        planner = ResourcePlanner(
            controller=cast("Any", CONTROLLER),
            installation=Installation(),
            cache=self.cache,
            clock=SystemClock(),
            permission=any_claims,
        )
        division = Division(True, by_server=True)
        self.runner = ControllerRunner(cluster, planner, Meters(), division=division)
        self.passes: list[str] = []
        reconcile = self.runner._reconciler.reconcile

        async def counted(key: Any, size: Any = None) -> Any:
            self.passes.append(key[0])
            return await reconcile(key, size)

        self.runner._reconciler.reconcile = counted

    async def take(self, slices: Slices) -> None:
        assert await self.runner.select(slices)
        await self.runner.begin(slices)

    @property
    def namespaces(self) -> set[str]:
        return {key[0] for source in self.cache for key in sorted(source.store.keys())}


@asynccontextmanager
async def at_work(kubeconfig: Path) -> AsyncGenerator[Part, None]:
    async with connect(kubeconfig=str(kubeconfig)) as cluster:
        part = Part(cluster)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(part.runner.run)
            yield part
            tasks.cancel_scope.cancel()


async def until(done: Callable[[], bool]) -> None:
    await anyio.to_thread.run_sync(partial(eventually, done))


class People:
    """Who edits BlueGreens in some namespaces, by plain requests."""

    def __init__(self, api: Api, kubeconfig: Path) -> None:
        self.api, self.kubeconfig = api, kubeconfig
        self.routes: dict[str, str] = {}

    def begin(self, *namespaces: str) -> None:
        for name in namespaces:
            self.api.namespace(name)
            self.routes[name] = "Green"
            self.turn(name)

    def turn(self, namespace: str, pad: str = "") -> None:
        """Have the other colour routed to."""
        self.routes[namespace] = route = "Blue" if self.routes[namespace] == "Green" else "Green"
        body = {
            **self._target("BlueGreen", namespace),
            "spec": {"routeTo": route, "blueSpec": pods("blue"), "greenSpec": pods("green")},
        }
        body["metadata"]["annotations"] = {"example.com/pad": pad}
        self.api.apply(body, "people", force=True).must()

    def _target(self, kind: str, namespace: str) -> dict[str, Any]:
        group = CONTROLLER.resource.api.group_version if kind == "BlueGreen" else "v1"
        metadata = {"name": "demo", "namespace": namespace}
        return {"apiVersion": group, "kind": kind, "metadata": metadata}

    def is_done(self, namespace: str) -> bool:
        """Whether the Service selects the colour that is routed to."""
        found = self.api.get(self._target("Service", namespace))
        if not found.ok:
            return False
        phase = found.body["spec"]["selector"]["app.kubernetes.io/phase"]
        return phase == self.routes[namespace]

    def are_done(self) -> bool:
        return all(map(self.is_done, self.routes))

    def version(self, namespace: str) -> str:
        found = self.api.get(self._target("BlueGreen", namespace)).must()
        return found["metadata"]["resourceVersion"]


@pytest.fixture
def received(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The bytes of every piece of a watch that was received."""
    sizes: list[int] = []
    feed = LineSplitter.feed

    def counted(self: LineSplitter, chunk: bytes) -> list[bytes]:
        sizes.append(len(chunk))
        return feed(self, chunk)

    monkeypatch.setattr(LineSplitter, "feed", counted)
    return sizes


class TestTheServer:
    async def test_says_whether_it_selects(self, sandbox, gated):
        """Not in lists of custom resources, which it selects all the same."""
        for cluster, selects in ((sandbox, False), (gated, True)):
            async with connect(kubeconfig=str(cluster.kubeconfig)) as server:
                assert await server.selects(Deployment.api) is selects
                assert await server.selects(CONTROLLER.resource.api) is False

    async def test_takes_as_many_ranges_as_there_may_be(self, gated):
        width = COUNT // 512
        ranges = Slices.of((at * width, at * width + 1) for at in range(0, 512, 2))
        assert len(ranges.ranges) == 256
        async with connect(kubeconfig=str(gated.kubeconfig)) as server:
            some = server.only(Selected(ranges, by_server=True))
            assert (await some.list(CONFIG_MAP)).items == ()

    async def test_selects_the_namespaces_that_we_do(self, gated):
        names = ["a", "team-a", "team-b", "x" * 63, "0-9"]
        api = Api(gated.kubeconfig)
        for name in names:
            api.namespace(name)
            meta = {"name": "it", "namespace": name}
            api.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}, "people").must()
        api.close()
        async with connect(kubeconfig=str(gated.kubeconfig)) as server:
            for name in names:
                part = server.only(Selected(only(name), by_server=True))
                whole = await server.list(CONFIG_MAP, fields="metadata.name=it")
                found = await part.list(CONFIG_MAP, fields="metadata.name=it")
                assert len(whole.items) >= len(names)
                assert [item["metadata"]["namespace"] for item in found.items] == [name]


class TestAPart:
    async def test_is_all_that_a_runner_reads_and_does(self, people, received):
        mine, others = ("sees-a", "sees-b"), ("sees-c", "sees-d")
        people.begin(*mine, *others)
        async with at_work(people.kubeconfig) as part:
            await part.take(only(*mine))
            await until(lambda: all(map(people.is_done, mine)))
            assert not any(map(people.is_done, others))
            assert part.namespaces == {*mine}
            await until(lambda: part.runner.queue.idle)

            received.clear()
            part.passes.clear()
            for _ in range(4):
                for name in others:
                    people.turn(name, PAD)
            people.turn("sees-a")
            await until(lambda: people.is_done("sees-a"))
            assert set(part.passes) == {"sees-a"}
            assert sum(received) < len(PAD)

    async def test_may_grow_and_shrink_while_objects_change(self, people):
        names = tuple(f"turns-{letter}" for letter in "abcd")
        people.begin(*names)
        async with at_work(people.kubeconfig) as part:
            await part.take(only(*names[:2]))
            enough = threading.Event()

            def edit() -> None:
                while not enough.is_set():
                    for name in names:
                        people.turn(name)

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(anyio.to_thread.run_sync, edit)
                try:
                    for turn in range(8):
                        await part.take(only(*names[turn % 4 :], names[0]))
                finally:
                    enough.set()
            await part.take(only(*names))
            await until(people.are_done)

            resources = part.cache.resources[0].store

            def is_same() -> bool:
                live = {name: people.version(name) for name in names}
                return live == {
                    key[0]: cast("Any", resources.peek(key))["metadata"]["resourceVersion"]
                    for key in sorted(resources.keys())
                }

            await until(is_same)

            await part.take(only(names[0]))
            part.passes.clear()
            people.turn(names[1])
            people.turn(names[0])
            await until(lambda: people.is_done(names[0]))
            assert set(part.passes) == {names[0]}
            assert part.namespaces == {names[0]}
            assert not people.is_done(names[1])
