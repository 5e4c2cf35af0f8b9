"""BlueGreen on a real API server with controllers and a simulated node, as its users meet it."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from hedgerow.workloads import missing_port
from hedgerow_testing.api import Api, Object
from hedgerow_testing.audit_log import AuditLog, must_be_unforced_applies
from hedgerow_testing.sandbox.cluster import Sandbox
from hedgerow_testing.settled import Silence
from hedgerow_testing.waiting import eventually
from support.cluster.bluegreens import FIELD_MANAGER, USER, World, pods, prepare
from support.objects.ports import HTTP, PORTS
from support.operator.running import Operator, RunAs
from support.programs.typed import typing

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def began(nodes_audit: AuditLog) -> int:
    """The audit log's end before the operator wrote anything."""
    return nodes_audit.mark()


@pytest.fixture(scope="module")
def operator(began: int, nodes_sandbox: Sandbox, run_as: RunAs) -> Operator:
    """The operator, with its own identity and no right beyond what it needs."""
    api = Api(nodes_sandbox.kubeconfig)
    prepare(api)
    api.close()
    return run_as(nodes_sandbox, USER)


@pytest.fixture(scope="module")
def still(operator: Operator, nodes_sandbox: Sandbox, nodes_audit: AuditLog) -> Iterator[Silence]:
    """Converged, contested, taken and oddly spelled side by side: nothing is written there."""
    api = Api(nodes_sandbox.kubeconfig)
    world = World(api, api.namespace("steady"))
    settle(world)
    yield Silence.fallen(nodes_audit, 3, user=USER, namespace=world.namespace)
    api.raw("DELETE", f"/api/v1/namespaces/{world.namespace}")
    api.close()


def settle(world: World) -> None:
    odd = {
        "name": "blue",
        "image": "example/echo:1",
        "resources": {"limits": {"cpu": "1000m", "memory": "1024Mi"}},
        "ports": [{"containerPort": 8080}],
        "env": [
            {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
        ],
        "volumeMounts": [{"name": "scratch", "mountPath": "/scratch"}],
    }
    spec = {"containers": [odd], "volumes": [{"name": "scratch", "emptyDir": {}}]}
    world.apply("plain")
    world.apply("odd", blueSpec=spec)
    world.apply("contested")
    squatter = {**world.target("Service", "taken"), "spec": {"ports": [{"port": 1}]}}
    world.api.apply(squatter, "squatter").must()
    world.apply("taken")
    for name in ("plain", "odd", "contested"):
        ready(world, name)
    world.set_image("contestedblue-deployment", "blue", "example/theirs:9")
    eventually(lambda: world.condition("Contested", "contested") == "True/FieldConflict")
    eventually(lambda: world.condition("Stalled", "taken") == "True/NameTaken")
    eventually(world.rolled_out)
    eventually(lambda: world.condition("Available", "contested") == "True/Serving")


@pytest.fixture
def world(still: Silence, nodes_sandbox: Sandbox, nodes_namespace: str) -> Iterator[World]:
    """A fresh namespace with the operator at work."""
    api = Api(nodes_sandbox.kubeconfig)
    yield World(api, nodes_namespace)
    api.close()


def ready(world: World, name: str = "demo") -> None:
    eventually(lambda: world.condition("Ready", name) == "True/Serving", what="Ready")


def available(world: World, deployment: str) -> int:
    return world.get("Deployment", deployment)["status"].get("availableReplicas", 0)


def selected(world: World) -> str:
    return world.get("Service", "demo")["spec"]["selector"]["app.kubernetes.io/phase"]


class TestRefused:
    def test_a_refused_port_keeps_no_rollback_waiting(self, world: World):
        """Fact: the server refuses a port of the merged Service, and its cause names the list."""
        world.apply(route_to="Green", ports=[{"name": "http", "port": 8080}])
        ready(world)
        world.edit("Service", "demo", {"spec": {"type": "NodePort"}})
        [port] = world.get("Service", "demo")["spec"]["ports"]
        world.edit("Service", "demo", {"spec": {"ports": [{**port, "targetPort": 81}]}})
        others = [{"name": "http", "port": 9090}]
        world.apply(route_to="Green", ports=others)
        eventually(lambda: world.condition("Stalled") == "True/Rejected", what="it is refused")

        world.apply(route_to="Blue", ports=others)

        eventually(lambda: selected(world) == "Blue", what="the rollback")
        [port] = world.get("Service", "demo")["spec"]["ports"]
        assert (port["port"], world.condition("Stalled")) == (8080, "True/Rejected")


@pytest.mark.oldest
class TestConverging:
    def test_children_come_up_and_follow_by_applies_alone(self, world: World):
        """Fact: Deployments of the real controller come up, and go when they are pruned."""
        world.apply()

        ready(world)
        service = world.get("Service", "demo")
        assert service["spec"]["selector"] == {
            "app.kubernetes.io/managed-by": "app.demo.kakao.com",
            "app.kubernetes.io/name": "demo",
            "app.kubernetes.io/phase": "Blue",
        }
        assert [(p["name"], p["port"], p["protocol"]) for p in service["spec"]["ports"]] == [
            ("http", 80, "TCP")
        ]
        for name in ("demoblue-deployment", "demogreen-deployment"):
            # Ready is about the routed one.
            eventually(lambda n=name: available(world, n) == 1, what=f"{name} is available")
        status = world.status()
        assert status["routeTo"] == "Blue"
        assert status["observedGeneration"] == 1
        assert "contested" not in status

        world.apply(route_to="Green", blueSpec=None)

        eventually(lambda: world.get("Deployment", "demoblue-deployment") is None)
        assert world.selected() == "Green"
        eventually(lambda: world.status().get("routeTo") == "Green")
        for kind, name in (
            ("Service", "demo"),
            ("Deployment", "demogreen-deployment"),
            ("BlueGreen", "demo"),
        ):
            entries = world.get(kind, name)["metadata"]["managedFields"]
            ours = [e["operation"] for e in entries if e["manager"].startswith("hedgerow")]
            assert ours == ["Apply"], (kind, name)


CHILDREN = (
    ("Deployment", "demoblue-deployment"),
    ("Deployment", "demogreen-deployment"),
    ("Service", "demo"),
)


def restored(obj: Object) -> Object:
    """Return an object as a restore from a backup applies it: without owner, uid and status."""
    kept = ("name", "namespace", "labels", "annotations")
    metadata = {key: obj["metadata"][key] for key in kept if key in obj["metadata"]}
    spec = {key: value for key, value in obj["spec"].items() if not key.startswith("clusterIP")}
    return {key: obj[key] for key in ("apiVersion", "kind")} | {"metadata": metadata, "spec": spec}


class TestLeftChildren:
    @pytest.mark.parametrize("how", ["orphan", "restore"])
    def test_the_told_command_makes_them_children_again(
        self, world: World, nodes_sandbox: Sandbox, how: str
    ):
        """Fact: kubectl orphans children, and its patch of owner references is taken."""

        def kubectl(*words: str) -> None:
            line = [str(nodes_sandbox.kubectl), "--kubeconfig", str(nodes_sandbox.kubeconfig)]
            ended = subprocess.run(
                [*line, *words], capture_output=True, text=True, timeout=60, check=False
            )
            assert ended.returncode == 0, ended.stderr

        world.apply()
        ready(world)
        backup = [restored(world.get(*one) or {}) for one in CHILDREN]
        cascade = "orphan" if how == "orphan" else "foreground"
        target = ("bluegreen", "demo", "-n", world.namespace)
        kubectl("delete", *target, f"--cascade={cascade}", "--timeout=60s")
        if how == "restore":
            eventually(lambda: not any(world.get(*one) for one in CHILDREN), what="all is gone")
            for obj in backup:
                world.api.apply(obj, "velero").must()
        eventually(world.rolled_out)
        eventually(lambda: len(pod_names(world)) == 2, what="a pod of each colour")
        pods_before = pod_names(world)
        world.apply()
        eventually(lambda: world.condition("Stalled") == "True/NameTaken", what="NameTaken")

        [command] = re.findall("`(kubectl patch [^`]*)`", world.message("Stalled"))
        assert all(f"/{name}" in command for _, name in CHILDREN)
        kubectl(*shlex.split(command)[1:])

        ready(world)
        said = [world.condition(kind) for kind in ("Stalled", "Contested")]
        assert (said, pod_names(world)) == (["", ""], pods_before)


def pod_names(world: World) -> list[str]:
    found = world.api.raw("GET", f"/api/v1/namespaces/{world.namespace}/pods").must()
    return sorted(pod["metadata"]["name"] for pod in found["items"])


NOWHERE: Object = pods("green", nodeSelector={"no.such": "node"})
"""Pods that no node takes."""


def restart(world: World, deployment: str) -> None:
    """Restart a Deployment as `kubectl rollout restart` does."""
    at = {"annotations": {"kubectl.kubernetes.io/restartedAt": "2026-11-28T12:00:00Z"}}
    world.edit("Deployment", deployment, {"spec": {"template": {"metadata": at}}}, "kubectl")


class TestWhatWasRouted:
    """It stays known, whoever has the Service meanwhile, and whoever restarts what."""

    def test_a_service_that_is_taken_over_moves_once_the_colour_is_available(
        self, world: World, nodes_sandbox: Sandbox, capsys: pytest.CaptureFixture[str]
    ):
        """Fact: the real controller and scheduler say when pods are available."""
        typed = typing(nodes_sandbox.kubeconfig, world.namespace, capsys)
        service = {"spec": {"selector": {"app": "shop"}, "ports": [{"name": "http", "port": 80}]}}
        world.api.apply({**world.target("Service", "demo"), **service}, "kubectl").must()
        spec: Object = {"promotion": "WhenAvailable", "greenSpec": None}
        world.apply(blueSpec=NOWHERE, **spec)
        eventually(lambda: world.condition("Stalled") == "True/NameTaken")
        owner = world.get("BlueGreen", "demo") or {}
        reference = {"name": "demo", "uid": owner["metadata"]["uid"], "controller": True}
        reference |= {key: owner[key] for key in ("apiVersion", "kind")}
        world.edit("Service", "demo", {"metadata": {"ownerReferences": [reference]}})

        waits = "False/WaitingForAvailability"
        eventually(lambda: world.condition("Ready") == waits, what=waits)
        whole = ("svc/demo", "--from", "kubectl", "--field", "spec.selector")
        adopted = typed("adopt", *whole, "--to", FIELD_MANAGER, "--yes")
        assert adopted.code == 0, adopted.err
        eventually(lambda: world.condition("Ready") == waits, what=waits)
        assert (world.get("Service", "demo") or {})["spec"]["selector"] == {"app": "shop"}

        world.apply(blueSpec=pods("blue"), **spec)
        eventually(lambda: world.status().get("routeTo") == "Blue", what="Blue is routed")


@dataclass(frozen=True)
class Missing:
    """Why the API server or the scheduler leaves pods out, and a part of what it says of that."""

    reason: str
    says: str
    pods: Object = field(default_factory=dict)
    objects: tuple[Object, ...] = ()


ENFORCED = {"pod-security.kubernetes.io/enforce": "restricted"}


def one(kind: str, name: str, **parts: Any) -> tuple[Object]:
    return ({"kind": kind, "metadata": {"name": name}, **parts},)


NONE = one("ResourceQuota", "none", spec={"hard": {"pods": "0"}})
RESTRICTED = ({"kind": "Namespace", "metadata": {"labels": ENFORCED}},)
MISSING = [
    Missing("a quota", "exceeded quota: none, requested: pods=1", objects=NONE),
    Missing("PodSecurity", "seccompProfile.type", objects=RESTRICTED),
    Missing("a node selector", "nodes are available: ", {"nodeSelector": {"no": "node"}}),
    Missing("a readiness gate", "ReadinessGatesNotReady",
            {"readinessGates": [{"conditionType": "a.b/c"}]}),
    Missing("a scheduling gate", "gates", {"schedulingGates": [{"name": "a.b/c"}]}),
]  # fmt: skip
"""Of those that refuse pods, of the scheduler, and of each condition of a pod."""


class TestServing:
    def test_it_is_available_through_a_rollout_that_does_not_end(self, world: World):
        """Fact: the Deployment controller says that a rollout is stuck or paused."""
        world.apply()
        ready(world)
        world.scale("demoblue-deployment", 3)
        world.edit("Deployment", "demoblue-deployment", {"spec": {"progressDeadlineSeconds": 1}})
        eventually(lambda: available(world, "demoblue-deployment") == 3, what="3 pods")

        world.apply(blueSpec=pods("blue", nodeSelector={"no": "node"}))

        stuck = "ProgressDeadlineExceeded"
        overdue = "its rollout has made no progress for spec.progressDeadlineSeconds"
        # The pods before may have taken more than a second, too.
        of_this = f"Blue: 1 of 3 replicas are up to date: {overdue}, pod demoblue"
        eventually(lambda: world.message("Ready").startswith(of_this), what="Stalled")
        said = [world.condition(kind) for kind in ("Available", "Ready", "Reconciling")]
        assert said == ["True/Serving", f"False/{stuck}", ""]
        assert world.condition("Stalled") == f"True/{stuck}"
        assert world.message("Stalled") == f"Blue: {overdue}"
        assert "nodes are available: " in world.message("Ready")
        assert served(world) == {"http": 3}
        assert {one["type"] for one in world.events() if one["reason"] == stuck} == {"Warning"}

        world.apply()
        ready(world)
        assert world.condition("Stalled") == ""

        world.edit("Deployment", "demoblue-deployment", {"spec": {"paused": True}}, "kubectl")
        world.apply(blueSpec=pods("blue", "example/echo:2"))
        eventually(lambda: world.condition("Stalled") == "True/DeploymentPaused", what="paused")
        assert world.condition("Available") == "True/Serving"
        assert "kubectl rollout resume deployment/demoblue-deployment" in world.message("Stalled")
        world.edit("Deployment", "demoblue-deployment", {"spec": {"paused": False}}, "kubectl")
        ready(world)

    @pytest.mark.parametrize("case", MISSING, ids=lambda case: case.reason)
    def test_it_says_why_pods_are_missing(
        self,
        world: World,
        case: Missing,
        nodes_sandbox: Sandbox,
        capsys: pytest.CaptureFixture[str],
    ):
        """Fact: the server and the scheduler say why there are no pods, in these words."""
        for body in case.objects:
            name = body.get("metadata", {}).get("name", world.namespace)
            metadata = {**body.get("metadata", {}), "name": name, "namespace": world.namespace}
            if body["kind"] == "Namespace":
                del metadata["namespace"]
            world.api.apply({"apiVersion": "v1", **body, "metadata": metadata}, "admin").must()
            if body["kind"] == "ResourceQuota":  # until it is counted, that is the reason
                counted = ("ResourceQuota", name)
                eventually(lambda of=counted: world.get(*of).get("status", {}).get("used"))
        world.apply(blueSpec=pods("blue", **case.pods), greenSpec=None)

        eventually(lambda: case.says in world.message("Ready"), what=case.says)
        assert world.message("Ready").startswith("Blue: 0 of 1 replicas are ")
        assert world.condition("Ready") == "False/Unavailable"
        shown = typing(nodes_sandbox.kubeconfig, world.namespace, capsys)("tree", "demo").out
        assert case.says.replace(" ", "") in "".join(shown.replace("│", "").split())

    def test_a_port_that_no_pod_has_is_told_before_the_switch(self, world: World):
        """Fact: EndpointSlices show which ports of a Service lead to a pod."""

        def colour(name: str, port: str) -> Object:
            return {"containers": [{"name": name, "image": "i", "ports": [HTTP | {"name": port}]}]}

        spec: Object = {
            "promotion": "WhenAvailable",
            "switch": "Overlap",
            "overlapSeconds": 2,
            "bakeSeconds": 60,
            "ports": [{"name": "http", "port": 80, "targetPort": "http"}],
            "blueSpec": colour("blue", "http"),
            "greenSpec": colour("green", "web"),
        }
        world.apply(**spec)
        eventually(lambda: served(world) == {"http": 1}, what="Blue serves")
        told = "Blue is available; Green: no container has a TCP port named http"
        eventually(lambda: world.message("Ready").startswith(told), what="it is said")

        world.apply(route_to="Green", **spec)
        eventually(lambda: world.condition("Stalled") == "True/PortMissing", what="PortMissing")
        eventually(lambda: available(world, "demogreen-deployment") == 1, what="Green is available")
        assert (world.selected(), world.condition("Available")) == ("Blue", "True/Serving")
        assert served(world) == {"http": 1}

        theirs = world.target("Service", "demo") | {"spec": {"ports": [DEBUG]}}
        world.api.apply(theirs, "debugger").must()
        eventually(lambda: world.condition("Available") == "False/PortMissing", what="their port")
        world.api.apply(world.target("Service", "demo"), "debugger").must()
        eventually(lambda: world.condition("Available") == "True/Serving", what="it is gone")

        world.apply(route_to="Green", **spec | {"greenSpec": colour("green", "http")})
        eventually(lambda: world.status().get("phase") == "Baking", what="Green is routed")
        assert (world.selected(), world.condition("Ready")) == ("Green", "True/Baking")

    def test_a_port_that_only_the_next_colour_has_comes_with_the_switch(
        self, world: World, nodes_sandbox: Sandbox, capsys: pytest.CaptureFixture[str]
    ):
        """Fact: EndpointSlices follow a Service's ports and selector together."""
        port = {"name": "http", "port": 80}
        blue = {"containers": [{"name": "c", "image": "i", "ports": [HTTP]}]}
        green = {"containers": [{"name": "c", "image": "i", "ports": [HTTP | {"name": "web"}]}]}
        spec: Object = {"blueSpec": blue, "hold": True}
        world.apply(ports=[port | {"targetPort": "http"}], greenSpec=green, **spec)
        eventually(lambda: served(world) == {"http": 1}, what="Blue serves")

        spec |= {"ports": [port | {"targetPort": "web"}], "greenSpec": green}
        world.apply(route_to="Green", **spec)
        eventually(lambda: world.condition("Ready") == "False/Held", what="Held")
        eventually(lambda: world.condition("Available") == "True/Serving", what="Blue serves")
        assert served(world) == {"http": 1}

        typed = typing(nodes_sandbox.kubeconfig, world.namespace, capsys)
        shown = typed("tree", "demo").out
        assert " 1 to decide" in " ".join(shown.split())
        [command] = re.findall(r"what to do:\s+(hedgerow promote .*)$", shown, re.MULTILINE)
        assert shlex.split(command) == ["hedgerow", "promote", "demo", "-n", world.namespace]
        promoted = typed(*shlex.split(command)[1:3])
        assert promoted.code == 0, promoted.err
        eventually(lambda: world.status().get("routeTo") == "Green", what="Green is routed")
        [there] = world.get("Service", "demo")["spec"]["ports"]
        assert there["targetPort"] == "web"
        eventually(lambda: served(world) == {"http": 1}, what="Green serves")


@pytest.mark.oldest
def test_what_a_service_leads_to_is_found_as_the_server_finds_it(
    nodes_sandbox: Sandbox, nodes_namespace: str
):
    """Fact: how the EndpointSlice controller resolves named ports."""
    api = Api(nodes_sandbox.kubeconfig)
    for number, case in enumerate(PORTS):
        meta = {"name": f"p{number}", "namespace": nodes_namespace}
        labels = {"app": f"p{number}"}
        pod = {"apiVersion": "v1", "kind": "Pod", "spec": case.pod}
        api.apply({**pod, "metadata": {**meta, "labels": labels}}, "user").must()
        spec = {"selector": labels, "ports": [case.port]}
        api.apply(
            {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": spec}, "user"
        ).must()

    def leads(number: int) -> list[bool]:
        query = f"labelSelector=kubernetes.io/service-name%3Dp{number}"
        found = api.raw("GET", f"{slices(nodes_namespace)}?{query}").must()["items"]
        return [bool(one["ports"]) for one in found if one["endpoints"]]

    for number, case in enumerate(PORTS):
        [lead] = eventually(lambda n=number: leads(n), what=case.reason)
        assert lead is (missing_port([case.port], case.pod) == ""), case.reason
    api.close()


DEBUG = {"name": "debug", "port": 9, "protocol": "TCP", "targetPort": "debug"}


def slices(namespace: str) -> str:
    return f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices"


def served(world: World) -> Object:
    """Return how many ready pods each port of the Service leads to."""
    query = "labelSelector=kubernetes.io/service-name%3Ddemo"
    found = world.api.raw("GET", f"{slices(world.namespace)}?{query}").must()
    counts: Object = {}
    for one in found["items"]:
        up = [end for end in one["endpoints"] or () if end["conditions"].get("ready")]
        for port in one["ports"] or ():
            counts[port["name"]] = counts.get(port["name"], 0) + len(up)
    return counts


class TestSilence:
    def test_nothing_is_written_in_steady_state_nor_after_a_restart(
        self, still: Silence, operator: Operator, nodes_audit: AuditLog
    ):
        """Fact: how the server respells and fills in Deployments and Services."""
        still.kept(5, "in steady state")

        assert operator.stop() == 0
        operator.start()
        still.kept_on(5, "after a restart")

    def test_every_write_of_this_module_was_an_unforced_apply(
        self, began: int, nodes_audit: AuditLog
    ):
        """Fact: the server's audit log has every write that reached it."""
        must_be_unforced_applies(nodes_audit.writes(began, user=USER), FIELD_MANAGER)
