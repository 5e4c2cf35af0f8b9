"""BlueGreen on a real API server with controllers and a simulated node, as its users meet it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hedgerow.sandbox.cluster import Sandbox
from hedgerow.testing.api import Api, Object
from hedgerow.testing.audit_log import AuditLog, must_be_unforced_applies
from hedgerow.testing.silence import Silence, assert_settled
from hedgerow.testing.waiting import eventually
from support.cluster.bluegreens import FIELD_MANAGER, USER, World, pods, prepare
from support.operator.running import Operator, RunAs

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def operator(nodes_sandbox: Sandbox, run_as: RunAs) -> Operator:
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
    def test_children_come_up_and_the_status_says_so(self, world: World):
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

    def test_the_service_follows_route_to(self, world: World):
        world.apply()
        ready(world)

        world.apply(route_to="Green")

        eventually(lambda: world.selected() == "Green")
        eventually(lambda: world.status().get("routeTo") == "Green")

    def test_a_deleted_child_is_made_again(self, world: World):
        world.apply()
        ready(world)
        before = world.get("Deployment", "demoblue-deployment")["metadata"]["uid"]

        world.delete("Deployment", "demoblue-deployment")

        eventually(
            lambda: (
                (world.get("Deployment", "demoblue-deployment") or {"metadata": {"uid": before}})[
                    "metadata"
                ]["uid"]
                != before
            )
        )
        ready(world)

    def test_a_colour_without_spec_goes_once_the_service_is_on_the_other(self, world: World):
        world.apply()
        ready(world)

        world.apply(route_to="Green", blueSpec=None)

        eventually(lambda: world.get("Deployment", "demoblue-deployment") is None)
        assert world.selected() == "Green"

    def test_every_entry_of_ours_is_an_apply(self, world: World):
        world.apply()
        ready(world)

        for kind, name in (
            ("Service", "demo"),
            ("Deployment", "demoblue-deployment"),
            ("BlueGreen", "demo"),
        ):
            entries = world.get(kind, name)["metadata"]["managedFields"]
            ours = [e["operation"] for e in entries if e["manager"].startswith("hedgerow")]
            assert ours == ["Apply"], (kind, name)


class TestPromotion:
    def test_the_service_waits_for_pods_that_never_become_ready(self, world: World):
        world.apply(promotion="WhenAvailable", greenSpec=pods("green", nodeSelector={"no": "node"}))
        eventually(lambda: world.condition("Available") == "True/Serving")

        world.apply(
            route_to="Green",
            promotion="WhenAvailable",
            greenSpec=pods("green", nodeSelector={"no": "node"}),
        )

        eventually(lambda: world.condition("Ready") == "False/WaitingForAvailability")
        assert world.selected() == "Blue"
        assert world.condition("Reconciling") == "True/WaitingForAvailability"
        assert world.status()["routeTo"] == "Blue"

        world.apply(route_to="Green", promotion="WhenAvailable")

        eventually(lambda: world.selected() == "Green")
        ready(world)

    def test_a_new_template_and_a_flip_at_once_wait_for_the_new_template(self, world: World):
        world.apply(promotion="WhenAvailable")
        ready(world)

        world.apply(
            route_to="Green",
            promotion="WhenAvailable",
            greenSpec=pods("green", "example/echo:2", nodeSelector={"no": "node"}),
        )

        eventually(lambda: world.condition("Ready") == "False/WaitingForAvailability")
        assert world.image("demogreen-deployment") == "example/echo:2"
        assert world.selected() == "Blue"

    def test_a_routed_colour_that_regresses_is_shown_and_keeps_the_service(self, world: World):
        world.apply(promotion="WhenAvailable")
        ready(world)

        world.scale("demoblue-deployment", 0)

        eventually(lambda: world.condition("Available") == "False/Unavailable")
        assert world.selected() == "Blue"
        world.scale("demoblue-deployment", 1)
        ready(world)


@pytest.mark.oldest
class TestHold:
    @pytest.mark.parametrize("promoted", [False, True], ids=["rollback", "promotion and rollback"])
    def test_a_switch_that_is_held_and_taken_back_never_reaches_the_service(
        self, world: World, nodes_audit: AuditLog, promoted: bool
    ):
        held: Object = {"promotion": "WhenAvailable", "hold": True}
        world.apply(**held)
        ready(world)
        mark = nodes_audit.mark()
        world.apply(route_to="Green", **held)
        eventually(lambda: world.condition("Ready") == "False/Held", what="Held")
        template = world.status()["switch"]["template"]

        live = world.apply(**held, **({"promoted": template} if promoted else {}))
        eventually(
            lambda: world.status()["observedGeneration"] == live["metadata"]["generation"],
            what="a status of the way back",
        )

        assert world.status()["phase"] == "Routed"
        assert world.condition("Ready") == "True/Serving"
        writes = nodes_audit.writes(mark, user=USER, namespace=world.namespace)
        assert [w for w in writes if w["objectRef"]["resource"] == "services"] == []


class TestConflicts:
    def test_a_changed_image_is_reported_and_left_while_the_rest_follows(self, world: World):
        world.apply()
        ready(world)

        world.set_image("demoblue-deployment", "blue", "example/theirs:9")

        eventually(lambda: world.condition("Contested") == "True/FieldConflict")
        assert world.condition("Ready") == "False/FieldConflict"
        (leaf,) = world.status()["contested"]
        assert leaf["object"] == "Deployment/demoblue-deployment"
        assert leaf["path"] == '.spec.template.spec.containers[name="blue"].image'
        assert (leaf["manager"], leaf["operation"]) == ("kubectl-set", "Update")
        warnings = [e for e in world.events() if e["reason"] == "FieldConflict"]
        assert [w["type"] for w in warnings] == ["Warning"]

        world.apply(blueSpec=pods("blue", "example/echo:2", terminationGracePeriodSeconds=7))

        def grace() -> object:
            live = world.get("Deployment", "demoblue-deployment")
            return live["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]

        eventually(lambda: grace() == 7)
        assert world.image("demoblue-deployment") == "example/theirs:9"
        assert len([e for e in world.events() if e["reason"] == "FieldConflict"]) == 1

    def test_it_clears_by_itself_when_the_other_agrees(self, world: World):
        world.apply()
        ready(world)
        world.set_image("demoblue-deployment", "blue", "example/theirs:9")
        eventually(lambda: world.condition("Contested") == "True/FieldConflict")

        world.set_image("demoblue-deployment", "blue", "example/echo:1")

        ready(world)
        assert "contested" not in world.status()

    def test_an_edited_selector_is_left_whole_while_the_ports_follow(self, world: World):
        world.apply()
        ready(world)

        world.edit("Service", "demo", {"spec": {"selector": {"app.kubernetes.io/phase": "Grey"}}})

        eventually(lambda: world.condition("Contested") == "True/FieldConflict")
        (leaf,) = world.status()["contested"]
        assert (leaf["object"], leaf["path"]) == ("Service/demo", ".spec.selector")
        world.apply(ports=[{"name": "http", "port": 80}, {"name": "admin", "port": 9000}])
        eventually(lambda: len(world.get("Service", "demo")["spec"]["ports"]) == 2)
        assert world.selected() == "Grey"

    def test_scaling_a_deployment_is_honoured_and_not_reported(self, world: World):
        world.apply()
        ready(world)

        world.scale("demoblue-deployment", 3)

        eventually(
            lambda: (
                world.get("Deployment", "demoblue-deployment")["status"].get("availableReplicas")
                == 3
            )
        )
        ready(world)
        assert "contested" not in world.status()
        assert world.get("Deployment", "demoblue-deployment")["spec"]["replicas"] == 3

    def test_a_field_that_somebody_removed_comes_back_once(self, world: World):
        world.apply()
        ready(world)
        label = {"metadata": {"labels": {"hedgerow.dev/controller": None}}}

        world.edit("Deployment", "demoblue-deployment", label)

        eventually(
            lambda: (
                world.get("Deployment", "demoblue-deployment")["metadata"].get("labels")
                == {"hedgerow.dev/controller": "bluegreen"}
            )
        )


class TestNamesOfOthers:
    def test_a_bluegreen_named_kubernetes_never_touches_that_service(
        self, world: World, nodes_audit: AuditLog
    ):
        mark = nodes_audit.mark()
        there = World(world.api, "default")
        before = there.get("Service", "kubernetes")
        try:
            there.apply("kubernetes")

            eventually(lambda: there.condition("Stalled", "kubernetes") == "True/NameTaken")
            assert there.get("Service", "kubernetes") == before
            tried = nodes_audit.writes(mark, user=USER, resource="services", namespace="default")
            assert [entry["responseStatus"]["code"] for entry in tried] == [409]
        finally:
            there.delete("BlueGreen", "kubernetes")

    def test_a_name_that_is_freed_is_taken_up(self, world: World):
        squatter = {**world.target("Service", "demo"), "spec": {"ports": [{"port": 1}]}}
        world.api.apply(squatter, "squatter").must()
        world.apply()
        eventually(lambda: world.condition("Stalled") == "True/NameTaken")

        world.delete("Service", "demo")

        eventually(lambda: world.selected() == "Blue", within=60)
        ready(world)

    def test_a_child_of_the_original_operator_is_met_as_it_is(self, world: World):
        """An object without our label, but with our resource as its controller."""
        made = world.apply(promotion="WhenAvailable")
        eventually(lambda: world.get("Service", "demo"))
        eventually(lambda: world.get("Deployment", "demoblue-deployment"))
        uid = made["metadata"]["uid"]
        labels = {"metadata": {"labels": {"hedgerow.dev/controller": None}}}

        world.edit("Service", "demo", labels)

        def adopted() -> bool:
            meta = world.get("Service", "demo")["metadata"]
            return meta.get("labels") == {"hedgerow.dev/controller": "bluegreen"} and [
                owner["uid"] for owner in meta["ownerReferences"]
            ] == [uid]

        eventually(adopted)


class TestEndings:
    def test_a_deleted_resource_is_not_written_and_its_children_go(
        self, world: World, nodes_audit: AuditLog
    ):
        world.apply()
        ready(world)

        world.delete("BlueGreen", "demo")
        mark = nodes_audit.mark()

        for kind, name in (("Service", "demo"), ("Deployment", "demoblue-deployment")):
            eventually(lambda kind=kind, name=name: world.get(kind, name) is None)
        # What was on its way when the deletion came carries the version from before: refused.
        wrote = nodes_audit.writes(mark, user=USER, namespace=world.namespace)
        assert [e["requestURI"] for e in wrote if e["responseStatus"]["code"] < 400] == []

    def test_a_resource_made_anew_waits_for_what_the_old_one_left(
        self, world: World, operator: Operator
    ):
        world.apply()
        ready(world)
        old = {world.get("Service", "demo")["metadata"]["uid"]}

        world.delete("BlueGreen", "demo")
        made = world.apply(route_to="Green")

        ready(world)
        service = world.get("Service", "demo")
        assert service["metadata"]["uid"] not in old
        assert [o["uid"] for o in service["metadata"]["ownerReferences"]] == [
            made["metadata"]["uid"]
        ]
        assert world.condition("Stalled") == ""

    def test_a_terminating_namespace_gets_no_write_and_makes_no_noise(
        self, world: World, operator: Operator, nodes_audit: AuditLog
    ):
        world.apply()
        ready(world)
        eventually(world.rolled_out)  # Ready is about the colour that is routed to alone
        assert_settled(nodes_audit, user=USER, namespace=world.namespace)
        mark, noise = nodes_audit.mark(), len(operator.complaints())

        world.api.raw("DELETE", f"/api/v1/namespaces/{world.namespace}").must()

        path = f"/api/v1/namespaces/{world.namespace}"
        eventually(lambda: world.api.raw("GET", path).status == 404, within=60)
        wrote = nodes_audit.writes(mark, user=USER, namespace=world.namespace)
        assert [entry["requestURI"] for entry in wrote] == []
        assert operator.complaints()[noise:] == []


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

    def test_what_a_manager_left_goes_and_what_one_holds_stays(self, world: World):
        world.apply()
        ready(world)
        env = [{"name": "GONE", "value": "1"}, {"name": "HELD", "value": "1"}]
        for manager, part in (("gone", env[:1]), ("helm", env[1:])):
            body = {"template": {"spec": {"containers": [{"name": "blue", "env": part}]}}}
            target = world.target("Deployment", self.CHILD)
            world.api.apply({**target, "spec": body}, manager).must()
        forget(world, self.CHILD, "gone")
        source = {"valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}
        spec = pods("blue")
        spec["containers"][0]["env"] = [{"name": "GONE", **source}]

        world.apply(blueSpec=spec)

        def variables() -> dict[str, list[str]]:
            return {one["name"]: sorted(one) for one in self.spec(world)["containers"][0]["env"]}

        eventually(lambda: variables()["GONE"] == ["name", "valueFrom"], what="it is gone")
        assert variables()["HELD"] == ["name", "value"]
        spec["containers"][0]["env"].append({"name": "HELD", **source})
        world.apply(blueSpec=spec)
        eventually(lambda: world.condition("Stalled") == "True/Rejected", what="it is told")
        assert variables()["HELD"] == ["name", "value"]


def forget(world: World, deployment: str, manager: str) -> None:
    """Take a manager's entries away, so that nobody holds what it alone held."""

    def put() -> bool:
        live = world.get("Deployment", deployment)
        meta = live["metadata"]
        kept = [one for one in meta["managedFields"] if one["manager"] != manager]
        return world.api.put({**live, "metadata": {**meta, "managedFields": kept}}, "editor").ok

    eventually(put, what="the entry is gone")


class TestSilence:
    def test_nothing_is_written_in_steady_state_nor_after_a_restart(
        self, still: Silence, operator: Operator, nodes_audit: AuditLog
    ):
        still.kept(60, "in steady state")

        assert operator.stop() == 0
        operator.start()
        still.kept_on(5, "after a restart")

    def test_every_write_of_this_module_was_an_unforced_apply(self, nodes_audit: AuditLog):
        must_be_unforced_applies(nodes_audit.writes(user=USER), FIELD_MANAGER)
