"""BlueGreen on a real API server with controllers and a simulated node, as its users meet it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hedgerow.sandbox.cluster import Sandbox
from hedgerow.testing.api import Api, Object
from hedgerow.testing.audit_log import AuditLog, must_be_unforced_applies
from hedgerow.testing.silence import Silence
from hedgerow.testing.somebody import holders
from hedgerow.testing.waiting import eventually
from support.cluster.bluegreens import FIELD_MANAGER, USER, World, bluegreen, pods, prepare
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


@pytest.mark.oldest
class TestConverging:
    def test_children_come_up_and_follow_by_applies_alone(self, world: World):
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


class TestCommands:
    def test_a_held_switch_goes_on_and_back(
        self, world: World, nodes_sandbox: Sandbox, capsys: pytest.CaptureFixture[str]
    ):
        typed = typing(nodes_sandbox.kubeconfig, world.namespace, capsys)
        spec: Object = {"hold": True, "switch": "Overlap", "overlapSeconds": 0}

        def come_to(phase: str, route_to: str) -> None:
            manifest = bluegreen(world.namespace, route_to=route_to, **spec)
            world.api.apply(manifest, "kubectl").must()
            eventually(lambda: world.status().get("phase") == phase, what=phase)

        come_to("Routed", "Blue")
        idle = typed("promote", "demo")
        assert (idle.code, "no switch waits for a promotion" in idle.err) == (1, True)

        come_to("Held", "Green")
        told = typed("promote", "demo", "--wait", "30s")
        assert told.code == 0, told.err
        assert told.out.splitlines()[-1] == "BlueGreen/demo: Green is routed"

        back = typed("rollback", "demo", "--wait", "30s")
        assert back.code == 0, back.err
        assert "Blue was routed before\nit waits for spec.hold only if" in back.out
        assert back.out.splitlines()[-1] == "BlueGreen/demo: Blue is routed"
        live = world.get("BlueGreen", "demo")
        assert holders(live, "spec", "routeTo") == holders(live, "spec", "hold") == ["kubectl"]


class TestUnowned:
    """Fields that nobody holds and that are in the way of what is declared."""

    CHILD = "demoblue-deployment"

    def spec(self, world: World) -> Object:
        return world.get("Deployment", self.CHILD)["spec"]["template"]["spec"]

    def sources(self, world: World) -> list[list[str]]:
        return [sorted(one) for one in self.spec(world)["volumes"]]

    @pytest.mark.oldest
    def test_a_default_goes_by_two_applies(self, world: World, nodes_audit: AuditLog):
        world.apply(blueSpec=pods("blue", volumes=[{"name": "files"}]))
        ready(world)
        assert self.sources(world) == [["emptyDir", "name"]]
        mark = nodes_audit.mark()

        world.apply(
            blueSpec=pods("blue", volumes=[{"name": "files", "secret": {"secretName": "x"}}])
        )

        eventually(lambda: self.sources(world) == [["name", "secret"]], what="the default is gone")
        writes = nodes_audit.writes(mark, user=USER, namespace=world.namespace)
        must_be_unforced_applies(writes, FIELD_MANAGER)
        written = [w for w in writes if w["objectRef"]["resource"] == "deployments"]
        assert [w["responseStatus"]["code"] for w in written] == [422, 200, 200]


class TestSilence:
    def test_nothing_is_written_in_steady_state_nor_after_a_restart(
        self, still: Silence, operator: Operator, nodes_audit: AuditLog
    ):
        still.kept(5, "in steady state")

        assert operator.stop() == 0
        operator.start()
        still.kept_on(5, "after a restart")

    def test_every_write_of_this_module_was_an_unforced_apply(
        self, began: int, nodes_audit: AuditLog
    ):
        must_be_unforced_applies(nodes_audit.writes(began, user=USER), FIELD_MANAGER)
