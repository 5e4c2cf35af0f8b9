"""Names that others have, and children that no watch shows."""

from __future__ import annotations

import dataclasses
import json
import re
import shlex
from typing import Any

import pytest

from faults.checked import BLUE, DEMO, GREEN, ROUTE
from faults.scenario import Act, People, both, target
from hedgerow.contract import Apply, Controller, Desired, Observed
from hedgerow.kube import errors
from hedgerow.objects import CONTROLLER_LABEL
from hedgerow_schemas.bluegreen import BlueGreen, BlueGreenStatus
from hedgerow_schemas.builtin import ConfigMap
from hedgerow_testing.memory.cluster import Sent
from runtime.bluegreens import (
    APPLY_BLUE,
    APPLY_SERVICE,
    CHILD,
    CREATED,
    Times,
    declare,
    delete,
    edit,
    label,
    look_again,
    looked,
    message,
    play_to_rest,
    row,
    says,
    step,
    take_image,
    theirs,
    told,
    wait,
)
from runtime.scenes import BLUE as BLUE_LINE
from runtime.scenes import IMAGE, refuse, settled
from runtime.stepwise import WorldPeople, in_world
from runtime.world import CONTROLLER, World, calm, pods

Object = dict[str, Any]

pytestmark = pytest.mark.anyio

LABEL = (CHILD, f".metadata.labels.{CONTROLLER_LABEL}", "kubectl-edit")
UNWATCHED = step(label(BLUE, "mine"), contested=[LABEL], cached=1)
WAITS, TAKEN = "False/WaitingForDeletion", "True/NameTaken"
MINE = declare(blueSpec=pods("blue", "mine:2"))
NOT_OURS = "exists and is not controlled by BlueGreen/demo"
CHILDREN = (BLUE, GREEN, ROUTE)
MARK = {"annotations": {"left": "behind"}}


def is_theirs(people: People) -> bool:
    """Look for an object that only somebody else has written."""
    entries = (people.get(ROUTE) or {})["metadata"]["managedFields"]
    return [entry["manager"] for entry in entries] == ["original"]


def is_labelled(people: People) -> bool:
    live = people.get(ROUTE) or {}
    return live["metadata"].get("labels", {}).get(CONTROLLER_LABEL) == "bluegreen"


def leave(*identities: Object) -> Act:
    """Have children left without their owner, others deleted, and the resource made anew."""

    def act(people: People) -> None:
        for child in CHILDREN:
            if child in identities:
                people.edit(child, {"metadata": {"ownerReferences": None, **MARK}}, "kubectl")
            else:
                people.delete(child)
        people.delete(DEMO)
        told(people)
        declare()(people)

    return act


def patch_as_told(people: People) -> None:
    """Carry the command of `Stalled` out."""
    [command] = re.findall("`(kubectl [^`]*)`", message("Stalled", people))
    program, verb, *names, kind, option, patch, where, namespace = shlex.split(command)
    assert (program, verb, kind, option) == ("kubectl", "patch", "--type=merge", "-p")
    assert (where, namespace) == ("-n", "default")
    versions = {child["kind"]: child["apiVersion"] for child in CHILDREN}
    for group_kind, name in (one.split("/") for one in names):
        kind = group_kind.removesuffix(".apps")
        assert group_kind == {"Deployment": "Deployment.apps", "Service": "Service"}[kind]
        people.edit(target(versions[kind], kind, name), json.loads(patch), "kubectl-patch")


def is_marked(identity: Object) -> Any:
    """Look for an object that was left behind, and was not made anew since."""
    return lambda people: "left" in (people.get(identity) or {})["metadata"]["annotations"]


def busy_neighbour(world: World) -> None:
    """Have the watch tell of a neighbour's Deployment before our own write is answered."""

    async def busy(sent: Sent) -> None:
        if str(sent) == APPLY_BLUE:
            world.make_ready("blue", "neighbour")
            world.deliver(kind="Deployment")

    world.cluster.after = busy


def free_it_in_time(world: World) -> None:
    """Have the Service deleted after our create was refused."""
    world.during(2, lambda: world.delete("Service"))


NEIGHBOUR = {**DEMO, "metadata": {"name": "neighbour"}}
OTHER = {**DEMO, "metadata": {"name": "other"}}
OTHERS_PODS: Object = {
    "selector": {"matchLabels": {"app": "theirs"}},
    "template": {"metadata": {"labels": {"app": "theirs"}}, "spec": pods("theirs")},
}
UNWATCHED_ROWS = (
    row(
        "a child that no watch shows is managed all the same",
        CREATED,
        UNWATCHED,
        step(MINE, blue="mine:2", contested=[LABEL]),
        real="A watch by label tells of an object without it as of one that is gone.",
    ),
    row(
        "it is read once in each pass, and only then",
        CREATED,
        UNWATCHED,
        step(sent=[], waits=False),
        step(look_again, sent=[f"read {BLUE_LINE}"]),
    ),
    row(
        "what others take of it is found by the next pass",
        CREATED,
        UNWATCHED,
        step(take_image(), look_again, contested=[LABEL, (CHILD, IMAGE, "helm")]),
    ),
    row(
        "so is its deletion",
        CREATED,
        UNWATCHED,
        step(delete(BLUE), look_again, blue="example/echo:1", contested=[]),
    ),
    row(
        "whoever gives the label up gets it back at once",
        CREATED,
        UNWATCHED,
        step(label(BLUE, None), look_again, label="bluegreen", contested=[], cached=2),
    ),
    row(
        "busy neighbours do not hide our own answers",
        CREATED,
        UNWATCHED,
        step(declare(NEIGHBOUR)),
        step(
            in_world(busy_neighbour), MINE, lag="BlueGreen", sent=Times({APPLY_BLUE: 1}), Stalled=""
        ),
    ),
    row(
        "a resource made anew does not wait for what is gone",
        CREATED,
        UNWATCHED,
        step(delete(DEMO), told, declare(), Ready=WAITS),
        step(delete(*CHILDREN), wait(31), Ready="False/Unavailable", label="bluegreen"),
    ),
)
OLD_PORT = {"name": "old", "port": 1, "protocol": "TCP"}
PORT = {"name": "http", "port": 80, "protocol": "TCP"}
NAMES = (
    row(
        "what is going and nobody's is looked at until the name is free",
        CREATED,
        step(
            edit(ROUTE, {"metadata": {"ownerReferences": None, "finalizers": ["a/hold"]}}),
            delete(ROUTE),
            Ready=WAITS,
        ),
        step(edit(ROUTE, {"metadata": {"finalizers": None}}), wait(31), route="Blue"),
    ),
    *(
        row(
            f"somebody else's object of {what} is never written and the rest goes on",
            step(
                theirs(**spec),
                declare(),
                Stalled=TAKEN,
                blue="example/echo:1",
                sent=Times({APPLY_SERVICE: 1}),
            ),
            looked(is_theirs),
            says("Stalled", f"Service/demo {NOT_OURS}; it is left alone: delete or rename"),
        )
        for what, spec in {
            "another port": {},
            "the same port": {"ports": [PORT], "selector": {"app": "same"}},
            "the same port under another name": {
                "ports": [{**PORT, "name": "other"}],
                "selector": {"app": "x"},
            },
        }.items()
    ),
    row(
        "a Deployment of somebody else is not said to be missing",
        step(theirs(BLUE, **OTHERS_PODS), declare(), Stalled=TAKEN),
        says("Ready", NOT_OURS),
        looked(lambda people: "exist" not in message("Available", people)),
    ),
    row(
        "a pass in between does not put off the next look at a taken name",
        step(theirs(), declare(), lag="BlueGreen", Stalled=TAKEN),
        step(delete(ROUTE), wait(28), MINE, lag="BlueGreen", Stalled=TAKEN),
        step(wait(3), lag="BlueGreen", route="Blue", Stalled=""),
    ),
    row(
        "a name that is free again before we look is taken at the next attempt",
        step(theirs(), declare(), in_world(free_it_in_time), lag="BlueGreen", Stalled=""),
        step(route="Blue"),
    ),
    row(
        "the name may be lost while we run",
        CREATED,
        step(
            delete(ROUTE),
            theirs(),
            declare(ports=[{"name": "x", "port": 9}]),
            lag="BlueGreen",
            Stalled=TAKEN,
            sent=Times({APPLY_SERVICE: 1}),
        ),
        step(Stalled=TAKEN),
        looked(is_theirs),
    ),
    row(
        "a child of ours that no watch shows is adopted",
        # The original operator's child: our resource's uid controls it, but it has no label.
        step(
            declare(),
            theirs(owner="demo", selector={"a": "b"}, ports=[OLD_PORT]),
            contested=[("Service/demo", ".spec.selector", "original")],
        ),
        looked(is_labelled),
    ),
    row(
        "an unlabelled child of another resource is left alone by both",
        step(declare(OTHER)),
        step(theirs(owner="other"), declare(), Stalled=TAKEN),
        looked(is_theirs),
        real="A create-only apply of a name that is taken changes nothing.",
    ),
)
LEFT = (
    *(
        row(
            f"the command that is told makes {what} left behind a child again",
            CREATED,
            step(leave(*names), Stalled=TAKEN),
            step(patch_as_told, Stalled="", contested=[]),
            looked(both(*(is_marked(name) for name in names))),
        )
        for what, names in {"all": CHILDREN, "one": CHILDREN[:1], "a Service": CHILDREN[2:]}.items()
    ),
    row(
        "each that is left behind is named and the command stands once",
        CREATED,
        step(leave(*CHILDREN)),
        says("Ready", *(f"{c['kind']}/{c['metadata']['name']} {NOT_OURS}" for c in CHILDREN)),
        says("Ready", "these 3 children"),
        looked(lambda people: message("Ready", people).count("kubectl patch") == 1),
    ),
)


@pytest.mark.parametrize("row", [*UNWATCHED_ROWS, *NAMES, *LEFT], ids=str)
async def test_row(row):
    await play_to_rest(row)


class TestLeft:
    async def test_of_a_restored_status_the_command_is_not_taken(self):
        """Its message differs in the uid alone: that of a resource that is no more."""
        world = await settled()
        people = WorldPeople(world)
        leave(*CHILDREN)(people)
        await world.settle()
        status = world.status()
        world.delete("BlueGreen")
        world.deliver()
        uid = world.apply()["metadata"]["uid"]
        people.apply({**DEMO, "status": status}, "hedgerow-bluegreen", subresource="status")
        world.restart()
        await world.settle()

        assert uid in message("Stalled", people)


class TestSharedNames:
    """Two resources declare a child of one name; the first one has it."""

    async def test_what_changes_of_it_is_seen_although_the_other_one_has_read_it_first(self):
        def compose(bg: Any, _: Observed) -> Desired:
            return Desired((Apply(ConfigMap, "shared", {"data": {"of": bg.metadata.name}}),))

        names = {ConfigMap: ("*",)}
        world = World(
            controller=dataclasses.replace(
                CONTROLLER, compose=compose, owns=(ConfigMap,), relates=(), child_names=names
            )
        )
        for name in ("demo", "other"):
            world.apply(name)
            world.deliver()
            await world.work()
        assert world.condition("Ready", "other") == "False/NameTaken"

        world.server.now += 31
        world.edit("ConfigMap", "shared", {"data": {"of": "nobody"}})
        await world.work()  # the name is read, before the watch tells of any change
        world.deliver()
        await world.work()

        assert world.contested() == [("ConfigMap/shared", ".data.of", "kubectl-edit")]


def renaming(resource: BlueGreen, observed: Observed) -> Desired:
    """Declare one child, whose name follows from the specification."""
    name = f"{resource.metadata.name}-{resource.spec.route_to.lower()}"
    return Desired((Apply(ConfigMap, name, {"data": {"a": "b"}}),), BlueGreenStatus())


@pytest.mark.parametrize(
    "error",
    [errors.Forbidden("exceeded quota", code=403), errors.Invalid("denied", code=422), None],
    ids=["refused", "denied", "taken"],
)
async def test_the_child_of_the_former_name_stays_until_the_one_of_the_new_name_is_made(error):
    world = World(
        controller=Controller(
            "renamer", BlueGreen, renaming, owns=(ConfigMap,), child_names={ConfigMap: ("{}-*",)}
        )
    )
    world.apply()
    await world.settle()
    if error is None:
        world.server.create(world.target("ConfigMap", "demo-green"), "somebody")
    else:
        refuse(world, error, "demo-green")

    world.apply(routeTo="Green")
    await world.settle()
    assert world.get("ConfigMap", "demo-blue")
    world.cluster.before = calm
    if error is None:
        world.delete("ConfigMap", "demo-green")
    for _ in range(2):
        world.server.now += 400
        await world.settle()

    assert world.get("ConfigMap", "demo-blue") is None
    assert world.get("ConfigMap", "demo-green")
