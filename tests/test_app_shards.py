"""Operators of one division on the cluster in memory: each serves a part of the namespaces."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from faults.built_in import DB, source
from hedgerow import app
from hedgerow.kube.cluster import Cluster
from hedgerow.kube.session import Session
from hedgerow.process import leadership
from hedgerow.process.leaderelection import thread
from hedgerow.process.leaderelection.record import LEASES
from hedgerow.registry import Registry
from hedgerow.settings import Settings
from hedgerow.shard import Shard
from hedgerow_testing.virtual import BACKEND, VirtualClock
from support.operator.inline import inline
from support.operator.operating import BLUEGREEN, quiet
from support.operator.registered import ALL, REGISTRY
from support.server.apiserver import ApiServer
from support.server.connected import Clock, Login

pytestmark = pytest.mark.anyio

PLACES = tuple(f"team-{letter}" for letter in "abcdefgh")
HOME = "secretsync"


@pytest.fixture
def anyio_backend() -> object:
    return BACKEND


class Operators:
    """Several operators beside each other, in virtual time; they are told apart by user agent."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.api = ApiServer(lambda: VirtualClock().now().timestamp(), latency=0)
        self.agents: list[str] = []
        for name in ("hedgerow-system", HOME, *PLACES):
            meta = {"name": name, "labels": {"kubernetes.io/metadata.name": name}}
            self.api.store.open_namespace(name)
            self.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": meta})

        @asynccontextmanager
        async def connect(*, user_agent: str, **_how: Any) -> AsyncGenerator[Cluster]:
            self.agents.append(user_agent)
            yield self.client(user_agent)

        @asynccontextmanager
        async def elected(**_how: Any) -> AsyncGenerator[Cluster]:
            yield self.client("the election")

        monkeypatch.setattr(app, "connect", connect)
        monkeypatch.setattr(app, "SystemClock", VirtualClock)
        monkeypatch.setattr(leadership, "connect", elected)
        monkeypatch.setattr(thread, "start", inline)

    def client(self, name: str) -> Cluster:
        login: Any = Login(self.api, name)
        timing = Clock().timing
        return Cluster(Session(login, anyio.sleep_forever, concurrency=32, timing=timing))

    def apply(self, obj: Any) -> None:
        self.api.store.apply(obj, "user", force=True)

    def there(self, group: str, kind: str) -> set[str]:
        """Return the namespaces in which there are objects of a kind."""
        found = self.api.store.list(group, kind).items
        return {each["metadata"]["namespace"] for each in found}

    async def run(self, registry: Registry, *settings: Settings, seconds: float = 60) -> None:
        """Run operators with these settings for a while."""
        async with anyio.create_task_group() as tasks:
            for each in settings:
                await tasks.start(app.run, each, registry)
            await anyio.sleep(seconds)
            tasks.cancel_scope.cancel()

    def written(self) -> dict[str, set[str]]:
        """Return the namespaces in which each operator wrote, by the end of its user agent."""
        found = {_shard_of(agent): set[str]() for agent in self.agents}
        for sent in self.api.exchanges:
            if sent.writes and sent.api != LEASES:
                found[_shard_of(sent.client)].add(sent.namespace)
        return found

    def watched(self, shard: str) -> set[str]:
        """Return the kinds that a shard watches."""
        told = (sent for sent in self.api.exchanges if sent.verb == "watch")
        return {sent.api.plural for sent in told if _shard_of(sent.client) == shard}


def _shard_of(agent: str) -> str:
    return agent.partition("(shard ")[2].removesuffix(")") or "all"


@pytest.fixture
async def operators(monkeypatch) -> Operators:
    return Operators(monkeypatch)


def shards(count: int, **more: Any) -> list[Settings]:
    return [quiet(shard=f"{number}/{count}", **more) for number in range(count)]


def placed(places: Iterable[str]) -> Iterable[Any]:
    for place in places:
        yield {**BLUEGREEN, "metadata": {"name": "demo", "namespace": place}}


class TestNamespaces:
    async def test_each_serves_its_own_and_together_they_serve_all(self, operators):
        for resource in placed(PLACES):
            operators.apply(resource)
        await operators.run(REGISTRY, *shards(3))

        for shard, places in operators.written().items():
            assert places == set(filter(Shard.parse(shard).serves, PLACES))
        assert operators.there("apps", "Deployment") == {*PLACES}

    async def test_of_those_that_are_named_each_watches_its_own(self, operators):
        for resource in placed(PLACES):
            operators.apply(resource)
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
        operators.apply(secret)
        await operators.run(registry, *shards(2, controllers=("secretsync",)))

        assert operators.there("", "Secret") >= {*PLACES}
        assert operators.written()["0/2"] >= {*PLACES}
        assert operators.written()["1/2"].isdisjoint(PLACES)
        assert "namespaces" not in operators.watched("1/2")


class TestDivisions:
    async def test_another_division_writes_only_when_the_former_is_gone(self, operators):
        for resource in placed(PLACES):
            operators.apply(resource)
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
                operators.apply(resource | {"spec": _green()})
            await anyio.sleep(30)
            later.cancel_scope.cancel()

        for number in range(3):
            wrote = operators.written()[f"{number}/3"]
            assert wrote == set(filter(Shard(number, 3).serves, PLACES))


def _green() -> Any:
    pod = {"containers": [{"name": "c", "image": "example/echo:2"}]}
    return {"routeTo": "Green", "greenSpec": pod, "blueSpec": pod}
