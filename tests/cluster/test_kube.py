"""The kube layer on a real API server: what was recorded still holds, and no event is missed."""

from __future__ import annotations

import json
import os
import signal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest
import yaml

from hedgerow.kube import errors
from hedgerow.kube.client import connect
from hedgerow.kube.cluster import Cluster
from hedgerow.kube.reviews import may_we
from hedgerow_schemas.base import Object
from hedgerow_testing.sandbox.cluster import Options, Sandbox
from hedgerow_testing.sandboxes import running as sandboxed
from kube.recipes import RECIPES, Plain, configmap
from kube.recordings import Recording
from kube.worlds import CONFIG_MAP, Recorder, World, reflected

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.cluster, pytest.mark.anyio]

SERVER = "kube-apiserver"
MANAGER = "hedgerow-test"


def at(cluster: Sandbox, **more: Any) -> Any:
    return connect(kubeconfig=str(cluster.kubeconfig), **more)


@pytest.fixture
def plain(sandbox: Sandbox, namespace: str) -> Iterator[Plain]:
    plain = Plain(sandbox.kubeconfig, namespace)
    yield plain
    plain.close()


@pytest.fixture(scope="module")
def fragile(kubernetes: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """An API server that these tests may kill."""
    options = Options(kubernetes=kubernetes)
    with sandboxed(tmp_path_factory.mktemp("fragile") / "cluster", options) as up:
        yield up


@pytest.fixture
def at_risk(fragile: Sandbox, request: pytest.FixtureRequest) -> Iterator[Plain]:
    """Plain requests to it, in a namespace of this test's own."""
    plain = Plain(fragile.kubeconfig, request.node.name.replace("_", "-")[:60].strip("-"))
    yield plain
    plain.close()


@pytest.mark.oldest
class TestRecordings:
    @pytest.mark.parametrize("name", RECIPES)
    def test_are_what_this_server_answers_too(self, plain, name):
        """Fact: the bytes with which a real server answers."""
        live = Recording.of(RECIPES[name](plain))
        if "HEDGEROW_RECORD" in os.environ:
            live.save(name)

        assert live.leaned_on() == Recording.load(name).leaned_on()


def body(name: str, namespace: str, **data: str) -> Object:
    return {"metadata": {"name": name, "namespace": namespace}, "data": data}


RISKY = (*range(0xA1), *range(0x2000, 0x2070), 0xFEFF, 0xFFFD, 0xFFFE, 0xFFFF, 0x1F600, 0x10FFFF)


@pytest.mark.oldest
class TestCluster:
    async def test_every_character_arrives_as_it_was_sent(self, sandbox, namespace):
        """Fact: the server's JSON keeps every character."""
        data = {f"c{point:x}": f"a {chr(point)} b{chr(point)}" for point in RISKY}

        async with at(sandbox) as cluster:
            applied = await cluster.apply(
                CONFIG_MAP, body("text", namespace, **data), manager=MANAGER
            )
            read = await cluster.read_object(CONFIG_MAP, "text", namespace)

        assert applied.object["data"] == data
        assert read == applied.object

    async def test_discovers_kinds_and_rights(self, sandbox):
        """Fact: the server's discovery and access reviews."""
        async with at(sandbox) as cluster:
            assert await cluster.resource("v1", "ConfigMap") == CONFIG_MAP
            node = await cluster.resource("v1", "Node")
            with pytest.raises(errors.Missing):
                await cluster.resource("example.com/v1", "Widget")
            assert await may_we(cluster, "patch", "", "configmaps", "default")
            assert (await cluster.get("/version"))["major"] == "1"
            assert await cluster.get("/readyz") == "ok"

        assert not node.namespaced

    async def test_lists_page_by_page_and_by_watch_list(self, sandbox, namespace):
        """Fact: the server's continue tokens, and the bookmark that ends a watch list."""
        async with at(sandbox) as cluster:
            async with anyio.create_task_group() as tasks:
                for shard in range(8):
                    tasks.start_soon(fill, cluster, namespace, range(shard, 250, 8))
            listing = await cluster.list(CONFIG_MAP, namespace, page=25)
            async with reflected(cluster, namespace) as world:
                pass

        assert names(listing.items) == set(world.objects)
        assert len(names(listing.items)) == len(listing.items) == 250
        assert {(i["apiVersion"], i["kind"]) for i in listing.items} == {("v1", "ConfigMap")}


async def fill(cluster: Cluster, namespace: str, numbers: range) -> None:
    for number in numbers:
        await cluster.apply(CONFIG_MAP, body(f"n{number}", namespace), manager=MANAGER)


def names(items: Any) -> set[str]:
    return {item["metadata"]["name"] for item in items}


class TestRights:
    async def test_a_401_is_told_after_one_new_login(self, sandbox, tmp_path):
        """Fact: the server answers 401 to requests and watches alike."""
        path = with_token(sandbox.kubeconfig, tmp_path, "unknown")

        async with connect(kubeconfig=str(path)) as cluster:
            with pytest.raises(errors.Unauthenticated):
                await cluster.get("/version", timeout=5)
            with pytest.raises(errors.Unauthenticated):
                async for _ in cluster.watch(CONFIG_MAP):
                    pass

    async def test_a_plugin_gives_the_certificate_for_requests_and_watches(
        self, sandbox, plain, tmp_path
    ):
        """Fact: the server knows a user by a certificate that a plugin gave.

        This is what kr8s is for.
        """
        user = await sandbox.kubeconfig_for("given", ["system:masters"])
        path = with_plugin(user, tmp_path)

        async with (
            connect(kubeconfig=str(path)) as cluster,
            reflected(cluster, plain.namespace) as world,
        ):
            plain.configmap("seen")
            await world.until(lambda: "seen" in world.objects)
            assert names((await cluster.list(CONFIG_MAP, plain.namespace)).items) == {"seen"}

        assert world.problems == []


def with_token(kubeconfig: Path, directory: Path, token: str) -> Path:
    """Write a kubeconfig whose token is in a file beside it."""
    config = yaml.safe_load(kubeconfig.read_text("utf-8"))
    config["users"][0]["user"] = {"tokenFile": "token"}
    (directory / "token").write_text(token)
    (directory / "kubeconfig").write_text(yaml.safe_dump(config))
    return directory / "kubeconfig"


def with_plugin(kubeconfig: Path, directory: Path) -> Path:
    """Write a kubeconfig in which a plugin gives the client certificate of this one."""
    config = yaml.safe_load(kubeconfig.read_text("utf-8"))
    [user] = config["users"]
    files = {
        "clientCertificateData": user["user"]["client-certificate"],
        "clientKeyData": user["user"]["client-key"],
    }
    given = {"status": {field: Path(name).read_text("ascii") for field, name in files.items()}}
    (directory / "given.json").write_text(json.dumps(given))
    user["user"] = {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": "cat",
            "args": [str(directory / "given.json")],
        }
    }
    (directory / "kubeconfig").write_text(yaml.safe_dump(config))
    return directory / "kubeconfig"


async def killed(fragile: Sandbox) -> None:
    """Kill the API server, and wait until it has let go of its port."""
    fragile.kill(SERVER, signal.SIGKILL)
    await fragile.stop(SERVER)


def seen(world: World, number: int) -> bool:
    counted = world.objects.get("counted")
    return counted is not None and counted["data"]["number"] == str(number)


class TestReflect:
    async def test_sees_every_change_and_next_line_characters(self, sandbox, plain):
        """Fact: the server's watch has one event a line, whatever is in them."""
        text = {"text": "next\x85line and \u2028 separator"}
        path = plain.path("configmaps")
        plain.http.post(path, json=configmap("there", text)).raise_for_status()

        async with at(sandbox) as cluster, reflected(cluster, plain.namespace) as world:
            assert world.objects["there"]["data"] == text
            plain.http.post(path, json=configmap("a", text)).raise_for_status()
            await world.until(lambda: "a" in world.objects)
            assert world.objects["a"]["data"] == text
            plain.delete(plain.path("configmaps", "a"))
            await world.until(lambda: "a" not in world.objects)

        assert (world.snapshots, world.problems) == (1, [])

    async def test_goes_on_where_it_was_when_the_server_ends_the_watch(self, sandbox, plain):
        """Fact: the server ends a watch after the seconds that were asked for."""
        async with at(sandbox) as cluster:
            recorder = Recorder(cluster)
            async with reflected(recorder, plain.namespace, seconds=1) as world:
                number = 0
                while len(recorder.asked) < 4:
                    number += 1
                    plain.configmap("counted", {"number": str(number)})
                    await world.until(partial(seen, world, number))

        assert [initial for _, initial in recorder.asked] == [True, False, False, False]
        assert (world.snapshots, world.problems) == (1, [])

    async def test_survives_a_killed_server_and_lists_once_what_it_has_forgotten(
        self, fragile, at_risk
    ):
        """Fact: a restarted server's watch cache knows nothing of earlier versions."""
        at_risk.configmap("before")
        async with at(fragile) as cluster:
            async with reflected(cluster, at_risk.namespace) as world:
                await killed(fragile)
                await world.until(lambda: world.problems)
                await fragile.start(SERVER)
                at_risk.delete(at_risk.path("configmaps", "before"))
                at_risk.configmap("kept")

                await world.until(lambda: set(world.objects) == {"kept"})

            kinds = {type(problem) for problem in world.problems}
            # A server that starts may say that it is too early.
            assert errors.Unreachable in kinds <= {errors.Unreachable, errors.Throttled}

            # A fresh watch cache remembers nothing from before the server's start.
            with pytest.raises(errors.Gone):
                async for _ in cluster.watch(CONFIG_MAP, at_risk.namespace, since="1"):
                    pass
            ancient = Recorder(cluster)
            ancient.since[1] = "1"
            async with reflected(ancient, at_risk.namespace, seconds=1) as world:
                await world.until(lambda: world.snapshots == 2)
                at_risk.configmap("after")
                await world.until(lambda: "after" in world.objects)

        assert set(world.objects) == {"kept", "after"}
        assert ancient.asked[:3] == [("", True), ("1", False), ("", True)]
        assert world.problems == []

    async def test_notices_a_half_open_connection(self, fragile, at_risk):
        """Fact: a stopped server's connections stay open and silent."""
        async with (
            at(fragile) as cluster,
            reflected(cluster, at_risk.namespace, idle=2.0) as world,
        ):
            fragile.kill(SERVER, signal.SIGSTOP)
            try:
                await world.until(lambda: world.problems, within=60)
            finally:
                fragile.kill(SERVER, signal.SIGCONT)
            at_risk.configmap("after")

            await world.until(lambda: "after" in world.objects)

        assert isinstance(world.problems[0], errors.Unreachable)
        # A watch that is silent for so long is not resumed: all is listed anew (ADR 0011).
        assert world.snapshots == 2
