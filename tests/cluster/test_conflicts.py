"""Conflicts on a real API server: shown where people look, never overwritten, never fought over.

Each remedy that is offered settles its conflict, typed as it is printed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from http import HTTPStatus
from typing import Any

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
    containers,
    deployment,
    image,
)
from support.cluster.trials import (
    ADOPTED,
    IGNORED,
    TOLD,
    TRIALS,
    Shell,
    Trial,
    printed,
)
from support.operator.running import Operator, RunAs
from support.programs.typed import Typing, typing

pytestmark = pytest.mark.cluster

USER = "hedgerow-conflicts-under-test"
FREED = "freed"
"""A BlueGreen whose Service's name somebody had, and gave up: names are read anew in time."""
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
            within=60,
            what=f"{name} is contested",
        )

    def annotate(self, name: str, **notes: str | None) -> None:
        words = {"yields": YIELD, "claims": CLAIM}
        annotations = {words[word]: value for word, value in notes.items()}
        self.edit("BlueGreen", name, {"metadata": {"annotations": annotations}}, "annotator")

    def notes(self, name: str) -> list[str]:
        """Return what Events on a BlueGreen say."""
        return [event["note"] for event in self.events(name)]

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
    squatter = {**world.target("Service", FREED), "spec": {"ports": [{"port": 1}]}}
    world.api.apply(squatter, "squatter").must()
    world.apply(FREED)
    world.apply(GONE)
    come_about(world, (*(trial.situation for trial in TRIALS), TOLD, IGNORED, ADOPTED))
    eventually(lambda: world.said("BlueGreen", FREED, "Stalled") == "True/NameTaken")
    world.delete("Service", FREED)
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
            within=60,
            what=f"{situation} is ready",
        )
    for situation in begun:
        situation.act(world, situation.name)


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

    def test_the_resource_has_one_event_for_each_child(self, upset: Looks, situation: Situation):
        told = upset.about("FieldConflict", f"{situation.kind}/{situation.name}")
        assert sorted(note.partition(": ")[0] for note in told) == sorted(
            {target for target, *_ in situation.contested}
        )


class TestSettling:
    def test_what_is_yielded_is_no_conflict_and_stays(self, world: Looks):
        make(world)
        world.set_image(deployment("demo"), "blue", "set/echo:9")
        eventually(lambda: world.said("BlueGreen", "demo", "Contested") == "True/FieldConflict")

        world.annotate(
            "demo", yields='Deployment/*: spec.template.spec.containers[name="blue"].image'
        )

        eventually(lambda: world.said("BlueGreen", "demo", "Contested") == "")
        assert image(world, "demo") == "set/echo:9"

    def test_what_is_claimed_is_taken_back_by_one_forced_apply(
        self, world: Looks, nodes_audit: AuditLog
    ):
        make(world)
        world.set_image(deployment("demo"), "blue", "set/echo:9")
        eventually(lambda: world.said("BlueGreen", "demo", "Contested") == "True/FieldConflict")
        mark = nodes_audit.mark()

        world.allow_claims()
        world.annotate(
            "demo", claims='Deployment/*: spec.template.spec.containers[name="blue"].image'
        )

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
        (note,) = eventually(lambda: world.about("FieldClaimed", "BlueGreen/demo"))
        assert note.startswith(f"Deployment/{deployment('demo')}: ")

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
        eventually(lambda: world.about("ClaimRefused", "BlueGreen/demo"))
        wrote = nodes_audit.writes(mark, user=USER, namespace=world.namespace)
        assert [entry for entry in wrote if "force=true" in entry["requestURI"]] == []

        world.allow_claims()

        # The label is read once a minute.
        eventually(lambda: image(world, "demo") == "example/echo:1", within=90)
        eventually(lambda: world.said("BlueGreen", "demo", "Stalled") == "")

    def test_an_item_is_not_removed_with_what_another_holds_in_it(self, world: Looks):
        two = [{"name": "blue", "image": "a"}, {"name": "side", "image": "b"}]
        spec = {"blueSpec": {"containers": two}, "greenSpec": None}
        world.api.apply(bluegreens.bluegreen(world.namespace, "demo", **spec), "user").must()
        eventually(lambda: world.said("BlueGreen", "demo", "Ready") == "True/Serving")
        world.set_image(deployment("demo"), "side", "set/echo:9")
        eventually(lambda: world.said("BlueGreen", "demo", "Contested") == "True/FieldConflict")

        spec["blueSpec"] = {"containers": two[:1]}
        world.api.apply(bluegreens.bluegreen(world.namespace, "demo", **spec), "user").must()

        path = '.spec.template.spec.containers[name="side"]'
        eventually(lambda: [told[1] for told in world.told("BlueGreen", "demo")] == [path])
        assert containers(world, "demo") == ["blue", "side"]

    def test_emptied_managed_fields_are_no_loss_of_what_is_ours(self, world: Looks):
        make(world)
        live = world.get("Deployment", deployment("demo"))
        live["metadata"]["managedFields"] = [{}]
        for container in live["spec"]["template"]["spec"]["containers"]:
            container["image"] = "wiped/echo:9"
        eventually(lambda: world.api.put(fresh(world, live), "wiper").ok)

        eventually(lambda: [t[2] for t in world.told("BlueGreen", "demo")] != [])
        ((_, path, manager, *_),) = world.told("BlueGreen", "demo")
        assert path.endswith(".image")
        assert manager in ("before-first-apply", "wiper")
        assert image(world, "demo") == "wiped/echo:9"

    def test_an_item_that_cannot_be_proven_ours_is_reported_and_goes_once_it_is_adopted(
        self, world: Looks, nodes_sandbox: Sandbox, capsys: pytest.CaptureFixture[str]
    ):
        two = [{"name": "blue", "image": "a"}, {"name": "side", "image": "b"}]
        spec = {"blueSpec": {"containers": two}, "greenSpec": None}
        world.api.apply(bluegreens.bluegreen(world.namespace, "demo", **spec), "user").must()
        eventually(lambda: world.said("BlueGreen", "demo", "Ready") == "True/Serving")
        emptied = {"metadata": {"managedFields": [{}]}}
        world.api.merge(world.target("Deployment", deployment("demo")), emptied, "wiper").must()
        eventually(lambda: "before-first-apply" in holders(world))

        spec["blueSpec"] = {"containers": two[:1]}
        world.api.apply(bluegreens.bluegreen(world.namespace, "demo", **spec), "user").must()

        path, child = '.spec.template.spec.containers[name="side"]', deployment("demo")
        told = [(f"Deployment/{child}", path, "before-first-apply", "Update", None)]
        eventually(lambda: list(world.told("BlueGreen", "demo")) == told)
        assert containers(world, "demo") == ["blue", "side"]

        typed = typing(nodes_sandbox.kubeconfig, world.namespace, capsys)
        done = typed("adopt", f"deployment/{child}", "--from", "before-first-apply")

        assert done.code == 0, done.err
        eventually(lambda: containers(world, "demo") == ["blue"])
        eventually(lambda: world.said("BlueGreen", "demo", "Contested") == "")
        assert "before-first-apply" not in holders(world)


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
        situation = trial.situation
        kind, name = situation.kind, situation.name
        (field,) = tried.fields(situation)
        # The resource itself is of a kind that kubectl finds by its group alone.
        target = field["object"].replace("BlueGreen/", "BlueGreen.app.demo.kakao.com/")

        def offered() -> dict[str, str] | None:
            found = printed(typed("owners", target, "--contested").out)
            return found if found.keys() == trial.offered else None

        # What a first pass said of a field may be said better by the next one.
        remedies = eventually(offered, within=30, what=f"{trial.offered} for {target}")
        line = remedies[trial.effect]

        Shell(nodes_sandbox).type(line)

        eventually(lambda: not tried.told(kind, name), within=60, what=f"{line} settles it")
        eventually(
            lambda: situation.kept(tried, name) == trial.expected,
            within=60,
            what=f"{line}: {trial.expected}",
        )

    def test_the_values_of_both_are_told_wherever_a_conflict_is_shown(
        self, tried: Looks, typed: Typing, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setenv("COLUMNS", "200")
        said = "you declare example/echo:1, it is set/echo:9; held by kubectl-set (Update)"
        child = deployment(TOLD.name)

        (field,) = tried.fields(TOLD)
        assert (field["declared"], field["live"]) == ("example/echo:1", "set/echo:9")
        assert field["reason"] == "OtherValue"
        assert said in typed("tree", TOLD.name).out
        owners = typed("owners", f"deploy/{child}", "--contested").out
        assert said in owners
        notes = eventually(lambda: [n for n in tried.notes(TOLD.name) if said in n])
        for command in printed(owners).values():
            assert f"`{command}`" in notes[0]

    def test_a_claim_that_is_ignored_says_so_on_the_resource(self, tried: Looks):
        tried.fields(IGNORED)
        name = IGNORED.name
        tried.annotate(name, claims=f"Service/{name}: spec.selector")

        ignored = ("BlueGreen", name, "AnnotationIgnored")
        eventually(lambda: tried.said(*ignored) == "True/NoEffect")
        assert tried.message(*ignored) == (
            f"hedgerow.dev/claim: Service/{name}: spec.selector has no effect on Service/{name}"
            " .spec.selector: a field that selects pods, or names an object or item, is never"
            " taken by force"
        )
        eventually(lambda: tried.about("AnnotationIgnored", f"BlueGreen/{name}"))
        assert tried.selected(name) == "Grey"

    def test_after_an_adoption_nothing_is_said_to_have_been_removed(
        self, tried: Looks, typed: Typing
    ):
        name = ADOPTED.name
        tried.fields(ADOPTED)
        field = ("--field", "spec.selector")

        done = typed("adopt", f"Service/{name}", "--from", "kubectl-edit", *field)

        assert done.code == 0, done.err
        eventually(lambda: tried.selected(name) == "Blue")
        eventually(lambda: tried.said("BlueGreen", name, "Ready") == "True/Serving", within=60)
        assert [note for note in tried.notes(name) if "removed" in note] == []


class TestAdmission:
    @pytest.mark.usefixtures("newest")  # older ones serve no MutatingAdmissionPolicy unasked
    def test_what_it_rewrites_is_reported_and_not_fought(
        self, world: Looks, operator: Operator, nodes_audit: AuditLog
    ):
        remove = mirror(world)
        try:
            manifest = bluegreens.bluegreen(world.namespace, "demo", greenSpec=None)
            world.api.apply(manifest, "user").must()
            rewritten = "RewrittenByAdmission"
            eventually(lambda: world.said("BlueGreen", "demo", rewritten) != "", within=60)
            told = world.message("BlueGreen", "demo", rewritten)
            assert "mirror.example/echo:1" in told
            assert world.about(rewritten, "BlueGreen/demo")
            eventually(lambda: world.said("BlueGreen", "demo", "Ready") == "True/Serving")
            ours: dict[str, Any] = {"user": USER, "namespace": world.namespace}
            Silence.fallen(nodes_audit, 2, **ours)
            assert operator.stop() == 0
            before, mark = world.get("Deployment", "demoblue-deployment"), nodes_audit.mark()
            operator.start()
            eventually(lambda: nodes_audit.writes(mark, **ours), what="it looks once more")
            Silence.fallen(nodes_audit, 4, **ours)
            [write] = nodes_audit.writes(mark, **ours)
            assert write["objectRef"]["name"] == "demoblue-deployment"
            assert world.get("Deployment", "demoblue-deployment") == before
        finally:
            remove()


class TestQuiet:
    def test_no_conflict_is_ever_retried_nor_after_a_restart(self, still: Silence):
        still.kept(5, "while everything is contested")


class TestWhatTookTime:
    """What is waited for began with this module, and comes while other tests go on."""

    def test_a_name_that_is_free_again_is_taken_up(self, tried: Looks):
        eventually(lambda: tried.said("BlueGreen", FREED, "Ready") == "True/Serving", within=60)
        assert tried.said("BlueGreen", FREED, "Stalled") == ""
        assert tried.selected(FREED) == "Blue"

    def test_all_that_was_made_for_one_goes_with_it(self, tried: Looks):
        children = (("Service", GONE), ("Deployment", deployment(GONE)))
        eventually(lambda: not any(tried.get(*child) for child in children), within=90)
        eventually(lambda: not tried.pods(deployment(GONE)), what="its pods are gone too")


def make(world: Looks, *names: str) -> None:
    """Have BlueGreens be served, `demo` unless others are named."""
    for name in names or ("demo",):
        world.api.apply(bluegreens.bluegreen(world.namespace, name), "user").must()
    for name in names or ("demo",):
        eventually(lambda name=name: world.said("BlueGreen", name, "Ready") == "True/Serving")


def holders(world: Looks) -> set[str]:
    live = world.get("Deployment", deployment("demo"))
    return {entry["manager"] for entry in live["metadata"].get("managedFields", ())}


def fresh(world: Looks, body: dict[str, Any]) -> dict[str, Any]:
    """Return a body at the object's present version."""
    live = world.get("Deployment", body["metadata"]["name"])
    version = live["metadata"]["resourceVersion"]
    return {**body, "metadata": {**body["metadata"], "resourceVersion": version}}


def mirror(world: Looks) -> Any:
    """Let admission put another registry before the image of Deployments in the namespace."""
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
        ' Object.spec.template.spec.containers{name: c.name, image: "mirror.example/echo:1"})}}}}'
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
