"""From the original operators to hedgerow, as docs/guides/upgrading.md tells to, at work."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from hedgerow_testing.api import Api, Object
from hedgerow_testing.audit_log import AuditLog
from hedgerow_testing.sandbox.cluster import Sandbox
from hedgerow_testing.settled import Silence
from hedgerow_testing.waiting import eventually
from support.cluster import bluegreens, cronjobs, memcacheds
from support.cluster.rights import grant
from support.operator.running import Operator, RunAs
from support.programs.typed import typing

pytestmark = pytest.mark.cluster

USER = "hedgerow-after-the-originals"
KUBEBUILDER = {"User-Agent": "manager/v0.0.0 (linux/amd64) kubernetes/$Format"}
"""How a kubebuilder operator says who it is: no field manager but the name of its program."""
OWN = {"app": "memcached", "memcached_cr": "cache"}
BLUE, GREEN = "demoblue-deployment", "demogreen-deployment"
GONE = {"apiVersion": "batch/v1", "kind": "Job", "name": "demo-1", "namespace": "x"}
IMAGE = '.spec.template.spec.containers[name="blue"].image'


@pytest.fixture(scope="module")
def api(nodes_sandbox: Sandbox) -> Iterator[Api]:
    api = Api(nodes_sandbox.kubeconfig)
    for kind in (bluegreens, memcacheds, cronjobs):
        kind.prepare(api)
    grant(api, USER, [*bluegreens.RULES, *memcacheds.RULES, *cronjobs.RULES])
    yield api
    api.close()


@dataclass(frozen=True)
class Originals:
    """What the original operators left, each in a namespace of its own, before ours began."""

    bluegreen: bluegreens.World
    memcached: memcacheds.World
    cronjob: cronjobs.World


@pytest.fixture(scope="module")
def originals(api: Api, nodes_sandbox: Sandbox) -> Iterator[Originals]:
    """Have nobody but the originals at work."""
    token = secrets.token_hex(3)
    places = {kind: api.namespace(f"upgrade-{kind}-{token}") for kind in ("bg", "memc", "cron")}
    world = bluegreens.World(api, places["bg"])
    let_bluegreen_work(Original(api, world.apply()))
    world.apply(route_to="Green", blueSpec=bluegreens.pods("blue", "example/echo:2"))
    cache = memcacheds.World(api, places["memc"], nodes_sandbox)
    cache.let_original_work("cache", OWN)
    jobs = cronjobs.World(api, places["cron"])
    suspended = Original(api, jobs.apply("demo", "0 0 1 1 *", suspend=True))
    suspended.note(lastScheduleTime="2026-01-01T00:00:00Z", active=[GONE])
    yield Originals(world, cache, jobs)
    for place in places.values():
        api.raw("DELETE", f"/api/v1/namespaces/{place}")


@pytest.fixture(scope="module", autouse=True)
def operator(originals: Originals, nodes_sandbox: Sandbox, run_as: RunAs) -> Operator:
    return run_as(nodes_sandbox, USER)


@pytest.fixture
def adopts(nodes_sandbox: Sandbox, capsys: pytest.CaptureFixture[str]) -> Callable[..., None]:
    """Type `hedgerow adopt TARGET --from MANAGER` in a namespace, for each target."""

    def adopt(namespace: str, manager: str, *targets: str) -> None:
        typed = typing(nodes_sandbox.kubeconfig, namespace, capsys)
        for target in targets:
            told = typed("adopt", target, "--from", manager, "--yes")
            assert told.code == 0, told.err

    return adopt


class Original:
    """An original operator: it POSTs what is missing and PUTs what it wants otherwise."""

    def __init__(self, api: Api, owner: Object) -> None:
        self.api = api
        meta = owner["metadata"]
        self.namespace, self.name = meta["namespace"], meta["name"]
        self.owner = {key: owner[key] for key in ("apiVersion", "kind")} | {
            "metadata": {"name": self.name, "namespace": self.namespace}
        }
        self.reference = {key: owner[key] for key in ("apiVersion", "kind")} | {
            "name": self.name,
            "uid": meta["uid"],
            "controller": True,
            "blockOwnerDeletion": True,
        }

    def make(self, version: str, kind: str, name: str, spec: Object) -> None:
        """Create an object, then replace it by what was read, as CreateOrUpdate does."""
        meta = {"name": name, "namespace": self.namespace, "ownerReferences": [self.reference]}
        body = {"apiVersion": version, "kind": kind, "metadata": meta, "spec": spec, "status": {}}
        path = self.api.path(body)
        self.api.raw("POST", path.rpartition("/")[0], json=body, headers=KUBEBUILDER).must()

        def replaced() -> bool:
            live = self.api.get(body).must()
            live["metadata"].setdefault("annotations", {})["seen"] = "by the original"
            return self.api.raw("PUT", path, json=live, headers=KUBEBUILDER).ok

        eventually(replaced, what=f"PUT {kind}/{name}")

    def note(self, **status: Any) -> None:
        """Replace the owner's status."""
        live = self.api.get(self.owner).must()
        body = {**live, "status": {**live.get("status", {}), **status}}
        path = self.api.path(self.owner, "status")
        self.api.raw("PUT", path, json=body, headers=KUBEBUILDER).must()


def holders(live: Object) -> set[str]:
    return {entry["manager"] for entry in live["metadata"]["managedFields"]}


def silent(audit_log: AuditLog, namespace: str, seconds: float = 1.5) -> None:
    """Fail unless the operator comes to write nothing."""
    Silence.fallen(audit_log, seconds, user=USER, namespace=namespace)


def calm(world: bluegreens.World, audit_log: AuditLog) -> None:
    """Wait until rollouts have ended: what changes all the time cannot be adopted."""
    eventually(world.rolled_out)
    silent(audit_log, world.namespace, 1)


class TestBlueGreen:
    def test_it_is_followed_again_once_its_objects_are_adopted(
        self, originals, adopts, nodes_audit
    ):
        """Fact: the entries that an operator leaves which POSTs and PUTs."""
        world = originals.bluegreen
        eventually(lambda: world.condition("Contested") == "True/FieldConflict")
        contested = {f"{f['object']}: {f['path']}" for f in world.status()["contested"]}
        assert {f"Deployment/{BLUE}: {IMAGE}", "Service/demo: .spec.selector"} <= contested
        assert world.image(BLUE) == "example/echo:1"
        calm(world, nodes_audit)

        targets = ("bluegreen/demo", "svc/demo", f"deploy/{BLUE}", f"deploy/{GREEN}")
        adopts(world.namespace, "manager", *targets)

        eventually(lambda: world.condition("Ready") == "True/Serving")
        eventually(lambda: world.image(BLUE) == "example/echo:2")
        eventually(lambda: world.condition("Contested") == "")
        eventually(lambda: world.status()["routeTo"] == world.selected() == "Green")
        for kind, name in (("Service", "demo"), ("Deployment", BLUE), ("BlueGreen", "demo")):
            assert "manager" not in holders(world.get(kind, name))
        eventually(world.rolled_out)
        silent(nodes_audit, world.namespace)


def let_bluegreen_work(original: Original) -> None:
    for colour in ("blue", "green"):
        labels = labelled(colour.capitalize())
        template = {"metadata": {"labels": labels, "creationTimestamp": None}}
        template["spec"] = {"containers": [{"name": colour, "image": "example/echo:1"}]}
        spec = {"selector": {"matchLabels": labels}, "template": template, "strategy": {}}
        original.make("apps/v1", "Deployment", f"demo{colour}-deployment", spec)
    ports = [{"name": "http", "protocol": "TCP", "port": 80, "targetPort": 0}]
    original.make("v1", "Service", "demo", {"ports": ports, "selector": labelled("Blue")})
    original.note(routeTo="Blue")


def labelled(phase: str) -> dict[str, str]:
    return {
        "app.kubernetes.io/managed-by": "app.demo.kakao.com",
        "app.kubernetes.io/name": "demo",
        "app.kubernetes.io/phase": phase,
    }


class TestMemcached:
    def test_it_is_followed_again_once_its_objects_are_adopted(
        self, originals, adopts, nodes_audit
    ):
        """Fact: what controllers do with adopted Deployments and their pods."""
        world = originals.memcached
        world.note_nodes_as_original("cache", ["cache-of-old"])
        eventually(lambda: "Memcached/cache: .status.nodes" in world.contested())
        held = 'Deployment/cache: .spec.template.spec.containers[name="memcached"]'
        eventually(lambda: {f"{held}.image", f"{held}.command"} <= world.contested())
        calm(world, nodes_audit)

        targets = ("memc/cache", "deploy/cache", "svc/cache")
        adopts(world.namespace, memcacheds.ORIGINAL, *targets)

        eventually(lambda: world.image("cache") == "memcached:1.6-alpine")
        eventually(lambda: world.condition("Ready") == "True/Serving")
        assert world.contested() == set()
        eventually(lambda: world.rolled_out() and world.status()["nodes"] == world.pods())
        silent(nodes_audit, world.namespace)
        world.make(size=4)
        eventually(lambda: len(world.status()["nodes"]) == 4)


class TestCronJob:
    def test_the_status_of_the_original_is_adopted(self, originals, adopts, nodes_audit):
        """Fact: the entries that an original operator's status leaves."""
        world, name = originals.cronjob, "demo"
        eventually(lambda: world.condition("Ready", name) == "True/Suspended")
        assert world.status(name)["active"] == [GONE]  # declared by nobody who is at work

        adopts(world.namespace, "manager", f"cronjobs.{cronjobs.GROUP}/{name}")

        eventually(lambda: "active" not in world.status(name))
        assert world.condition("Contested", name) == ""
        assert world.status(name)["lastScheduleTime"] == "2026-01-01T00:00:00Z"
        assert "manager" not in holders(world.get(name))
        silent(nodes_audit, world.namespace)
