"""Memcached on a real API server with controllers and a simulated node, as its users meet it."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from hedgerow_testing.api import Api
from hedgerow_testing.audit_log import AuditLog, must_be_unforced_applies
from hedgerow_testing.sandbox.cluster import Sandbox
from hedgerow_testing.settled import Silence
from hedgerow_testing.waiting import eventually
from support.cluster.memcacheds import FIELD_MANAGER, RESTRICTED, USER, World, prepare
from support.operator.running import Operator, RunAs

pytestmark = pytest.mark.cluster

OWN = {"app": "memcached", "memcached_cr": "cache"}
OTHER = {"app": "cache"}
PREFERRED = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["fast"]}]}
GIVEN = {
    "affinity": {
        "nodeAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 1, "preference": PREFERRED}
            ]
        }
    },
    "priorityClassName": "system-cluster-critical",
    "resources": {"requests": {"cpu": 1, "memory": "1024Mi"}},
    "tolerations": [{"key": "cache", "operator": "Exists", "effect": "NoSchedule"}],
}
"""What a user says of the pods, some of it not as the server spells it."""


@pytest.fixture(scope="module")
def api(nodes_sandbox: Sandbox) -> Iterator[Api]:
    api = Api(nodes_sandbox.kubeconfig)
    prepare(api)
    yield api
    api.close()


@pytest.fixture(scope="module")
def operator(api: Api, nodes_sandbox: Sandbox, run_as: RunAs) -> Operator:
    """The operator, with its own identity and no right beyond what it needs."""
    return run_as(nodes_sandbox, USER, "--controllers", "memcached")


@pytest.fixture(scope="module")
def autoscaled(api: Api, operator: Operator, nodes_sandbox: Sandbox) -> Iterator[World]:
    """A Memcached of 1 that an autoscaler wants to be of 4: it acts after fifteen seconds."""
    world = World(api, api.namespace(f"autoscaled-{secrets.token_hex(4)}"), nodes_sandbox)
    world.make(size=1)
    target = {"apiVersion": "memcached.cache.example.com/v1", "kind": "Memcached", "name": "cache"}
    spec = {"scaleTargetRef": target, "minReplicas": 4, "maxReplicas": 6}
    manifest = {**world.target("HorizontalPodAutoscaler", "cache"), "spec": spec}
    api.apply(manifest, "user").must()
    yield world
    api.raw("DELETE", f"/api/v1/namespaces/{world.namespace}")


@pytest.fixture(scope="module")
def still(
    api: Api,
    autoscaled: World,
    operator: Operator,
    nodes_sandbox: Sandbox,
    nodes_audit: AuditLog,
) -> Iterator[Silence]:
    """Converged, empty, contested and original resources side by side.

    From here on nothing is written in that namespace, while other tests go on elsewhere.
    """
    world = World(api, api.namespace(f"still-{secrets.token_hex(4)}"), nodes_sandbox)
    world.make("plain")
    world.make("empty", size=0)
    world.make("contested", size=1)
    with operator.frozen():
        world.let_original_work("same", {"app": "memcached", "memcached_cr": "same"})
        world.let_original_work("other", {"app": "other"})
    ready(world, 3, "plain")
    ready(world, 0, "empty")
    ready(world, 1, "contested")
    world.kubectl("scale", "deployment/contested", "--replicas=2")
    for name, size in (("contested", 2), ("same", 3), ("other", 3)):
        eventually(lambda name=name: world.condition("Contested", name), what=name)
        eventually(lambda name=name, size=size: settled(world, name, size), what=name)
    yield Silence.fallen(nodes_audit, 2, user=USER, namespace=world.namespace)
    api.raw("DELETE", f"/api/v1/namespaces/{world.namespace}")


@pytest.fixture
def world(api: Api, operator: Operator, nodes_sandbox: Sandbox, nodes_namespace: str) -> World:
    """A fresh namespace with the operator at work."""
    return World(api, nodes_namespace, nodes_sandbox)


@pytest.fixture
def restricted(world: World) -> World:
    """A namespace that takes no pod below the standard "restricted"."""
    meta = {"name": world.namespace, "labels": RESTRICTED}
    manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": meta}
    world.api.apply(manifest, "admin").must()
    pod = {**world.target("Pod", "x"), "spec": {"containers": [{"name": "x", "image": "x"}]}}
    path = world.api.path(pod).rpartition("/")[0]
    probe = partial(world.api.raw, "POST", path, params={"dryRun": "All"}, json=pod)
    eventually(lambda: "violates PodSecurity" in probe().body.get("message", ""))
    return world


def ready(world: World, size: int, name: str = "cache") -> None:
    """Wait until it is Ready with that many nodes, which are its pods."""
    reason = "Serving" if size else "ScaledToZero"
    eventually(
        lambda: (
            world.condition("Ready", name) == f"True/{reason}"
            and len(world.status(name)["nodes"]) == size
            and world.status(name)["nodes"] == world.pods(name)
        ),
        what=f"{name} of {size}",
    )


class TestConverging:
    def test_three_servers_come_up_where_only_restricted_pods_are_admitted(self, restricted: World):
        """Fact: PodSecurity admits the pods, and kubectl scale reads the status."""
        restricted.make()

        ready(restricted, 3)
        status = restricted.status()
        assert (status["replicas"], status["readyReplicas"]) == (3, 3)
        assert status["selector"] == "app=memcached,memcached_cr=cache"
        assert [c["type"] for c in status["conditions"]] == ["Ready"]
        service = restricted.get("Service", "cache")
        assert service["spec"]["clusterIP"] == "None"
        assert [(p["name"], p["port"]) for p in service["spec"]["ports"]] == [("memcached", 11211)]

        (row,) = restricted.kubectl("get", "memc", "--no-headers").splitlines()
        assert row.split()[:4] == ["cache", "3", "3", "True"]
        path = restricted.api.path(restricted.target("Memcached", "cache"), "scale")
        selector = "app=memcached,memcached_cr=cache"
        scale = restricted.api.raw("GET", path).must()
        assert scale["status"] == {"replicas": 3, "selector": selector}

    @pytest.mark.usefixtures("still")
    def test_nodes_and_their_names_follow_a_pod_that_goes_and_the_one_that_comes(
        self, world: World
    ):
        """Fact: controllers replace a pod and give it another address."""
        world.make(size=2)
        ready(world, 2)
        gone, stays = world.status()["nodes"]

        world.delete("Pod", gone)

        eventually(lambda: len(set(world.status()["nodes"]) - {gone, stays}) == 1)
        ready(world, 2)
        assert stays in world.status()["nodes"]
        addresses = [pod["status"]["podIP"].replace(".", "-") for pod in world.live_pods()]
        names = [f"{address}.cache.{world.namespace}.svc" for address in addresses]
        eventually(lambda: world.status()["endpoints"] == names, what="the names of both")

    def test_pods_have_what_the_user_says_of_them_until_he_leaves_it_out(self, world: World):
        """Fact: the Deployment controller rolls out what the server made of the spec."""
        world.make(size=1, **GIVEN)
        ready(world, 1)
        (pod,) = world.live_pods()
        spec = pod["spec"]

        assert spec["affinity"] == GIVEN["affinity"]
        assert GIVEN["tolerations"][0] in spec["tolerations"]
        assert spec["priorityClassName"] == GIVEN["priorityClassName"]
        assert spec["containers"][0]["resources"] == {"requests": {"cpu": "1", "memory": "1Gi"}}
        assert world.contested() == set()

        world.make(size=1)
        eventually(lambda: world.rolled_out() and len(world.live_pods()) == 1, what="one pod")
        ready(world, 1)
        (pod,) = world.live_pods()
        assert GIVEN.keys() & pod["spec"].keys() == {"tolerations"}
        assert GIVEN["tolerations"][0] not in pod["spec"]["tolerations"]
        assert pod["spec"]["containers"][0]["resources"]["limits"] == {"memory": "128Mi"}


@pytest.mark.usefixtures("still")
class TestScaling:
    def test_every_way_up_and_down_is_followed_and_the_budget_with_it(self, restricted: World):
        """Fact: kubectl scale writes through the definition's scale subresource."""
        world = restricted
        world.make(size=1)
        ready(world, 1)
        assert world.get("PodDisruptionBudget", "cache") is None

        world.make(size=2)
        ready(world, 2)
        assert world.get("PodDisruptionBudget", "cache")["spec"]["maxUnavailable"] == 1

        world.kubectl("scale", "memcached/cache", "--replicas=5")
        ready(world, 5)

        world.edit("Memcached", "cache", {"spec": {"size": 1}})
        ready(world, 1)
        assert world.get("PodDisruptionBudget", "cache") is None

        world.kubectl("scale", "memcached/cache", "--replicas=0")
        ready(world, 0)
        assert world.status()["nodes"] == []
        assert (world.status()["replicas"], world.status()["readyReplicas"]) == (0, 0)


@pytest.mark.oldest
class TestRefusals:
    @pytest.fixture
    def defaults(self, api: Api, nodes_sandbox: Sandbox) -> World:
        """The namespace `default`: nothing is made of a dry run."""
        return World(api, "default", nodes_sandbox)

    def test_what_cannot_be_is_refused_with_the_field_it_is_about(self, defaults: World):
        """Fact: the server evaluates the definition's bounds and rules."""

        def tried(name: str = "cache", **spec: Any) -> str:
            full = {key: value for key, value in {"size": 1, **spec}.items() if value is not None}
            manifest = {**defaults.target("Memcached", name), "spec": full}
            reply = defaults.api.apply(manifest, "user", dry_run=True)
            return "" if reply.ok else f"{reply.status} {reply.body['message']}"

        for word, said in {
            "DNS-1035 label": [tried("1cache"), tried("a.b")],
            "at most 63": [tried("a" * 64)],
            "spec.size": [tried(size=size) for size in (-1, None, 2**31)],
            "spec.memory": [tried(memory=1)],
            "spec.image": [tried(image="")],
            "spec.maxConnections": [tried(maxConnections=0)],
        }.items():
            assert [one for one in said if not (one.startswith("422 ") and word in one)] == []
        assert tried("a" * 63) == ""


@pytest.mark.usefixtures("still")
class TestOriginals:
    def test_what_cannot_be_changed_is_kept_until_it_is_deleted_and_the_rest_is_managed(
        self, world: World, operator: Operator
    ):
        """Fact: which fields of Services and Deployments the server does not let change."""
        with operator.frozen():
            world.let_original_work("cache", OTHER)
        before = address(world)

        eventually(lambda: world.condition("Degraded") == "True/Immutable")
        eventually(lambda: world.status()["nodes"] == world.pods() != [])
        eventually(lambda: world.get("PodDisruptionBudget", "cache"))

        text = message(world, "Degraded")
        assert ".spec.clusterIP" in text
        assert ".spec.selector" in text
        for kind in ("deployment", "service"):
            assert f"kubectl delete {kind} cache -n {world.namespace}" in text
        assert address(world) == before
        live = world.get("Deployment", "cache")["spec"]
        assert live["selector"] == {"matchLabels": OTHER}
        assert live["template"]["metadata"]["labels"] == {**OWN, **OTHER}
        assert world.status()["selector"] == "app=cache"
        assert world.get("Service", "cache")["spec"]["selector"] == OTHER
        held = 'Deployment/cache: .spec.template.spec.containers[name="memcached"]'
        assert {f"{held}.image", f"{held}.command"} <= world.contested()
        pods = live["template"]["spec"]
        assert pods["containers"][0]["image"] == "memcached:1.4.36-alpine"
        assert pods["containers"][0]["resources"]["limits"] == {"memory": "128Mi"}
        assert pods["securityContext"]["runAsUser"] == 11211

        world.delete("Service", "cache")
        eventually(lambda: address(world) == "None")
        eventually(lambda: ".spec.clusterIP" not in message(world, "Degraded"))
        world.delete("Deployment", "cache")
        eventually(lambda: world.condition("Degraded") == "")
        eventually(lambda: world.status()["selector"] == "app=memcached,memcached_cr=cache")


def address(world: World) -> str:
    service = world.get("Service", "cache") or {"spec": {}}
    return service["spec"].get("clusterIP", "")


def message(world: World, kind: str) -> str:
    found = [c["message"] for c in world.status().get("conditions", ()) if c["type"] == kind]
    return found[0] if found else ""


class TestSilence:
    def test_nothing_is_written_in_steady_state_nor_after_a_restart(
        self, still: Silence, operator: Operator
    ):
        """Fact: how the server respells and fills in what a Memcached is made into."""
        still.kept(8, "in steady state")

        assert operator.stop() == 0
        operator.start()
        still.kept_on(3, "after a restart")

    def test_an_autoscaler_aimed_at_a_memcached_is_followed(self, autoscaled: World):
        """Fact: the autoscaler's controller scales a custom resource by its scale."""
        eventually(lambda: autoscaled.get("Memcached", "cache")["spec"]["size"] == 4)

        ready(autoscaled, 4)
        assert autoscaled.contested() == set()

    def test_every_write_of_this_module_was_an_unforced_apply(self, nodes_audit: AuditLog):
        """Fact: the server's audit log has every write that reached it."""
        must_be_unforced_applies(nodes_audit.writes(user=USER), FIELD_MANAGER)


def settled(world: World, name: str, size: int) -> bool:
    """Return whether a rollout has ended and the status knows of it."""
    nodes = world.status(name).get("nodes", [])
    return world.rolled_out() and nodes == world.pods(name) and len(nodes) == size
