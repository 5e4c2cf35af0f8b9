"""The operator through the loss of its API server: it comes back by itself and misses nothing."""

from __future__ import annotations

import secrets
import signal
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import anyio
import pytest
import yaml

from hedgerow.sandbox.cluster import Options, Sandbox
from hedgerow.testing.api import Api
from hedgerow.testing.audit_log import AuditLog
from hedgerow.testing.sandboxes import running as cluster
from hedgerow.testing.waiting import eventually
from support.cluster.bluegreens import USER, World, prepare
from support.cluster.proxy import Proxy
from support.operator.running import Operator

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


def again(sandbox: Sandbox) -> None:
    """Start the API server anew, once the killed one has let go of its port."""
    anyio.run(sandbox.stop, API_SERVER)
    anyio.run(sandbox.start, API_SERVER)


def follows(world: World, colour: str) -> None:
    """The operator is at work: the Service follows a flip."""
    world.apply(route_to=colour)
    eventually(lambda: world.selected() == colour, within=60, what=f"selects {colour}")


class TestCounting:
    def test_a_bluegreen_takes_four_writes_to_create_and_two_to_flip(
        self, fragile: Sandbox, world: World, kubeconfig: Path, tmp_path: Path
    ):
        audit_log = AuditLog(fragile.directory.with_name("audit.log"))
        with Operator(kubeconfig, tmp_path / "log"):
            mark = audit_log.mark()
            world.apply()
            eventually(lambda: world.status().get("routeTo") == "Blue")
            # What is there to be read is on record a moment later.
            eventually(lambda: len(audit_log.writes(mark, user=USER)) >= 4)
            assert len(audit_log.writes(mark, user=USER)) == 4

            mark = audit_log.mark()
            world.apply(route_to="Green")
            eventually(lambda: world.status().get("routeTo") == "Green")
            eventually(lambda: len(audit_log.writes(mark, user=USER)) >= 2)
            assert len(audit_log.writes(mark, user=USER)) == 2


class TestLosingTheServer:
    def test_a_killed_server_is_waited_for(
        self, fragile: Sandbox, world: World, kubeconfig: Path, tmp_path: Path
    ):
        with Operator(kubeconfig, tmp_path / "log") as operator:
            follows(world, "Blue")

            fragile.kill(API_SERVER, signal.SIGKILL)
            eventually(lambda: operator.logged("watch in trouble"))
            again(fragile)

            follows(world, "Green")
            assert operator.stop() == 0

    def test_what_was_deleted_meanwhile_is_made_again(
        self, fragile: Sandbox, world: World, kubeconfig: Path, tmp_path: Path
    ):
        """The watch cannot tell of it: the operator is frozen and its old versions compacted."""
        with Operator(kubeconfig, tmp_path / "log") as operator:
            follows(world, "Blue")
            with operator.frozen():
                fragile.kill(API_SERVER, signal.SIGKILL)
                again(fragile)
                gone = world.get("Service", "demo")["metadata"]["uid"]
                world.delete("Service", "demo")

            def is_back() -> bool:
                live = world.get("Service", "demo")
                return live is not None and live["metadata"]["uid"] != gone

            eventually(is_back, within=90)

    def test_half_open_connections_are_noticed(
        self, fragile: Sandbox, world: World, kubeconfig: Path, tmp_path: Path
    ):
        """Nothing comes any more and nothing closes: only the missing bookmarks tell."""
        with Proxy(urlsplit(fragile.server).port or 443) as proxy:
            through = yaml.safe_load(kubeconfig.read_text("utf-8"))
            through["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{proxy.port}"
            path = kubeconfig.with_name(f"{kubeconfig.name}-proxied")
            path.write_text(yaml.safe_dump(through), "utf-8")
            with Operator(path, tmp_path / "log"):
                follows(world, "Blue")

                assert proxy.freeze() >= 4
                world.apply(route_to="Green")

                eventually(lambda: world.selected() == "Green", within=150)
