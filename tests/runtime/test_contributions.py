"""Contributions to objects that are not owned, on the cluster in memory."""

from __future__ import annotations

import json
from typing import Any, ClassVar

import pytest

from faults.built_in import WEB, noted
from faults.checked import DEMO
from faults.scenario import STATUS, Act, People, Scenario, Step, at, scale, take, value_at
from hedgerow.contract import (
    BuiltIn,
    ContributesTo,
    Contribution,
    Controller,
    Desired,
    Key,
    Observed,
)
from hedgerow.fields import managed_fields
from hedgerow.kube import errors
from hedgerow.plan.conditions import stalled
from hedgerow.plan.status_annotation import STATUS_ANNOTATION
from hedgerow_schemas.base import ApiResource, Object, Resource, Status, View
from hedgerow_schemas.bluegreen import BlueGreen
from hedgerow_schemas.builtin import Deployment
from hedgerow_testing.memory import kinds
from hedgerow_testing.memory.kind import ServedKind
from hedgerow_testing.memory.podspec import ANY
from hedgerow_testing.memory.schema import Struct
from runtime.bluegreens import (
    claims,
    declare,
    delete,
    edit,
    hold,
    looked,
    play_row,
    play_to_rest,
    row,
    told,
    yields,
)
from runtime.bluegreens import step as _step
from runtime.scenes import refuse
from runtime.stepwise import Look, WorldPeople, in_world, play, settle
from runtime.things import MANY
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
    """Contribute the replicas that an annotation wants to each Deployment that there is for it."""
    wanted = resource.metadata.annotations.get(WANTED)
    fields: Object = {"spec": {"replicas": int(wanted)}} if wanted else {}
    if not wanted:
        return Desired()
    names = [view.name for view in observed.all(Deployment)] or ["web"]
    return Desired(contributions=tuple(Contribution(Deployment, name, fields) for name in names))


REPLICAS = (("spec", "replicas"),)
SCALER: Controller[Any] = Controller(
    "scaler",
    BlueGreen,
    scaled,
    owns=(),
    contributes=(ContributesTo(Deployment, REPLICAS, of=by_label),),
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
    return Desired(contributions=(Contribution(Deployment, resource.metadata.name, fields),))


OWN: Controller[Any] = Controller(
    "scaler", Workload, own, owns=(), built_in=BuiltIn(contributes=REPLICAS)
)
LABELS = {"app": "web"}
SPEC = {
    "selector": {"matchLabels": LABELS},
    "template": {
        "metadata": {"labels": LABELS},
        "spec": {"containers": [{"name": "web", "image": "web:1"}]},
    },
}


HELD: Object = {"f:spec": {"f:replicas": {}}}


# --- what people do -------------------------------------------------------------------------------


def deployed(name: str = "web", of: str = "demo", **spec: Any) -> Act:
    """Have a Deployment applied, whose label names a resource."""
    meta = {"name": name, **({"labels": {OF: of}} if of else {})}
    body = {**WEB, "metadata": meta, "spec": {**SPEC, **spec}}
    return lambda people: people.apply(body, "helm")


def wanted(number: str | None, identity: Object = DEMO, **more: str | None) -> Act:
    """Have the annotation say how many replicas are wanted."""
    return edit(identity, {"metadata": {"annotations": {WANTED: number, **more}}})


def going(people: People) -> None:
    """Have the resource deleted, and a finalizer keep it."""
    hold(DEMO)(people)
    people.delete(DEMO)


def of_other(name: str | None) -> Act:
    return edit(WEB, {"metadata": {"labels": {OF: name}}}, "helm")


def take_away(world: World) -> None:
    """Have the replicas taken without a trace of us."""
    live = world.the("Deployment", "web")
    entries = live["metadata"]["managedFields"]
    live["metadata"]["managedFields"] = [e for e in entries if e["manager"] != MANAGER]
    live["spec"]["replicas"] = 1
    world.server.update(live, "meddler")


def forbid_twice(world: World) -> None:
    refuse(world, errors.Forbidden("may not", code=403), "web", times=2)


# --- what is to be seen ---------------------------------------------------------------------------


def entry(people: People) -> Object | None:
    """Return what the scaler holds of the Deployment."""
    return managed_fields.entry(people.get(WEB) or {}, MANAGER)


def said(people: People) -> Object:
    """Return what the annotation of a built-in resource says."""
    return json.loads(value_at(people.get(WEB), STATUS) or "{}")


def reasons(people: People) -> Object:
    return {one["type"]: one["reason"] for one in said(people).get("conditions", ())}


LOOKS: dict[str, Look] = {
    "web": lambda people: value_at(people.get(WEB), ("spec", "replicas")),
    "held": entry,
    "said": said,
    "reasons": reasons,
}
OF_WORLD: dict[str, Look] = {
    "contribution_writes": lambda people: sum("Deployment" in line for line in people.writes),
}


def _field(one: Object) -> tuple[str, str, str]:
    return one["object"], one["path"], one["manager"]


def step(*acts: Act, **how: Any) -> Step:
    return _step(*acts, looks=LOOKS, of_world=OF_WORLD, **how)


def on_deployments(world: World, before: int = 0) -> list[str]:
    return [line for line in world.writes[before:] if "Deployment" in line]


def is_held(world: World, name: str = "web") -> bool:
    return managed_fields.entry(world.the("Deployment", name), MANAGER) is not None


def deploy(world: World, name: str) -> None:
    deployed(name)(WorldPeople(world))


async def contributed(**how: Any) -> World:
    """Return a world with a Deployment that is scaled."""
    world = World(controller=SCALER, **how)
    await play(world, [CONTRIBUTED], rest=settle)
    return world


CONTRIBUTED = step(deployed(), declare(), wanted("3"), web=3, held=HELD, Ready="True/Settled")
OTHER = {**DEMO, "metadata": {"name": "other"}}
NINE = {"spec": {"replicas": 9}}
CONTESTED = [("Deployment/web", ".spec.replicas", "kubectl")]
TERM = "Deployment/web: spec.replicas"
ROWS = (
    row(
        "a field of an object is held and nothing else",
        CONTRIBUTED,
        looked(lambda people: "ownerReferences" not in (people.get(WEB) or {})["metadata"]),
        looked(at(WEB, "metadata", "labels", is_={OF: "demo"})),
    ),
    row(
        "an object that is not there is contributed to once it is",
        step(declare(), wanted("3"), web=None, Ready="True/Settled"),
        step(deployed(), web=3),
    ),
    row(
        "a change of the object is noticed, and the annotations of the resource apply to it",
        CONTRIBUTED,
        step(
            scale(WEB, 7, "kubectl"),
            web=7,
            contested=CONTESTED,
            Contested="True/FieldConflict",
            events="FieldConflict",
        ),
        looked(noted(DEMO, "FieldConflict")),
        step(yields(TERM), web=7, contested=[]),
        step(yields(None), claims(TERM), web=3, contested=[], events="FieldClaimed FieldConflict"),
    ),
    row(
        "a write that meets a newer object is planned anew",
        step(deployed(), declare(), wanted("3"), told, take(WEB, NINE, "hpa"), lag="BlueGreen"),
        step(web=9, contested=[("Deployment/web", ".spec.replicas", "hpa")]),
    ),
    *(
        row(
            f"one that {why} is given back{' by another life' if restarted else ''}",
            CONTRIBUTED,
            step(act, restarted=restarted, held=None, contribution_writes=1),
        )
        for why, act in {
            "is not wanted": wanted(None),
            "whose resource is deleted": delete(DEMO),
            "whose resource is being deleted": going,
            "is assigned to none": of_other(None),
        }.items()
        for restarted in (False, True)
    ),
    row(
        "one that is assigned to another resource is given back or taken over",
        CONTRIBUTED,
        step(declare(OTHER), of_other("other"), held=None),
        step(wanted("5", OTHER), web=5),
    ),
    row(
        "a refused giving back is tried again",
        CONTRIBUTED,
        step(in_world(forbid_twice), delete(DEMO), held=None),
    ),
    row(
        "nothing is given back while the resource cannot be read",
        CONTRIBUTED,
        step(
            wanted(None, **{"hedgerow.dev/yield": "nonsense"}),
            held=HELD,
            Stalled="True/InvalidAnnotation",
        ),
    ),
)
OWN_CONTRIBUTED = step(deployed(), wanted("3", WEB), web=3, held=HELD, said={}, events="")
FIELD = ("Deployment/web", ".spec.replicas", "kubectl")
BUILT_IN = (
    row("a built-in resource without a reason gets no request", step(deployed(), sent=[])),
    row(
        "what a condition would say is in one annotation, while there is something to say",
        OWN_CONTRIBUTED,
        step(
            scale(WEB, 7, "kubectl"),
            web=7,
            reasons={"Ready": "FieldConflict", "Contested": "FieldConflict"},
            events="FieldConflict",
        ),
        looked(lambda people: [_field(one) for one in said(people)["contested"]] == [FIELD]),
        looked(lambda people: "declared" not in said(people)["contested"][0]),
        step(wanted("7", WEB), said={}, web=7),
    ),
    row(
        "a bad annotation of its user is told and the contribution given back",
        OWN_CONTRIBUTED,
        step(
            wanted("many", WEB),
            reasons={"Stalled": "InvalidReplicas", "Ready": "InvalidReplicas"},
            held={"f:metadata": {"f:annotations": {f"f:{STATUS_ANNOTATION}": {}}}},
            events="InvalidReplicas",
        ),
    ),
)


@pytest.mark.parametrize("row", ROWS, ids=str)
async def test_row(row: Scenario):
    await play_to_rest(row, World(controller=SCALER))


@pytest.mark.parametrize("row", BUILT_IN, ids=str)
async def test_of_built_in(row: Scenario):
    await play_to_rest(row, World(controller=OWN))


class TestBuiltIn:
    async def test_a_refused_annotation_waits_ever_longer(self):
        world = World(controller=OWN)
        await play(world, [OWN_CONTRIBUTED], rest=settle)
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
        again = [step(in_world(take_away), lag="Deployment")] * 30
        fight = row("a fight", OWN_CONTRIBUTED, *again, step(), step(sent=[]))
        world = await play_row(fight, World(controller=OWN))

        assert len(on_deployments(world)) < 20


class TestTooLarge:
    async def test_an_object_that_is_too_large_is_not_written_and_still_given_back(self):
        world = await contributed()
        too_large = step(edit(WEB, MANY), Stalled="True/TooLarge", held=HELD)
        await play(world, [too_large, step(delete(DEMO), held=None)], rest=settle)


class Region(Resource):
    """A cluster-scoped kind that says by an annotation how many replicas it is to have."""

    api: ClassVar[ApiResource] = ApiResource("v1", "Region", "regions", namespaced=False)


class RegionView(View):
    api: ClassVar[ApiResource] = Region.api


def regional(resource: Region, _observed: Observed) -> Desired:
    wanted = resource.metadata.annotations.get(WANTED)
    fields: Object = {"spec": {"replicas": int(wanted)}} if wanted else {}
    return Desired(
        contributions=(Contribution(RegionView, resource.metadata.name, fields),) if wanted else ()
    )


class TestClusterScoped:
    TARGET: ClassVar[Object] = {"apiVersion": "v1", "kind": "Region", "metadata": {"name": "north"}}

    @pytest.fixture
    def world(self, monkeypatch: pytest.MonkeyPatch) -> World:
        spec = Struct({"replicas": ANY, "size": ANY})
        monkeypatch.setattr(
            kinds, "BUILTIN", (*kinds.BUILTIN, ServedKind(Region.api, {"spec": spec}))
        )
        regions: Controller[Any] = Controller(
            "scaler", Region, regional, owns=(), built_in=BuiltIn(contributes=REPLICAS)
        )
        world = World(controller=regions, namespaces=("default",))
        world.server.open_namespace("")
        notes = {"annotations": {WANTED: "3"}}
        world.server.apply({**self.TARGET, "metadata": {"name": "north", **notes}}, "user")
        return world

    async def test_it_is_watched_contributed_to_and_told_of_in_namespace_default(
        self, world: World
    ):
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
