"""The operator, and `hedgerow watch`, through the loss of the API server: nothing is missed."""

from __future__ import annotations

import secrets
import signal
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from hedgerow_testing.api import Api, Object
from hedgerow_testing.sandbox.cluster import Options, Sandbox
from hedgerow_testing.sandboxes import running as cluster
from hedgerow_testing.waiting import eventually
from support.cluster.bluegreens import USER, World, prepare
from support.operator.running import Operator
from support.programs.following import Following

pytestmark = [pytest.mark.cluster]

API_SERVER = "kube-apiserver"


@pytest.fixture(scope="module")
def fragile(kubernetes: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """An API server that these tests may kill."""
    root = tmp_path_factory.mktemp("fragile")
    options = Options(kubernetes=kubernetes, audit=root / "audit.log")
    with cluster(root / "cluster", options) as up:
        api = Api(up.kubeconfig)
        prepare(api)
        api.close()
        yield up


@pytest.fixture
def kubeconfig(fragile: Sandbox) -> Path:
    return anyio.run(fragile.kubeconfig_for, USER)


@pytest.fixture
def world(fragile: Sandbox) -> Iterator[World]:
    api = Api(fragile.kubeconfig)
    yield World(api, api.namespace(f"recovery-{secrets.token_hex(4)}"))
    api.close()


def restart(sandbox: Sandbox) -> None:
    """Kill the API server, and start it anew once it has let go of its port."""
    sandbox.kill(API_SERVER, signal.SIGKILL)
    anyio.run(sandbox.stop, API_SERVER)
    anyio.run(sandbox.start, API_SERVER)


def follows(world: World, colour: str) -> None:
    """The operator is at work: the Service follows a flip."""
    world.apply(route_to=colour)
    eventually(lambda: world.selected() == colour, within=60, what=f"selects {colour}")


def test_what_was_deleted_meanwhile_is_made_again(
    fragile: Sandbox, world: World, kubeconfig: Path, tmp_path: Path
):
    """Fact: etcd's compaction leaves no watch event of a deletion.

    The watch cannot tell of it: the operator is frozen and its old versions compacted.
    """
    with Operator(kubeconfig, tmp_path / "log", "--namespace", world.namespace) as operator:
        follows(world, "Blue")
        with operator.frozen():
            restart(fragile)
            gone = world.get("Service", "demo")["metadata"]["uid"]
            world.delete("Service", "demo")

        def is_back() -> bool:
            live = world.get("Service", "demo")
            return live is not None and live["metadata"]["uid"] != gone

        eventually(is_back, within=90)


def test_what_happened_during_a_gap_is_told_once_by_watch(
    fragile: Sandbox, world: World, tmp_path: Path
):
    """Fact: a restarted server's watch cannot tell of what was before it."""
    api = world.api

    def config(name: str, **data: str) -> Object:
        return {**world.target("ConfigMap", name), "data": data}

    def told(since: int = 0) -> list[str]:
        found = (one for one in watching.lines()[since:] if "name" in one)
        return [f"{one['type']} {one['name']}" for one in found]

    for name in ("stays", "goes", "changes", "anew"):
        api.apply(config(name, x="1"), "author").must()
    words = ("watch", "configmaps", "-o", "json", "-n", world.namespace)
    watching = Following(fragile.kubeconfig, tmp_path / "out", *words)
    try:
        watching.says("SYNCED", within=60)
        with watching.frozen():
            restart(fragile)
            for name in ("goes", "anew"):
                world.delete("ConfigMap", name)
            api.apply(config("anew"), "author").must()
            world.edit("ConfigMap", "changes", {"data": {"x": "2"}})
            api.apply(config("fresh"), "author").must()
            restart(fragile)
        watching.says('"again":true', within=90)
        gap = ["ADDED anew", "ADDED fresh", "DELETED anew", "DELETED goes", "UPDATED changes"]
        assert sorted(told()) == gap
        assert all(one["duringGap"] for one in watching.lines() if "name" in one)

        since = len(watching.lines())
        world.delete("ConfigMap", "stays")
        watching.says('"DELETED".*"stays"')
        assert told(since) == ["DELETED stays"]
    finally:
        watching.kill()
