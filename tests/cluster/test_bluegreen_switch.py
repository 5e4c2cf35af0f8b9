"""BlueGreen on a real API server, switched as for real traffic: checked, held, overlapped, baked.

The node is simulated: its kubelet makes pods ready at once, and whether the pod of a check succeeds
is decided here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from hedgerow.sandbox.cluster import Sandbox
from hedgerow.testing.api import Api, Object
from hedgerow.testing.audit_log import AuditLog, must_be_unforced_applies
from hedgerow.testing.silence import assert_settled
from hedgerow.testing.somebody import holders
from hedgerow.testing.waiting import eventually
from support.cluster.bluegreens import FIELD_MANAGER, USER, World, bluegreen, pods, prepare
from support.cluster.cronjobs import template
from support.operator.running import Operator, RunAs
from support.programs.typed import typing

pytestmark = pytest.mark.cluster

PHASE = "app.kubernetes.io/phase"
SMOKE = {"name": "smoke", "job": template(runs_for=6000, backoffLimit=0), "timeoutSeconds": 3600}
CHECKED = {"promotion": "WhenChecked", "checks": [SMOKE]}
NOWHERE = {"nodeSelector": {"no": "node"}}


class Stage(World):
    """A namespace in which BlueGreens are switched."""

    def listed(self, path: str) -> list[Object]:
        group = {"jobs": "batch/v1", "endpointslices": "discovery.k8s.io/v1"}.get(path, "v1")
        root = "api" if group == "v1" else "apis"
        reply = self.api.raw("GET", f"/{root}/{group}/namespaces/{self.namespace}/{path}")
        return reply.must()["items"]

    def phase(self) -> str:
        return self.status().get("phase", "")

    def comes_to(self, phase: str) -> None:
        eventually(lambda: self.phase() == phase, what=f"phase {phase}")

    def pods_of(self, job: str) -> list[Object]:
        label = "batch.kubernetes.io/job-name"
        return [p for p in self.listed("pods") if p["metadata"]["labels"].get(label) == job]

    def check(self, after: str = "") -> str:
        """Wait for the one Job of a check, and for its pod; return its name.

        It is not the one of the check named by `after`, which may still be there for a moment.
        """

        def one() -> str:
            going = [j for j in self.listed("jobs") if "deletionTimestamp" not in j["metadata"]]
            names = [job["metadata"]["name"] for job in going]
            found = names[0] if len(names) == 1 and names[0] != after else ""
            return found if found and self.pods_of(found) else ""

        return eventually(one, what="one check that runs")

    def end(self, job: str, how: str) -> None:
        """End the pod of a check: `Succeeded`, `Failed`."""
        [pod] = self.pods_of(job)
        target = self.target("Pod", pod["metadata"]["name"])
        self.api.merge(target, {"status": {"phase": how}}, "kubelet", "status").must()

    def ready(self, colour: str, status: str) -> None:
        """Have the pods of a colour be ready, or not."""
        for pod in self.listed("pods"):
            if pod["metadata"]["labels"].get(PHASE) == colour:
                conditions = [{"type": "Ready", "status": status}]
                target = self.target("Pod", pod["metadata"]["name"])
                patch = {"status": {"conditions": conditions}}
                self.api.merge(target, patch, "kubelet", "status", kind="strategic-merge").must()

    def endpoints(self, service: str) -> set[str]:
        """Return the colours of the pods that are a Service's endpoints."""
        colours = {p["metadata"]["name"]: p["metadata"]["labels"] for p in self.listed("pods")}
        return {
            colours[endpoint["targetRef"]["name"]].get(PHASE, "none")
            for one in self.listed("endpointslices")
            if one["metadata"]["labels"]["kubernetes.io/service-name"] == service
            for endpoint in one.get("endpoints") or ()
        }

    def reasons(self) -> list[str]:
        return [event["reason"] for event in self.events()]


@pytest.fixture(scope="module")
def operator(nodes_sandbox: Sandbox, run_as: RunAs) -> Operator:
    """The operator, with its own identity and no right beyond what it needs."""
    api = Api(nodes_sandbox.kubeconfig)
    prepare(api)
    api.close()
    return run_as(nodes_sandbox, USER, "--controllers", "bluegreen", "--events", "all")


@pytest.fixture
def stage(operator: Operator, nodes_sandbox: Sandbox, nodes_namespace: str) -> Iterator[Stage]:
    """A fresh namespace with the operator at work."""
    api = Api(nodes_sandbox.kubeconfig)
    yield Stage(api, nodes_namespace)
    api.close()


def selections(audit: AuditLog, mark: int, stage: Stage, service: str = "demo") -> list[str]:
    """Return what a Service was told to select, in order."""
    written = audit.writes(mark, user=USER, resource="services", namespace=stage.namespace)
    return [
        write["requestObject"]["spec"]["selector"].get(PHASE, "both")
        for write in written
        if write["objectRef"]["name"] == service and write["responseStatus"]["code"] < 300
    ]


class TestPlain:
    def test_a_manifest_without_any_of_it_makes_the_same_four_writes(
        self, stage: Stage, nodes_audit: AuditLog
    ):
        mark = nodes_audit.mark()
        stage.apply(blueSpec=pods("blue", **NOWHERE), greenSpec=pods("green", **NOWHERE))
        eventually(lambda: stage.condition("Ready") == "False/Unavailable")
        assert_settled(nodes_audit, user=USER, namespace=stage.namespace)

        found = nodes_audit.writes(mark, user=USER, namespace=stage.namespace)
        written = [one for one in found if one["objectRef"]["resource"] != "events"]
        names = [one["objectRef"]["name"] for one in written]
        assert sorted(names[:3]) == ["demo", "demoblue-deployment", "demogreen-deployment"]
        # The status follows the Deployments' own.
        assert {one["objectRef"].get("subresource") for one in written[3:]} == {"status"}
        assert {key for one in written[3:] for key in one["requestObject"]["status"]} == {
            "observedGeneration",
            "conditions",
            "routeTo",
        }
        [service] = [one for one in written if one["objectRef"]["resource"] == "services"]
        assert set(service["requestObject"]["metadata"]["labels"]) == {"hedgerow.dev/controller"}


class TestGate:
    def test_what_has_not_passed_its_check_is_not_routed(self, stage: Stage, nodes_audit: AuditLog):
        mark = nodes_audit.mark()
        stage.apply(**CHECKED)
        first = stage.check()
        assert stage.get("Service", "demo") is None
        assert stage.endpoints("demo-preview") == {"Blue"}
        stage.end(first, "Succeeded")
        stage.comes_to("Routed")
        assert stage.condition("Checked") == "True/ChecksPassed"

        stage.apply(route_to="Green", **CHECKED)
        outdated = stage.check(after=first)
        assert stage.endpoints("demo-preview") == {"Green"}
        spec = pods("green", "example/echo:2")
        stage.apply(route_to="Green", greenSpec=spec, **CHECKED)
        stage.end(stage.check(after=outdated), "Failed")
        stage.comes_to("CheckFailed")
        assert stage.condition("Checked") == "False/CheckFailed"
        assert stage.selected() == "Blue"

        # To delete the Job of a failed check is to run it again.
        again = stage.check()
        job = {**stage.target("Job", again), "apiVersion": "batch/v1"}
        uid = stage.api.get(job).must()["metadata"]["uid"]
        stage.api.delete(job).must()
        eventually(lambda: stage.api.get(job).body.get("metadata", {}).get("uid", uid) != uid)
        eventually(lambda: stage.pods_of(again))
        stage.end(stage.check(), "Succeeded")
        stage.comes_to("Routed")

        assert selections(nodes_audit, mark, stage) == ["Blue", "Green"]
        reasons = stage.reasons()
        assert [reasons.count(one) for one in ("CheckPassed", "CheckFailed")] == [2, 1]

    def test_a_verdict_does_not_count_for_a_template_that_somebody_restarts(self, stage: Stage):
        stage.apply(**CHECKED)
        first = stage.check()
        stage.end(first, "Succeeded")
        stage.comes_to("Routed")
        stage.apply(route_to="Green", hold=True, **CHECKED)
        passed = stage.check(after=first)
        stage.end(passed, "Succeeded")
        stage.comes_to("Held")

        restarted = {"annotations": {"kubectl.kubernetes.io/restartedAt": "now"}}
        stage.edit(
            "Deployment", "demogreen-deployment", {"spec": {"template": {"metadata": restarted}}}
        )

        stage.check(after=passed)
        assert stage.condition("Ready") == "False/Checking"
        assert stage.selected() == "Blue"


class TestHold:
    def test_it_waits_for_the_promotion_of_this_very_template(self, stage: Stage):
        stage.apply(hold=True, preview=True)
        stage.comes_to("Routed")
        stage.apply(route_to="Green", hold=True, preview=True)
        stage.comes_to("Held")
        assert (stage.selected(), stage.condition("Ready")) == ("Blue", "False/Held")
        eventually(lambda: stage.endpoints("demo-preview") == {"Green"}, what="a preview")

        promoted = stage.status()["switch"]["template"]
        stage.apply(route_to="Green", hold=True, preview=True, promoted=promoted)

        stage.comes_to("Routed")
        assert stage.selected() == "Green"
        eventually(lambda: stage.endpoints("demo-preview") == {"Blue"}, what="a preview")


class TestOverlap:
    def test_both_are_endpoints_before_the_former_colour_is_left(
        self, stage: Stage, nodes_audit: AuditLog
    ):
        spec: dict[str, Any] = {"switch": "Overlap", "overlapSeconds": 3}
        stage.apply(**spec)
        stage.comes_to("Routed")
        mark = nodes_audit.mark()

        stage.apply(route_to="Green", **spec)

        eventually(lambda: stage.endpoints("demo") == {"Blue", "Green"}, what="both serve")
        stage.comes_to("Routed")
        assert selections(nodes_audit, mark, stage) == ["both", "Green"]
        eventually(lambda: stage.endpoints("demo") == {"Green"}, what="the new one serves")


class TestBake:
    def test_a_colour_that_breaks_is_left_once_and_not_tried_again(
        self, stage: Stage, nodes_audit: AuditLog
    ):
        spec: dict[str, Any] = {
            "promotion": "WhenAvailable",
            "bakeSeconds": 3600,
            "bakeUnavailableSeconds": 1,
        }
        mark = nodes_audit.mark()
        stage.apply(**spec)
        stage.comes_to("Routed")
        stage.apply(route_to="Green", **spec)
        stage.comes_to("Baking")

        stage.ready("Green", "False")
        stage.comes_to("RolledBack")
        assert stage.condition("Ready") == "False/RolledBack"
        stage.ready("Green", "True")
        eventually(stage.rolled_out, what="Green is well again")
        assert_settled(nodes_audit, user=USER, namespace=stage.namespace)

        assert selections(nodes_audit, mark, stage) == ["Blue", "Green", "Blue"]
        assert stage.reasons().count("RolledBack") == 1
        stage.apply(route_to="Green", greenSpec=pods("green", "example/echo:2"), **spec)
        stage.comes_to("Baking")
        assert stage.selected() == "Green"


class TestWrites:
    def test_every_write_of_this_module_was_an_unforced_apply(self, nodes_audit: AuditLog):
        written = nodes_audit.writes(user=USER)
        applied = [one for one in written if one["objectRef"]["resource"] != "jobs"]
        must_be_unforced_applies(applied, FIELD_MANAGER)
        jobs = [one for one in written if one not in applied]
        assert {one["verb"] for one in jobs} == {"patch", "delete"}


class TestCommands:
    def test_a_held_switch_goes_on_and_back(
        self, stage: Stage, nodes_sandbox: Sandbox, capsys: pytest.CaptureFixture[str]
    ):
        typed = typing(nodes_sandbox.kubeconfig, stage.namespace, capsys)
        spec = {"hold": True, "switch": "Overlap", "overlapSeconds": 0}

        def apply(route_to: str) -> None:
            manifest = bluegreen(stage.namespace, route_to=route_to, **spec)
            stage.api.apply(manifest, "kubectl").must()

        apply("Blue")
        stage.comes_to("Routed")
        idle = typed("promote", "demo")
        assert (idle.code, "no switch waits for a promotion" in idle.err) == (1, True)

        apply("Green")
        stage.comes_to("Held")
        told = typed("promote", "demo", "--wait", "30s")
        assert (told.code, told.out.splitlines()[-1]) == (0, "BlueGreen/demo: Green is routed"), (
            told
        )

        back = typed("rollback", "demo", "--wait", "30s")
        assert back.code == 0, back.err
        assert "Blue was routed before\nit waits for spec.hold only if" in back.out
        assert back.out.splitlines()[-1] == "BlueGreen/demo: Blue is routed"
        live = stage.get("BlueGreen", "demo")
        assert holders(live, "spec", "routeTo") == holders(live, "spec", "hold") == ["kubectl"]
