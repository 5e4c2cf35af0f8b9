"""Claims of fields on objects that are not owned, on the cluster in memory."""

from __future__ import annotations

import json
from typing import Any, ClassVar

import pytest

from hedgerow.contract import BuiltIn, Claim, Claimable, Controller, Desired, Key, Observed
from hedgerow.fields import managed_fields
from hedgerow.kube import errors
from hedgerow.plan.conditions import stalled
from hedgerow.plan.status_annotation import STATUS_ANNOTATION
from hedgerow.runtime.cache.budget import Budget
from hedgerow.testing.memory import kinds
from hedgerow.testing.memory.kind import ServedKind
from hedgerow.testing.memory.podspec import ANY
from hedgerow.testing.memory.schema import Struct
from hedgerow_schemas.base import ApiResource, Object, Resource, Status, View
from hedgerow_schemas.bluegreen import BlueGreen
from hedgerow_schemas.builtin import Deployment
from runtime.scenes import refuse
from runtime.world import World

pytestmark = pytest.mark.anyio

MANAGER = "hedgerow-scaler"
WANTED = "example.com/replicas"
OF = "example.com/of"


def by_label(obj: View) -> Key | None:
    """The resource that a Deployment's label names."""
    name = str(obj.labels.get(OF, ""))
    return (obj.namespace, name) if name else None


def scaled(resource: Resource, observed: Observed) -> Desired:
    """Claim the replicas that an annotation wants, of each Deployment that there is to claim."""
    wanted = resource.metadata.annotations.get(WANTED)
    fields: Object = {"spec": {"replicas": int(wanted)}} if wanted else {}
    if not wanted:
        return Desired()
    names = [view.name for view in observed.all(Deployment)] or ["web"]
    return Desired(claims=tuple(Claim(Deployment, name, fields) for name in names))


REPLICAS = (("spec", "replicas"),)
SCALER: Controller[Any] = Controller(
    "scaler", BlueGreen, scaled, owns=(), claims=(Claimable(Deployment, REPLICAS, of=by_label),)
)


class Workload(Resource):
    """A Deployment that says by an annotation how many replicas it is to have."""

    api: ClassVar[ApiResource] = Deployment.api


def own(resource: Workload, _observed: Observed) -> Desired:
    wanted = resource.metadata.annotations.get(WANTED, "")
    if not wanted:
        return Desired()
    if not wanted.isdecimal():
        bad = stalled("InvalidReplicas", f"{WANTED} is no number: {wanted}")
        return Desired(status=Status(conditions=bad))
    fields: Object = {"spec": {"replicas": int(wanted)}}
    return Desired(claims=(Claim(Deployment, resource.metadata.name, fields),))


OWN: Controller[Any] = Controller(
    "scaler", Workload, own, owns=(), built_in=BuiltIn(claims=REPLICAS)
)
LABELS = {"app": "web"}
SPEC = {
    "selector": {"matchLabels": LABELS},
    "template": {
        "metadata": {"labels": LABELS},
        "spec": {"containers": [{"name": "web", "image": "web:1"}]},
    },
}


def deploy(world: World, name: str = "web", of: str = "demo", **spec: Any) -> None:
    target = world.target("Deployment", name)
    labels = {"labels": {OF: of}} if of else {}
    meta = {**target["metadata"], **labels}
    world.server.apply({**target, "metadata": meta, "spec": {**SPEC, **spec}}, "helm")


def want(world: World, number: str | None, kind: str = "BlueGreen", name: str = "demo") -> None:
    world.edit(kind, name, {"metadata": {"annotations": {WANTED: number}}})


def replicas(world: World, name: str = "web") -> int:
    return world.the("Deployment", name)["spec"]["replicas"]


def is_held(world: World, name: str = "web") -> bool:
    return managed_fields.entry(world.the("Deployment", name), MANAGER) is not None


def on_deployments(world: World, before: int = 0) -> list[str]:
    return [line for line in world.writes[before:] if "Deployment" in line or "deployments" in line]


async def claimed(number: str = "3", **how: Any) -> World:
    world = World(controller=SCALER, **how)
    deploy(world)
    world.apply()
    want(world, number)
    await world.settle()
    assert world.failures == []
    return world


class TestClaim:
    async def test_a_field_of_an_object_is_held_and_nothing_else(self):
        world = await claimed()

        assert replicas(world) == 3
        live = world.the("Deployment", "web")
        assert managed_fields.entry(live, MANAGER) == {"f:spec": {"f:replicas": {}}}
        assert not live["metadata"].get("ownerReferences")
        assert live["metadata"]["labels"] == {OF: "demo"}
        assert world.condition("Ready") == "True/Settled"

    @pytest.mark.parametrize("size", [3, 7], ids=["as wanted", "contested"])
    async def test_neither_a_steady_state_nor_a_restart_writes_anything(self, size):
        world = await claimed()
        world.server.scale(world.target("Deployment", "web"), size, "kubectl")
        await world.settle()
        before = len(world.writes)
        await world.settle()
        world.restart()
        await world.settle()

        assert world.writes[before:] == []

    async def test_an_object_that_is_not_there_is_claimed_once_it_is(self):
        world = World(controller=SCALER)
        world.apply()
        want(world, "3")
        await world.settle()
        assert world.get("Deployment", "web") is None
        assert world.condition("Ready") == "True/Settled"

        deploy(world)
        await world.settle()

        assert replicas(world) == 3

    async def test_a_change_of_the_object_is_noticed(self):
        world = await claimed()
        world.server.scale(world.target("Deployment", "web"), 7, "kubectl")
        await world.settle()

        assert replicas(world) == 7
        assert world.contested() == [("Deployment/web", ".spec.replicas", "kubectl")]
        assert world.condition("Contested") == "True/FieldConflict"
        regarding = {
            event["regarding"]["kind"]
            for event in world.server.list("events.k8s.io", "Event").items
            if event["reason"] == "FieldConflict"
        }
        assert regarding == {"BlueGreen"}

    async def test_the_annotations_of_the_resource_apply_to_it(self):
        world = await claimed()
        world.server.scale(world.target("Deployment", "web"), 7, "kubectl")
        term = "Deployment/web: spec.replicas"
        world.edit("BlueGreen", "demo", {"metadata": {"annotations": {"hedgerow.dev/yield": term}}})
        await world.settle()
        assert (replicas(world), world.contested()) == (7, [])

        field_policy = {"hedgerow.dev/yield": None, "hedgerow.dev/claim": term}
        world.edit("BlueGreen", "demo", {"metadata": {"annotations": field_policy}})
        await world.settle()
        assert (replicas(world), world.contested()) == (3, [])
        assert "FieldClaimed" in world.events()

    async def test_a_write_that_meets_a_newer_object_is_planned_anew(self):
        world = World(controller=SCALER)
        deploy(world)
        world.apply()
        want(world, "3")
        world.deliver()
        world.server.apply(
            {**world.target("Deployment", "web"), "spec": {"replicas": 9}}, "hpa", force=True
        )
        await world.work()  # the watch of Deployments is behind
        await world.settle()

        assert replicas(world) == 9
        assert world.contested() == [("Deployment/web", ".spec.replicas", "hpa")]


def go(world: World) -> None:
    """Have the resource deleted, and a finalizer keep it."""
    world.edit("BlueGreen", "demo", {"metadata": {"finalizers": ["a/b"]}})
    world.delete("BlueGreen")


def unassign(world: World) -> None:
    world.edit("Deployment", "web", {"metadata": {"labels": {OF: None}}}, by="helm")


class TestGivingBack:
    @pytest.mark.parametrize("restarts", [False, True], ids=["", "over a restart"])
    @pytest.mark.parametrize(
        "act",
        [lambda world: want(world, None), lambda world: world.delete("BlueGreen"), go, unassign],
        ids=["not wanted", "deleted", "being deleted", "assigned to none"],
    )
    async def test_one_that_has_no_reason_any_more_is_given_back(self, act, restarts):
        world = await claimed()
        before = len(world.writes)
        act(world)
        if restarts:
            world.restart()
        await world.settle()

        assert not is_held(world)
        assert len(on_deployments(world, before)) == 1

    async def test_one_that_is_assigned_to_another_resource_is_given_back_or_taken_over(self):
        world = await claimed()
        world.apply("other")
        world.edit("Deployment", "web", {"metadata": {"labels": {OF: "other"}}}, by="helm")
        await world.settle()
        assert not is_held(world)

        want(world, "5", name="other")
        await world.settle()
        assert replicas(world) == 5

    async def test_a_refusal_is_tried_again(self):
        world = await claimed()
        refuse(world, errors.Forbidden("may not", code=403), "web", times=2)
        world.delete("BlueGreen")
        await world.settle()

        assert not is_held(world)

    async def test_nothing_is_given_back_while_the_resource_cannot_be_read(self):
        world = await claimed()
        field_policy = {"hedgerow.dev/yield": "nonsense"}
        world.edit(
            "BlueGreen", "demo", {"metadata": {"annotations": {**field_policy, WANTED: None}}}
        )
        await world.settle()

        assert is_held(world)
        assert world.condition("Stalled") == "True/InvalidAnnotation"


class TestBudget:
    async def test_an_object_that_is_too_large_is_not_written_and_still_given_back(self):
        world = await claimed(budget=lambda: Budget(24 * 20_000))
        world.edit("Deployment", "web", {"metadata": {"annotations": {"big": "x" * 100_000}}})
        await world.settle()
        assert world.condition("Stalled") == "True/TooLarge"
        assert is_held(world)

        world.delete("BlueGreen")
        await world.settle()
        assert not is_held(world)


class TestBuiltIn:
    async def world(self, number: str = "3") -> World:
        world = World(controller=OWN)
        deploy(world)
        want(world, number, "Deployment", "web")
        await world.settle()
        assert world.failures == []
        return world

    @staticmethod
    def told(world: World) -> Object:
        live = world.the("Deployment", "web")
        return json.loads(live["metadata"]["annotations"].get(STATUS_ANNOTATION, "{}"))

    async def test_a_resource_without_a_reason_gets_no_request(self):
        world = World(controller=OWN)
        deploy(world)
        await world.settle()

        assert world.writes == []

    async def test_one_that_is_as_wanted_says_nothing_and_has_no_status_of_ours(self):
        world = await self.world()

        assert replicas(world) == 3
        assert self.told(world) == {}
        live = world.the("Deployment", "web")
        assert managed_fields.entry(live, MANAGER) == {"f:spec": {"f:replicas": {}}}
        assert managed_fields.entry(live, MANAGER, "status") is None

    async def test_what_a_condition_would_say_is_in_one_annotation(self):
        world = await self.world()
        world.server.scale(world.target("Deployment", "web"), 7, "kubectl")
        await world.settle()

        told = self.told(world)
        assert {one["type"] for one in told["conditions"]} == {"Ready", "Contested"}
        (field,) = told["contested"]
        assert (field["object"], field["path"], field["manager"]) == (
            "Deployment/web",
            ".spec.replicas",
            "kubectl",
        )
        assert "declared" not in field
        assert world.events() == ["FieldConflict"]
        assert replicas(world) == 7

    async def test_it_is_removed_once_there_is_nothing_to_say(self):
        world = await self.world()
        world.server.scale(world.target("Deployment", "web"), 7, "kubectl")
        await world.settle()
        want(world, "7", "Deployment", "web")
        await world.settle()

        assert self.told(world) == {}
        assert replicas(world) == 7

    async def test_a_bad_annotation_of_its_user_is_told_and_the_claim_given_back(self):
        world = await self.world()
        want(world, "many", "Deployment", "web")
        await world.settle()

        told = self.told(world)
        assert {one["type"]: one["reason"] for one in told["conditions"]} == {
            "Stalled": "InvalidReplicas",
            "Ready": "InvalidReplicas",
        }
        live = world.the("Deployment", "web")
        assert managed_fields.entry(live, MANAGER) == {
            "f:metadata": {"f:annotations": {f"f:{STATUS_ANNOTATION}": {}}}
        }
        assert world.events() == ["InvalidReplicas"]

    async def test_a_refused_annotation_waits_ever_longer(self):
        world = await self.world()
        refused = refuse(world, errors.Forbidden("may not", code=403), "web")
        start = world.server.now
        world.server.scale(world.target("Deployment", "web"), 7, "kubectl")
        while world.server.now < start + 600:
            world.deliver()
            await world.work()
            world.server.now += 1

        assert 3 <= len(refused) <= 14
        assert world.failures == []

    async def test_who_takes_the_replicas_away_again_and_again_is_let_win(self):
        world = await self.world()
        for _ in range(30):
            live = world.the("Deployment", "web")
            entries = live["metadata"]["managedFields"]
            live["metadata"]["managedFields"] = [e for e in entries if e["manager"] != MANAGER]
            live["spec"]["replicas"] = 1
            world.server.update(live, "meddler")
            world.deliver()
            await world.work()
        before = len(world.writes)
        await world.settle()

        assert world.writes[before:] == []
        assert len(on_deployments(world)) < 20


class Region(Resource):
    """A cluster-scoped kind that says by an annotation how many replicas it is to have."""

    api: ClassVar[ApiResource] = ApiResource("v1", "Region", "regions", namespaced=False)


class RegionView(View):
    api: ClassVar[ApiResource] = Region.api


def regional(resource: Region, _observed: Observed) -> Desired:
    wanted = resource.metadata.annotations.get(WANTED)
    fields: Object = {"spec": {"replicas": int(wanted)}} if wanted else {}
    return Desired(claims=(Claim(RegionView, resource.metadata.name, fields),) if wanted else ())


class TestClusterScoped:
    TARGET: ClassVar[Object] = {"apiVersion": "v1", "kind": "Region", "metadata": {"name": "north"}}

    @pytest.fixture
    def world(self, monkeypatch: pytest.MonkeyPatch) -> World:
        spec = Struct({"replicas": ANY, "size": ANY})
        monkeypatch.setattr(
            kinds, "BUILTIN", (*kinds.BUILTIN, ServedKind(Region.api, {"spec": spec}))
        )
        regions: Controller[Any] = Controller(
            "scaler", Region, regional, owns=(), built_in=BuiltIn(claims=REPLICAS)
        )
        world = World(controller=regions, namespaces=("default",))
        world.server.open_namespace("")
        notes = {"annotations": {WANTED: "3"}}
        world.server.apply({**self.TARGET, "metadata": {"name": "north", **notes}}, "user")
        return world

    async def test_it_is_watched_claimed_and_told_of_in_namespace_default(self, world: World):
        await world.settle()
        live = world.server.get(self.TARGET)
        assert live is not None
        assert live["spec"] == {"replicas": 3}

        note = {"annotations": {WANTED: "3"}}
        body = {**self.TARGET, "metadata": {"name": "north", **note}, "spec": {"replicas": 5}}
        world.server.apply(body, "user", force=True)
        await world.settle()

        assert world.failures == []
        (event,) = world.server.list("events.k8s.io", "Event").items
        assert (event["reason"], event["metadata"]["namespace"]) == ("FieldConflict", "default")
        live = world.server.get(self.TARGET)
        assert live is not None
        assert STATUS_ANNOTATION in live["metadata"]["annotations"]

    async def test_it_cannot_be_claimed_by_force(self, world: World):
        world.claiming[""] = False
        await world.settle()
        note = {"annotations": {"hedgerow.dev/claim": "Region/*: spec.replicas", WANTED: "3"}}
        body = {**self.TARGET, "metadata": {"name": "north", **note}, "spec": {"replicas": 5}}
        world.server.apply(body, "user", force=True)
        await world.settle()

        live = world.server.get(self.TARGET)
        assert live is not None
        assert live["spec"] == {"replicas": 5}
        assert "ClaimRefused" in live["metadata"]["annotations"][STATUS_ANNOTATION]
