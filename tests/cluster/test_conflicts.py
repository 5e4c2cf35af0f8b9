"""Conflicts on a real API server: shown where people look, never overwritten, never fought over.

Each remedy that is offered settles its conflict, typed as it is printed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from hedgerow.plan.yield_and_claim import CLAIM, allows_claims
from hedgerow_testing.api import Api
from hedgerow_testing.audit_log import AuditLog
from hedgerow_testing.sandbox.cluster import Sandbox
from hedgerow_testing.settled import Silence
from hedgerow_testing.waiting import eventually
from support.cluster import bluegreens, memcacheds
from support.cluster.memcacheds import World
from support.cluster.rights import grant
from support.cluster.situations import (
    SITUATIONS,
    Contested,
    Situation,
    deployment,
)
from support.cluster.trials import (
    TRIALS,
    Shell,
    Trial,
    printed,
)
from support.operator.running import Operator, RunAs
from support.programs.typed import Typing, typing

pytestmark = pytest.mark.cluster

USER = "hedgerow-conflicts-under-test"
GONE = "gone"
"""One that was deleted: the garbage collector comes within a minute and a half."""


@pytest.fixture(scope="module")
def api(nodes_sandbox: Sandbox) -> Iterator[Api]:
    api = Api(nodes_sandbox.kubeconfig)
    yield api
    api.close()


@pytest.fixture(scope="module")
def operator(api: Api, nodes_sandbox: Sandbox, run_as: RunAs) -> Operator:
    bluegreens.prepare(api)
    memcacheds.prepare(api)
    grant(api, USER, [*bluegreens.RULES, *memcacheds.RULES])
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

    def fields(self, situation: Situation) -> list[dict[str, Any]]:
        """Return what is contested of the resource to which it happened, once something is."""
        kind, name = situation.kind, situation.name
        return eventually(
            lambda: (self.get(kind, name) or {}).get("status", {}).get("contested"),
            what=f"{name} is contested",
        )

    def about(self, reason: str, target: str) -> list[str]:
        """Return the notes of the Events of that reason about an object such as `Kind/name`."""
        found = self.api.raw("GET", f"/apis/events.k8s.io/v1/namespaces/{self.namespace}/events")
        return [
            event["note"]
            for event in found.must()["items"]
            if event["reason"] == reason
            and f"{event['regarding']['kind']}/{event['regarding']['name']}" == target
        ]


@pytest.fixture(scope="module")
def upset(operator: Operator, api: Api, nodes_sandbox: Sandbox) -> Iterator[Looks]:
    """A namespace where every situation has come about, each to a resource of its own."""
    world = Looks(api, api.namespace("conflicts"), nodes_sandbox)
    come_about(world, SITUATIONS)
    yield world
    api.raw("DELETE", "/api/v1/namespaces/conflicts")


@pytest.fixture(scope="module", autouse=True)
def tried(operator: Operator, api: Api, nodes_sandbox: Sandbox) -> Iterator[Looks]:
    """Another one, for the remedies: the operator sees some of it late, so it begins first."""
    world = Looks(api, api.namespace("remedies"), nodes_sandbox)
    world.allow_claims()
    world.apply(GONE)
    come_about(world, (trial.situation for trial in TRIALS))
    eventually(lambda: world.pods(deployment(GONE)), what="all that it has")
    world.delete("BlueGreen", GONE)
    yield world
    api.raw("DELETE", "/api/v1/namespaces/remedies")


def come_about(world: Looks, situations: Iterable[Situation]) -> None:
    """Make the resources of all, and let it happen to each."""
    begun = tuple(situations)
    for situation in begun:
        situation.begin(world)
    for situation in begun:
        eventually(
            lambda s=situation: world.said(s.kind, s.name, "Ready") == "True/Serving",
            what=f"{situation} is ready",
        )
    for situation in begun:
        situation.act(world, situation.name)


@pytest.fixture(scope="module")
def still(upset: Looks, nodes_audit: AuditLog) -> Silence:
    """From here on nothing is written in that namespace, while other tests go on elsewhere."""
    for situation in SITUATIONS:
        eventually(lambda s=situation: upset.told(s.kind, s.name) == s.contested)
    eventually(upset.rolled_out, what="what the acts began has ended")
    eventually(lambda: upset.said("BlueGreen", "restart", "Ready") == "True/Serving")
    return Silence.fallen(nodes_audit, 2, user=USER, namespace=upset.namespace)


@pytest.fixture
def world(still: Silence, api: Api, nodes_sandbox: Sandbox, nodes_namespace: str) -> Looks:
    return Looks(api, nodes_namespace, nodes_sandbox)


@pytest.mark.parametrize("situation", SITUATIONS, ids=str)
def test_what_was_done_stays_and_is_told_with_who_holds_it(upset: Looks, situation: Situation):
    """Fact: the entries that kubectl, autoscalers and strategic merges leave."""
    kind, name = situation.kind, situation.name
    eventually(
        lambda: upset.told(kind, name) == situation.contested,
        what=f"{situation}",
    )
    contested = "True/FieldConflict" if situation.contested else ""
    assert upset.said(kind, name, "Contested") == contested
    ready = "False/FieldConflict" if situation.contested else "True/Serving"
    eventually(lambda: upset.said(kind, name, "Ready") == ready)
    eventually(lambda: situation.kept(upset, name) == situation.expected)
    told = [note.partition(": ")[0] for note in upset.about("FieldConflict", f"{kind}/{name}")]
    assert sorted(told) == sorted({target for target, *_ in situation.contested})


class TestRemedies:
    """What is offered to settle a conflict, each to a resource of its own."""

    @pytest.fixture
    def typed(
        self, tried: Looks, nodes_sandbox: Sandbox, capsys: pytest.CaptureFixture[str]
    ) -> Typing:
        return typing(nodes_sandbox.kubeconfig, tried.namespace, capsys)

    @pytest.mark.parametrize("trial", TRIALS, ids=str)
    def test_each_that_is_offered_settles_the_conflict(
        self, tried: Looks, typed: Typing, nodes_sandbox: Sandbox, trial: Trial
    ):
        """Fact: a shell, kubectl and the server take each remedy as it is printed.

        A move of fields is shown first, and done with `--yes`.
        """
        situation = trial.situation
        kind, name = situation.kind, situation.name
        (field,) = tried.fields(situation)
        # The resource itself is of a kind that kubectl finds by its group alone.
        target = field["object"].replace("BlueGreen/", "BlueGreen.app.demo.kakao.com/")

        def offered() -> dict[str, str] | None:
            found = printed(typed("owners", target, "--contested").out)
            return found if found.keys() == trial.offered else None

        # What a first pass said of a field may be said better by the next one.
        remedies = eventually(offered, what=f"{trial.offered} for {target}")
        line = remedies[trial.effect]

        Shell(nodes_sandbox).type(line)
        if " adopt " in line:
            Shell(nodes_sandbox).type(f"{line} --yes")

        eventually(lambda: not tried.told(kind, name), what=f"{line} settles it")
        eventually(
            lambda: situation.kept(tried, name) == trial.expected,
            what=f"{line}: {trial.expected}",
        )

    def test_after_a_claim_that_is_not_allowed_it_is_the_label_that_is_missing(
        self, world: Looks, nodes_sandbox: Sandbox, capsys: pytest.CaptureFixture[str]
    ):
        """Fact: a shell, kubectl and the server take the line that is told in both places.

        That the claim then counts within a minute is proven in memory.
        """
        manifest = bluegreens.bluegreen(world.namespace, "demo", greenSpec=None)
        world.api.apply(manifest, "user").must()
        eventually(lambda: world.said("BlueGreen", "demo", "Ready") == "True/Serving")
        world.set_image(deployment("demo"), "blue", "set/echo:9")
        claim = {"metadata": {"annotations": {CLAIM: "*/*: **"}}}
        world.edit("BlueGreen", "demo", claim, "annotator")
        eventually(lambda: world.said("BlueGreen", "demo", "Stalled") == "True/ClaimRefused")

        [line] = re.findall("`(.+)`", world.message("BlueGreen", "demo", "Stalled"))
        typed = typing(nodes_sandbox.kubeconfig, world.namespace, capsys)
        shown = typed("owners", f"deploy/{deployment('demo')}", "--contested").out
        assert line in [told.strip() for told in shown.splitlines()]
        assert f"{CLAIM}=" not in shown
        Shell(nodes_sandbox).type(line)

        assert allows_claims(world.api.raw("GET", f"/api/v1/namespaces/{world.namespace}").must())


class TestAdmission:
    @pytest.mark.usefixtures("newest")  # older ones serve no MutatingAdmissionPolicy unasked
    def test_what_it_rewrites_is_reported_and_not_fought(
        self, world: Looks, operator: Operator, nodes_audit: AuditLog
    ):
        """Fact: a MutatingAdmissionPolicy changes what we apply, and may change it otherwise later.

        So after a restart nothing is applied again: it would roll all pods.
        """
        remove = mirror(world)
        try:
            manifest = bluegreens.bluegreen(world.namespace, "demo", greenSpec=None)
            world.api.apply(manifest, "user").must()
            rewritten = "RewrittenByAdmission"
            eventually(lambda: world.said("BlueGreen", "demo", rewritten) != "")
            told = world.message("BlueGreen", "demo", rewritten)
            assert "mirror.example/echo:1" in told
            assert world.about(rewritten, "BlueGreen/demo")
            eventually(lambda: world.said("BlueGreen", "demo", "Ready") == "True/Serving")
            ours: dict[str, Any] = {"user": USER, "namespace": world.namespace}
            Silence.fallen(nodes_audit, 2, **ours)
            assert operator.stop() == 0
            remove()
            remove = mirror(world, "mirror.example/echo:2")
            before, mark = world.get("Deployment", "demoblue-deployment"), nodes_audit.mark()
            operator.start()
            Silence.fallen(nodes_audit, 4, **ours)
            assert nodes_audit.writes(mark, **ours) == []
            assert world.get("Deployment", "demoblue-deployment") == before
        finally:
            remove()


class TestQuiet:
    def test_no_conflict_is_ever_retried_nor_after_a_restart(self, still: Silence):
        """Fact: the audit log shows that nothing is asked while controllers go on."""
        still.kept(5, "while everything is contested")


class TestWhatTookTime:
    """What is waited for began with this module, and comes while other tests go on."""

    def test_all_that_was_made_for_one_goes_with_it(self, tried: Looks):
        """Fact: the garbage collector follows our owner references."""
        children = (("Service", GONE), ("Deployment", deployment(GONE)))
        eventually(lambda: not any(tried.get(*child) for child in children))
        eventually(lambda: not tried.pods(deployment(GONE)), what="its pods are gone too")


def mirror(world: Looks, image: str = "mirror.example/echo:1") -> Any:
    """Let admission put another image into the Deployments of the namespace."""
    group = "admissionregistration.k8s.io"
    version = f"{group}/v1"
    if "mutatingadmissionpolicies" not in str(world.api.raw("GET", f"/apis/{version}").body):
        version = f"{group}/v1beta1"
    name = {"matchLabels": {"kubernetes.io/metadata.name": world.namespace}}
    rule = {
        "apiGroups": ["apps"],
        "apiVersions": ["v1"],
        "resources": ["deployments"],
        "operations": ["CREATE", "UPDATE"],
    }
    patch = (
        "Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{"
        "containers: object.spec.template.spec.containers.map(c,"
        f' Object.spec.template.spec.containers{{name: c.name, image: "{image}"}})}}}}}}}}'
    )
    policy = {
        "apiVersion": version,
        "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": "mirror"},
        "spec": {
            "matchConstraints": {"namespaceSelector": name, "resourceRules": [rule]},
            "mutations": [
                {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": patch}}
            ],
            "reinvocationPolicy": "Never",
            "failurePolicy": "Fail",
        },
    }
    binding = {
        "apiVersion": version,
        "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": "mirror"},
        "spec": {"policyName": "mirror"},
    }
    for manifest in (policy, binding):
        world.api.apply(manifest, "test").must()
    trial = bluegreens.bluegreen(world.namespace, "trial")

    def works() -> bool:
        pod = {"metadata": {"labels": {"a": "b"}}, "spec": trial["spec"]["blueSpec"]}
        spec = {"selector": {"matchLabels": {"a": "b"}}, "template": pod}
        body = {**world.target("Deployment", "trial"), "spec": spec}
        reply = world.api.apply(body, "test", dry_run=True).must()
        return reply["spec"]["template"]["spec"]["containers"][0]["image"].startswith("mirror")

    eventually(works, what="the policy takes effect")

    def remove() -> None:
        for manifest in (binding, policy):
            world.api.delete(manifest)

    return remove
