"""Bluegreens: what people do to a BlueGreen and its children, and what is to be seen then."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from faults.built_in import EVENTS, annotate
from faults.checked import BLUE, DEMO, GREEN, ROUTE
from faults.scenario import (
    Act,
    Object,
    People,
    Scenario,
    Step,
    apply,
    take,
    value_at,
)
from hedgerow.plan.yield_and_claim import CLAIM, YIELD
from runtime.scenes import CREATION
from runtime.stepwise import Look, Shows, WorldPeople, in_world, play, settle
from runtime.world import World, crash, pods

APPLY_BLUE, APPLY_GREEN, APPLY_SERVICE, APPLY_STATUS = CREATION
COLOURS = {"blue": BLUE, "green": GREEN}
CHILD = "Deployment/demoblue-deployment"
HELD_BY_FINALIZER = {"metadata": {"finalizers": ["example.com/hold"]}}
PHASE = "app.kubernetes.io/phase"


# --- what people do -------------------------------------------------------------------------------


def declare(identity: Object = DEMO, **spec: Any) -> Act:
    """Have a BlueGreen applied; None takes a field of the usual spec away."""
    usual = {"routeTo": "Blue", "blueSpec": pods("blue"), "greenSpec": pods("green")}
    whole = {key: value for key, value in (usual | spec).items() if value is not None}
    return apply(identity, **whole)


def in_pods(**fields: Any) -> Object:
    """Return the body of a Deployment with these fields of its pods."""
    return {"spec": {"template": {"spec": fields}}}


def take_image(image: str = "theirs:9", colour: str = "blue", by: str = "helm") -> Act:
    """Have the image of a colour taken by force."""
    return take(COLOURS[colour], in_pods(containers=[{"name": colour, "image": image}]), by)


def edit(identity: Object, patch: Object, by: str = "kubectl-edit") -> Act:
    return lambda people: people.edit(identity, patch, by)


def select(phase: str) -> Act:
    """Have the selector of the Service edited."""
    return edit(ROUTE, {"spec": {"selector": {PHASE: phase}}})


def label(identity: Object, value: str | None) -> Act:
    """Have our own label edited."""
    return edit(identity, {"metadata": {"labels": {"hedgerow.dev/controller": value}}})


def delete(*identities: Object) -> Act:
    def act(people: People) -> None:
        for identity in identities:
            people.delete(identity)

    return act


def hold(identity: Object) -> Act:
    """Have an object kept by a finalizer."""
    return edit(identity, HELD_BY_FINALIZER)


def let_go(identity: Object) -> Act:
    return edit(identity, {"metadata": {"finalizers": None}})


def theirs(identity: Object = ROUTE, owner: str = "", **spec: Any) -> Act:
    """Have somebody put up an object under the name of a child, as that of a BlueGreen."""

    def act(people: People) -> object:
        meta = {**identity["metadata"]}
        if owner:
            live = people.get({**DEMO, "metadata": {"name": owner}}) or {}
            reference = {"name": owner, "uid": live["metadata"]["uid"], "controller": True}
            reference |= {key: live[key] for key in ("apiVersion", "kind")}
            meta["ownerReferences"] = [reference]
        wanted = spec or {"ports": [{"port": 1, "protocol": "TCP"}]}
        return people.apply({**identity, "metadata": meta, "spec": wanted}, "original")

    return act


def yields(text: str | None) -> Act:
    return annotate(DEMO, **{YIELD: text})


def claims(text: str | None) -> Act:
    return annotate(DEMO, **{CLAIM: text})


collect = in_world(lambda world: world.server.collect())
look_again = in_world(lambda world: world.life.look())
told = in_world(lambda world: world.deliver())
"""All that was done by now is told by the watches; what follows is not told in time."""


def crash_at(number: int, when: str = "after") -> Act:
    """Have the process end around the request of that number from now on."""
    return in_world(lambda world: world.during(number, crash, when=when))


def wait(seconds: int) -> Act:
    def act(world: World) -> None:
        world.server.now += seconds

    return in_world(act)


# --- what is to be seen ---------------------------------------------------------------------------


def condition(kind: str, people: People) -> str:
    found = value_at(people.get(DEMO), ("status", "conditions")) or ()
    return next((f"{c['status']}/{c['reason']}" for c in found if c["type"] == kind), "")


def message(kind: str, people: People) -> str:
    found = value_at(people.get(DEMO), ("status", "conditions")) or ()
    return next((c["message"] for c in found if c["type"] == kind), "")


def contested(people: People) -> list[tuple[str, str, str | None]]:
    found = value_at(people.get(DEMO), ("status", "contested")) or ()
    return [(c["object"], c["path"], c.get("manager")) for c in found]


def events(people: People) -> str:
    """Return the reasons of the Events."""
    return " ".join(sorted(one["reason"] for one in people.every(EVENTS)))


def of_pods(identity: Object, name: str, people: People) -> object:
    return value_at(people.get(identity), ("spec", "template", "spec", name))


def images(identity: Object, people: People) -> str:
    """Return the images of a Deployment's containers; empty if it is not there."""
    found = value_at(people.get(identity), ("spec", "template", "spec", "containers"))
    return " ".join(container["image"] for container in found or ())


def holders(identity: Object, people: People) -> str:
    """Return who has the image of the blue container in his entry."""
    entries = value_at(people.get(identity), ("metadata", "managedFields")) or ()
    return " ".join(
        sorted(one["manager"] for one in entries if "f:image" in str(one["fieldsV1"].get("f:spec")))
    )


def is_going(identity: Object, people: People) -> bool | None:
    """Return whether an object is being deleted; None if it is not there."""
    live = people.get(identity)
    return None if live is None else "deletionTimestamp" in live["metadata"]


@dataclass(frozen=True)
class Times:
    """So often each of some lines stands among others."""

    wanted: dict[str, int]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, list) and all(
            other.count(line) == number for line, number in self.wanted.items()
        )

    def __hash__(self) -> int:
        return hash(tuple(self.wanted))


def cached(people: WorldPeople) -> float:
    """Return how many Deployments are cached."""
    of_deployments = {"controller": "bluegreen", "resource": "deployments.apps"}
    return people.world.life.measured("hedgerow_cache_objects", **of_deployments)


def forced(people: WorldPeople) -> int:
    return sum(sent.force for sent in people.world.cluster.writes)


LOOKS: dict[str, Look] = {
    **{
        kind: partial(condition, kind)
        for kind in ("Ready", "Contested", "Stalled", "RewrittenByAdmission")
    },
    "contested": contested,
    "contested_objects": lambda people: len({target for target, _, _ in contested(people)}),
    "listed": lambda people: len(contested(people)),
    "counted": lambda people: value_at(people.get(DEMO), ("status", "contestedCount")),
    "events": events,
    "blue": partial(images, BLUE),
    "green": partial(images, GREEN),
    "route": lambda people: value_at(people.get(ROUTE), ("spec", "selector", PHASE)),
    "grace": partial(of_pods, BLUE, "terminationGracePeriodSeconds"),
    "nodes": partial(of_pods, BLUE, "nodeSelector"),
    "variables": lambda people: [sorted(one) for one in _container(people).get("env", ())],
    "volumes": lambda people: [sorted(one) for one in _volumes(people)],
    "holders": partial(holders, BLUE),
    "label": lambda people: value_at(
        people.get(BLUE), ("metadata", "labels", "hedgerow.dev/controller")
    ),
    "status": lambda people: value_at(people.get(DEMO), ("status", "routeTo")),
    "going": partial(is_going, ROUTE),
    "green_going": partial(is_going, GREEN),
}
OF_WORLD: dict[str, Look] = {
    "sent": lambda people: people.sent,
    "taken_over": lambda people: people.saying(APPLY_BLUE, "emptyDir"),
    "requests": lambda people: len(people.sent),
    "writes": lambda people: people.writes,
    "cached": cached,
    "complaints": lambda people: people.world.complaints,
    "forced": forced,
    "retried": lambda people: people.world.life.retried,
    "waits": lambda people: people.world.life.next_due < float("inf"),
}


def _container(people: People) -> Object:
    return value_at(people.get(BLUE), ("spec", "template", "spec", "containers"))[0]


def _volumes(people: People) -> list[Object]:
    return value_at(people.get(BLUE), ("spec", "template", "spec", "volumes")) or []


def step(
    *acts: Act,
    lag: str = "",
    restarted: bool = False,
    looks: Mapping[str, Look] | None = None,
    of_world: Mapping[str, Look] | None = None,
    **wanted: object,
) -> Step:
    """Return what people do, and what is to be seen once that is answered; with looks of others."""
    seen = Shows(LOOKS | dict(looks or {}), wanted, OF_WORLD | dict(of_world or {}))
    return Step(
        "then", lambda people: [act(people) for act in acts], seen, lag=lag, restarted=restarted
    )


def looked(look: Callable[[People], object]) -> Step:
    """Return one more look."""
    return Step("look", lambda people: None, look)


def says(kind: str, *words: str) -> Step:
    """Return a look for words in the message of a condition."""
    return looked(lambda people: all(word in message(kind, people) for word in words))


CREATED = step(declare(), Ready="False/Unavailable")


def row(name: str, *steps: Step, real: str = "") -> Scenario:
    """Return a row: steps of a scenario, of which `real` is what it proves of a real server."""
    return Scenario(name, "bluegreen", DEMO, steps, real=real)


async def play_row(row: Scenario, world: World | None = None) -> World:
    """Play a row, and return the world in which it was played."""
    world = world or World()
    await play(world, row.steps, rest=settle)
    return world


async def play_to_rest(row: Scenario, world: World | None = None) -> None:
    """Play a row; in the end there is nothing to write, in time or for a new operator."""
    world = await play_row(row, world)
    before, version = len(world.writes), world.server.version
    world.server.now += 301
    world.life.look()
    world.lose_and_relist()
    await settle(world)
    assert world.server.version == version
    for event in world.server.list("events.k8s.io", "Event").items:
        world.server.delete(event)  # as all do within an hour
    version = world.server.version
    for seconds in (0, 3600):
        world.server.now += seconds
        world.restart()
        await settle(world)
    assert world.writes[before:] == []
    assert world.server.version == version
