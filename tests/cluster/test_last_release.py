"""An installation that is upgraded from the last release, and taken back to it, while it stands."""

from __future__ import annotations

import os
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import ExitStack
from io import BytesIO
from pathlib import Path
from typing import Any

import anyio
import pytest
import yaml

from hedgerow.sandbox.cluster import Sandbox
from hedgerow.testing.api import Api, Object
from hedgerow.testing.audit_log import AuditLog, shown
from hedgerow.testing.silence import Silence
from hedgerow.testing.waiting import eventually
from support.cluster import bluegreens, cronjobs, memcacheds
from support.code.sources import ROOT
from support.operator.running import Operator
from support.programs.archives import unpack

pytestmark = pytest.mark.cluster

USER = "hedgerow-upgraded"
INSTALLER = "hedgerow-install"
BEFORE_TAGS = "03dcc9169e7779e6d7939e560a137a1440ad71b0"
"""What counts as the last release until there is one: the first that keeps its watches on 1.37."""
SERVING = "True/Serving"
KINDS = {
    "/apis/apps/v1": "deployments",
    "/api/v1": "services",
    "/apis/policy/v1": "poddisruptionbudgets",
    "/apis/batch/v1": "jobs",
}
"""The children of all controllers that run."""
RESOURCES = {
    "/apis/app.demo.kakao.com/v1": "bluegreens",
    "/apis/memcached.cache.example.com/v1": "memcacheds",
    f"/apis/{cronjobs.GROUP}/v1": "cronjobs",
}


def git(*words: str) -> bytes:
    command = ["git", "-C", str(ROOT), *words]
    return subprocess.run(command, capture_output=True, check=True, timeout=60).stdout


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source of the last release; its packages are those of this environment."""
    # At a tag, the last release is the one before it.
    tags = git("tag", "--list", "v*", "--sort=-version:refname", "--no-contains").decode().split()
    last = tags[0] if tags else BEFORE_TAGS
    try:
        archive = git("archive", last, "operator", "schemas", "manifests")
    except subprocess.CalledProcessError:
        pytest.skip(f"{last}, the last release, is not in this clone")
    folder = tmp_path_factory.mktemp("released")
    with tarfile.open(fileobj=BytesIO(archive)) as packed:
        unpack(packed, folder)
    return folder


@pytest.fixture
def api(nodes_sandbox: Sandbox) -> Iterator[Api]:
    one = Api(nodes_sandbox.kubeconfig)
    yield one
    one.close()


class Installation:
    """Both versions of the operator, of which one runs, elected; and what is there for them."""

    def __init__(
        self, api: Api, audit: AuditLog, namespace: str, operators: dict[str, Operator]
    ) -> None:
        self.api, self.audit, self.namespace = api, audit, namespace
        self.operators = operators
        self.version = ""

    def run(self, version: str) -> None:
        """Have this version run instead of the other one."""
        if self.version:
            assert self.operators[self.version].stop() == 0
        self.version = version
        self.operators[version].start()

    def settle(self, seconds: float) -> None:
        """Wait until nothing is written for so long; the Lease is renewed all the time."""
        Silence.fallen(self.audit, seconds, user=USER, namespace=self.namespace)

    def children(self) -> dict[str, Object]:
        """Return the children with everything in them, by kind and name."""
        return dict(self._all(KINDS))

    def conditions(self) -> dict[str, Any]:
        """Return the conditions of all resources, with the times since when they hold."""
        return {
            name: {
                one["type"]: (one["status"], one["reason"], one["lastTransitionTime"])
                for one in found["status"]["conditions"]
            }
            for name, found in self._all(RESOURCES)
        }

    def leader(self) -> str:
        path = f"/apis/coordination.k8s.io/v1/namespaces/{self.namespace}/leases/hedgerow"
        return self.api.raw("GET", path).must()["spec"].get("holderIdentity", "")

    def _all(self, kinds: dict[str, str]) -> Iterator[tuple[str, Object]]:
        for path, plural in kinds.items():
            listed = self.api.raw("GET", f"{path}/namespaces/{self.namespace}/{plural}").must()
            for found in listed["items"]:
                yield f"{plural}/{found['metadata']['name']}", found


@pytest.fixture
def installation(
    api: Api,
    nodes_sandbox: Sandbox,
    nodes_namespace: str,
    nodes_audit: AuditLog,
    released: Path,
    tmp_path: Path,
) -> Iterator[Installation]:
    kubeconfig = anyio.run(nodes_sandbox.kubeconfig_for, USER, ["system:masters"])
    flags = (
        *("--namespace", nodes_namespace, "--system-namespace", nodes_namespace),
        *("--leader-elect", "--controllers", "bluegreen,memcached,cronjob"),
    )
    source = os.pathsep.join(str(released / name) for name in ("operator", "schemas"))
    operators = {
        "old": Operator(kubeconfig, tmp_path / "old", *flags, PYTHONPATH=source),
        "new": Operator(kubeconfig, tmp_path / "new", *flags),
    }
    with ExitStack() as held:
        for operator in operators.values():
            held.callback(operator.kill)
        yield Installation(api, nodes_audit, nodes_namespace, operators)


@pytest.fixture
def world(
    api: Api, nodes_sandbox: Sandbox, nodes_namespace: str, released: Path
) -> Iterator[memcacheds.World]:
    """The namespace, on a server with the last release's definitions, and ours afterwards."""
    # Other tests on this server have installed theirs.
    define(api, released, force=True)
    yield memcacheds.World(api, nodes_namespace, nodes_sandbox)
    define(api, ROOT)


def define(api: Api, source: Path, *, force: bool = False) -> None:
    for path in sorted((source / "manifests/crds").glob("*_*.yaml")):
        definition = yaml.load(path.read_text("utf-8"), yaml.CSafeLoader)
        api.apply(definition, INSTALLER, force=force).must()
    for path in RESOURCES:
        api.served(path.removeprefix("/apis/"))


def test_an_upgrade_and_the_way_back_write_no_child_and_the_next_change_is_followed(
    installation: Installation, world: memcacheds.World, api: Api, released: Path
):
    crons = cronjobs.World(api, installation.namespace)
    world.apply()
    world.make(size=2)
    crons.apply("nightly", "0 0 1 1 *")
    crons.apply("soon", "@every 1s", runs_for=3600, concurrencyPolicy="Forbid")
    installation.run("old")
    eventually(lambda: bluegreens.World(api, world.namespace).condition("Ready") == SERVING)
    eventually(lambda: world.condition("Ready") == SERVING)
    eventually(lambda: crons.running("soon"))
    crons.edit("soon", suspend=True)  # the Job goes on, and what was missed is not counted on
    eventually(world.rolled_out)

    for version, size in (("new", 3), ("old", 1)):
        installation.settle(1)
        children, conditions = installation.children(), installation.conditions()
        mark, leader = installation.audit.mark(), installation.leader()
        if version == "new":
            define(api, ROOT)

        installation.run(version)
        # Before it leads, it is silent whatever it is about to write.
        eventually(lambda before=leader: installation.leader() not in {"", before})
        installation.settle(1.5)

        asked = installation.audit.since(mark, user=USER)
        assert [e for e in asked if e["responseStatus"]["code"] == 409] == []
        assert [w for w in written(installation, mark) if "/status" not in w] == []
        assert installation.children() == children
        assert installation.conditions() == conditions
        assert leader

        world.make(size=size)
        eventually(lambda wanted=size: len(world.pods()) == wanted)
        eventually(world.rolled_out)


def written(installation: Installation, mark: int) -> list[str]:
    found = installation.audit.writes(mark, user=USER, namespace=installation.namespace)
    return shown(found)
