"""Conflicts on a real API server: shown where people look, never overwritten, never fought over."""

from __future__ import annotations

from collections.abc import Iterator
from http import HTTPStatus

import anyio
import pytest

from hedgerow.plan.yield_and_claim import CLAIM, YIELD
from hedgerow.sandbox.cluster import Sandbox
from hedgerow.testing.api import Api
from hedgerow.testing.audit_log import AuditLog
from hedgerow.testing.silence import Silence
from hedgerow.testing.waiting import eventually
from support.cluster import bluegreens, memcacheds
from support.cluster.memcacheds import World
from support.cluster.policies import Impersonated
from support.cluster.rights import grant
from support.cluster.situations import (
    SITUATIONS,
    Contested,
    Situation,
    deployment,
    image,
)
from support.operator.running import Operator, RunAs

pytestmark = pytest.mark.cluster

USER = "hedgerow-conflicts-under-test"
ADMISSION = {
    "apiGroups": ["admissionregistration.k8s.io"],
    "resources": ["mutatingwebhookconfigurations", "mutatingadmissionpolicies"],
    "verbs": ["get", "list"],
}


@pytest.fixture(scope="module")
def api(nodes_sandbox: Sandbox) -> Iterator[Api]:
    api = Api(nodes_sandbox.kubeconfig)
    yield api
    api.close()


@pytest.fixture(scope="module")
def operator(api: Api, nodes_sandbox: Sandbox, run_as: RunAs) -> Operator:
    bluegreens.prepare(api)
    memcacheds.prepare(api)
    grant(api, USER, [*bluegreens.RULES, *memcacheds.RULES, ADMISSION])
    return run_as(nodes_sandbox, USER, "--controllers", "bluegreen,memcached")


class Looks(World):
    """A namespace, looked at by situation."""

    def told(self, kind: str, name: str) -> tuple[Contested, ...]:
        """Return what the resource's status says is contested."""
        status = (self.get(kind, name) or {}).get("status", {})
        return tuple(
            (f["object"], f["path"], *(f.get(k) for k in ("manager", "operation", "subresource")))
            for f in status.get("contested", ())
        )

    def said(self, kind: str, name: str, condition: str) -> str:
        status = (self.get(kind, name) or {}).get("status", {})
        found = (c for c in status.get("conditions", ()) if c["type"] == condition)
        return next((f"{c['status']}/{c['reason']}" for c in found), "")

    def message(self, kind: str, name: str, condition: str) -> str:
        status = (self.get(kind, name) or {}).get("status", {})
        found = (c for c in status.get("conditions", ()) if c["type"] == condition)
        return next((c["message"] for c in found), "")

    def annotate(self, name: str, **notes: str | None) -> None:
        words = {"yields": YIELD, "claims": CLAIM}
        annotations = {words[word]: value for word, value in notes.items()}
        self.edit("BlueGreen", name, {"metadata": {"annotations": annotations}}, "annotator")

    def regarded(self, reason: str) -> set[str]:
        """Return the objects that Events of that reason are about, as `Kind/name`."""
        found = self.api.raw("GET", f"/apis/events.k8s.io/v1/namespaces/{self.namespace}/events")
        return {
            f"{event['regarding']['kind']}/{event['regarding']['name']}"
            for event in found.must()["items"]
            if event["reason"] == reason
        }


@pytest.fixture(scope="module")
def upset(operator: Operator, api: Api, nodes_sandbox: Sandbox) -> Iterator[Looks]:
    """A namespace where every situation has come about, each to a resource of its own."""
    world = Looks(api, api.namespace("conflicts"), nodes_sandbox)
    for situation in SITUATIONS:
        situation.begin(world)
    for situation in SITUATIONS:
        eventually(
            lambda s=situation: world.said(s.kind, s.name, "Ready") == "True/Serving",
            within=60,
            what=f"{situation} is ready",
        )
    for situation in SITUATIONS:
        situation.act(world, situation.name)
    yield world
    api.raw("DELETE", "/api/v1/namespaces/conflicts")


@pytest.fixture(scope="module")
def still(upset: Looks, nodes_audit: AuditLog) -> Silence:
    """From here on nothing is written in that namespace, while other tests go on elsewhere."""
    for situation in SITUATIONS:
        eventually(lambda s=situation: upset.told(s.kind, s.name) == s.contested, within=60)
    eventually(upset.rolled_out, within=60, what="what the acts began has ended")
    eventually(lambda: upset.said("BlueGreen", "restart", "Ready") == "True/Serving")
    return Silence.fallen(nodes_audit, 2, user=USER, namespace=upset.namespace)


@pytest.fixture
def world(still: Silence, api: Api, nodes_sandbox: Sandbox, nodes_namespace: str) -> Looks:
    return Looks(api, nodes_namespace, nodes_sandbox)


@pytest.mark.parametrize("situation", SITUATIONS, ids=str)
class TestSituations:
    def test_the_status_says_who_holds_which_field(self, upset: Looks, situation: Situation):
        eventually(
            lambda: upset.told(situation.kind, situation.name) == situation.contested,
            within=60,  # an autoscaler looks every fifteen seconds
            what=f"{situation}",
        )
        contested = "True/FieldConflict" if situation.contested else ""
        assert upset.said(situation.kind, situation.name, "Contested") == contested
        ready = "False/FieldConflict" if situation.contested else "True/Serving"
        eventually(lambda: upset.said(situation.kind, situation.name, "Ready") == ready)

    def test_what_was_done_stays(self, upset: Looks, situation: Situation):
        eventually(lambda: situation.kept(upset, situation.name) == situation.expected)

    def test_the_resource_and_the_child_have_an_event(self, upset: Looks, situation: Situation):
        regarded = upset.regarded("FieldConflict")
        for target, *_ in situation.contested:
            assert {f"{situation.kind}/{situation.name}", target} <= regarded


class TestSettling:
    def test_what_is_claimed_is_taken_back_by_one_forced_apply(
        self, world: Looks, nodes_audit: AuditLog
    ):
        make(world)
        world.set_image(deployment("demo"), "blue", "set/echo:9")
        eventually(lambda: world.said("BlueGreen", "demo", "Contested") == "True/FieldConflict")
        mark = nodes_audit.mark()

        world.allow_claims()
        world.annotate("demo", claims='Deployment/*: **.containers[name="blue"].image')

        eventually(lambda: image(world, "demo") == "example/echo:1")
        eventually(lambda: world.said("BlueGreen", "demo", "Contested") == "")
        wrote = nodes_audit.writes(mark, user=USER, namespace=world.namespace)
        (forced,) = [
            entry
            for entry in wrote
            # The rollout goes on: had the object changed meanwhile, it was refused and came again.
            if "force=true" in entry["requestURI"]
            and entry["responseStatus"]["code"] == HTTPStatus.OK
        ]
        assert forced["requestObject"]["metadata"]["resourceVersion"]
        claimed = {"BlueGreen/demo", f"Deployment/{deployment('demo')}"}
        eventually(lambda: world.regarded("FieldClaimed") == claimed)

    def test_who_may_edit_only_the_resource_takes_nothing_where_claims_are_not_allowed(
        self, world: Looks, nodes_sandbox: Sandbox, nodes_audit: AuditLog
    ):
        make(world)
        world.set_image(deployment("demo"), "blue", "set/echo:9")
        eventually(lambda: world.said("BlueGreen", "demo", "Contested") == "True/FieldConflict")
        editor = f"editor-{world.namespace[-8:]}"
        rule = {
            "apiGroups": ["app.demo.kakao.com"],
            "resources": ["bluegreens"],
            "verbs": ["get", "patch"],
        }
        grant(world.api, editor, [rule], world.namespace)
        mark = nodes_audit.mark()
        theirs = Impersonated(nodes_sandbox.kubeconfig, editor)
        claim = {"metadata": {"annotations": {CLAIM: "*/*: **"}}}
        theirs.merge(world.target("BlueGreen", "demo"), claim, "editor").must()
        theirs.close()

        eventually(lambda: world.said("BlueGreen", "demo", "Stalled") == "True/ClaimRefused")
        assert f"kubectl label namespace {world.namespace} " in world.message(
            "BlueGreen", "demo", "Stalled"
        )
        assert image(world, "demo") == "set/echo:9"
        eventually(lambda: "BlueGreen/demo" in world.regarded("ClaimRefused"))
        wrote = nodes_audit.writes(mark, user=USER, namespace=world.namespace)
        assert [entry for entry in wrote if "force=true" in entry["requestURI"]] == []

        world.allow_claims()

        eventually(lambda: image(world, "demo") == "example/echo:1")
        eventually(lambda: world.said("BlueGreen", "demo", "Stalled") == "")


class TestQuiet:
    def test_no_conflict_is_ever_retried_nor_after_a_restart(self, still: Silence):
        still.kept(5, "while everything is contested")


class TestSecondOperator:
    @pytest.mark.parametrize("claims", ["", "*/*: **"], ids=["plain", "claiming all"])
    def test_another_installation_leaves_everything_as_it_is_whatever_is_claimed(
        self,
        world: Looks,
        nodes_sandbox: Sandbox,
        nodes_audit: AuditLog,
        tmp_path_factory: pytest.TempPathFactory,
        claims: str,
    ):
        make(world)
        world.allow_claims()
        if claims:
            world.annotate("demo", claims=claims)
        eventually(world.rolled_out, within=120)
        silence = Silence.fallen(nodes_audit, 2, namespace=world.namespace)
        kubeconfig = anyio.run(nodes_sandbox.kubeconfig_for, USER)
        log = tmp_path_factory.mktemp("second") / "log"
        flags = ("--controllers", "bluegreen", "--instance", "two")

        with Operator(kubeconfig, log, *flags) as second:
            eventually(lambda: second.logged("resources are left alone"), within=60)
            silence.kept_on(4, "with a second installation")
        assert world.told("BlueGreen", "demo") == ()


def make(world: Looks) -> None:
    world.api.apply(bluegreens.bluegreen(world.namespace, "demo"), "user").must()
    eventually(lambda: world.said("BlueGreen", "demo", "Ready") == "True/Serving")
