"""Operators of one division on the cluster in memory: each serves a part of the namespaces."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from faults.built_in import DB, source
from hedgerow import app
from hedgerow.kube import selection
from hedgerow.kube.watch import Bookmark, Listing, WatchEvent
from hedgerow.process import leadership
from hedgerow.registry import Registry
from hedgerow.runtime.leaderelection.record import LEASES
from hedgerow.settings import Settings
from hedgerow.shard import Shard
from hedgerow.testing.memory import kinds
from hedgerow.testing.memory.cluster import MemoryCluster
from hedgerow.testing.memory.server import Server
from hedgerow.testing.memory.watched import Watched
from hedgerow.testing.virtual import BACKEND, VirtualClock
from model import ours
from support.operator.inline import inline
from support.operator.operating import BLUEGREEN, Process, quiet
from support.operator.registered import ALL, REGISTRY

pytestmark = pytest.mark.anyio

PLACES = tuple(f"team-{letter}" for letter in "abcdefgh")
HOME = "secretsync"


@pytest.fixture
def anyio_backend() -> object:
    return BACKEND


class Filtered:
    """What a shard reads of a cluster: `shown` are the namespaces of what it was given."""

    def __init__(self, whole: Whole, shard: Shard) -> None:
        self._whole, self._shard = whole, shard

    def _takes(self, obj: Any) -> bool:
        return selection.has(self._shard, obj)

    async def list(self, *place: Any, **how: Any) -> Listing:
        found = await self._whole.list(*place, **how)
        return Listing(tuple(filter(self._takes, found.items)), found.version)

    async def watch(self, *place: Any, **how: Any) -> AsyncGenerator[WatchEvent, None]:
        async for event in self._whole.watch(*place, **how):
            if isinstance(event, Bookmark) or self._takes(event.object):
                yield event


class Whole(Watched):
    """One operator's way to the cluster, which can be read in part; `all_of_them` hear of news."""

    def __init__(self, server: Server, all_of_them: list[Whole]) -> None:
        super().__init__(server)
        self._all = all_of_them
        all_of_them.append(self)

    def fenced(self, *permit: Any) -> Any:
        fenced: Any = super().fenced(*permit)
        self._all.append(fenced)
        return fenced

    async def _ask(self, sent: Any, act: Any) -> Any:
        try:
            return await super()._ask(sent, act)
        finally:
            for each in self._all if sent.writes else ():
                each.wake()

    def only(self, shard: Shard) -> Filtered:
        return Filtered(self, shard)


class Operators(Process):
    """Several operators beside each other, in virtual time; they are told apart by user agent."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(monkeypatch)
        served = (ours.bluegreen(), ours.memcached(), ours.cronjob(), kinds.NAMESPACE)
        places = ("hedgerow-system", HOME, *PLACES)
        self.server = Server((*kinds.BUILTIN, *served), places)
        for name in places:
            meta = {"name": name, "labels": {"kubernetes.io/metadata.name": name}}
            self.server.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": meta}, "user")
        self.clusters: dict[str, Whole] = {}
        all_of_them: list[Whole] = []
        version = self.cluster.get

        @asynccontextmanager
        async def connect(*, user_agent: str, **_how: Any) -> AsyncGenerator[Whole]:
            self.clusters[user_agent] = cluster = Whole(self.server, all_of_them)
            monkeypatch.setattr(cluster, "get", version, raising=False)
            yield cluster

        @asynccontextmanager
        async def elected(**_how: Any) -> AsyncGenerator[MemoryCluster]:
            yield MemoryCluster(self.server)

        monkeypatch.setattr(app, "connect", connect)
        monkeypatch.setattr(app, "SystemClock", VirtualClock)
        monkeypatch.setattr(leadership, "connect", elected)
        monkeypatch.setattr(leadership, "own_thread", inline)

    async def run(self, registry: Registry, *settings: Settings, seconds: float = 60) -> None:
        """Run operators with these settings for a while."""
        async with anyio.create_task_group() as tasks:
            for each in settings:
                await tasks.start(app.run, each, registry)
            await anyio.sleep(seconds)
            tasks.cancel_scope.cancel()

    def written(self) -> dict[str, set[str]]:
        """Return the namespaces in which each operator wrote, by the end of its user agent."""
        found: defaultdict[str, set[str]] = defaultdict(set)
        for agent, cluster in self.clusters.items():
            name = agent.partition("(shard ")[2].removesuffix(")") or "all"
            found[name] |= {sent.namespace for sent in cluster.writes if sent.api != LEASES}
        return dict(found)

    def watched(self, shard: str) -> set[str]:
        """Return the kinds that a shard watches."""
        return set(next(c for agent, c in self.clusters.items() if shard in agent).tried)


@pytest.fixture
def operators(monkeypatch) -> Operators:
    return Operators(monkeypatch)


def shards(count: int, **more: Any) -> list[Settings]:
    return [quiet(shard=f"{number}/{count}", **more) for number in range(count)]


def placed(places: Iterable[str]) -> Iterable[Any]:
    for place in places:
        yield {**BLUEGREEN, "metadata": {"name": "demo", "namespace": place}}


class TestNamespaces:
    async def test_each_serves_its_own_and_together_they_serve_all(self, operators):
        for resource in placed(PLACES):
            operators.server.apply(resource, "user")
        await operators.run(REGISTRY, *shards(3))

        for shard, places in operators.written().items():
            assert places == set(filter(Shard.parse(shard).serves, PLACES))
        made = operators.server.list("apps", "Deployment", "").items
        assert {each["metadata"]["namespace"] for each in made} == {*PLACES}

    async def test_of_those_that_are_named_each_watches_its_own(self, operators):
        for resource in placed(PLACES):
            operators.server.apply(resource, "user")
        named = PLACES[:2]
        await operators.run(REGISTRY, *shards(2, namespaces=named))

        for shard, places in operators.written().items():
            assert places == set(filter(Shard.parse(shard).serves, named))


class TestClusterScoped:
    async def test_what_is_in_no_namespace_is_served_whole_by_the_first(self, operators):
        controllers = tuple(c for c in ALL.controllers if c.name == "secretsync")
        registry = Registry(controllers).configured({"secretsync": {"namespace": HOME}})
        secret = source(DB, {"user": "a"})
        secret["metadata"] |= {"namespace": HOME}
        operators.server.apply(secret, "user")
        await operators.run(registry, *shards(2, controllers=("secretsync",)))

        copies = operators.server.list("", "Secret", "").items
        assert {each["metadata"]["namespace"] for each in copies} >= {*PLACES}
        assert operators.written()["0/2"] >= {*PLACES}
        assert operators.written()["1/2"].isdisjoint(PLACES)
        assert "namespaces" not in operators.watched("shard 1/2")


class TestDivisions:
    async def test_another_division_writes_only_when_the_former_is_gone(self, operators):
        for resource in placed(PLACES):
            operators.server.apply(resource, "user")
        async with anyio.create_task_group() as later:
            async with anyio.create_task_group() as former:
                for each in shards(2):
                    await former.start(app.run, each, REGISTRY)
                await anyio.sleep(60)
                for each in shards(3):
                    await later.start(app.run, each, REGISTRY)
                await anyio.sleep(60)
                assert {"0/3", "1/3", "2/3"} <= operators.written().keys()
                assert not any(operators.written()[f"{n}/3"] for n in range(3))
                former.cancel_scope.cancel()
            for resource in placed(PLACES):
                operators.server.apply(resource | {"spec": _green()}, "user", force=True)
            await anyio.sleep(30)
            later.cancel_scope.cancel()

        for number in range(3):
            wrote = operators.written()[f"{number}/3"]
            assert wrote == set(filter(Shard(number, 3).serves, PLACES))


def _green() -> Any:
    pod = {"containers": [{"name": "c", "image": "example/echo:2"}]}
    return {"routeTo": "Green", "greenSpec": pod, "blueSpec": pod}
