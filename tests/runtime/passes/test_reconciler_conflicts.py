"""Fields that others hold: shown, never overwritten; fields that vanish, and records that do."""

from __future__ import annotations

from typing import Any

import pytest

from faults.built_in import EVENTS
from faults.checked import BLUE, DEMO, GREEN, ROUTE
from faults.scenario import People, roll_out, scale, value_at
from hedgerow.fields.applyconfiguration import extract
from runtime.bluegreens import (
    APPLY_BLUE,
    APPLY_STATUS,
    CHILD,
    CREATED,
    declare,
    edit,
    in_pods,
    label,
    look_again,
    looked,
    play_row,
    play_to_rest,
    row,
    select,
    step,
    take_image,
    yields,
)
from runtime.scenes import DISK, IMAGE
from runtime.world import pods

Object = dict[str, Any]

pytestmark = pytest.mark.anyio

OURS, EVIL, DECLARED = "hedgerow-bluegreen", "evil:1", "example/echo:1"
TAKEN = [(CHILD, IMAGE, "helm")]
SIDE = '.spec.template.spec.containers[name="side"]'
TWO = {"containers": [{"name": "blue", "image": "a"}, {"name": "side", "image": "b"}]}
ONE = {"containers": TWO["containers"][:1]}
ON_DISK = pods("blue", nodeSelector=DISK)
NODES = [(CHILD, ".spec.template.spec.nodeSelector", None)]
NO_DISK = edit(BLUE, in_pods(nodeSelector=None))
PATIENT = {"promotion": "WhenAvailable"}
EMPTY = edit(BLUE, {"metadata": {"managedFields": [{}]}}, "wiper")


def set_images(**containers: str) -> Any:
    """Have containers edited, all others taken away."""
    wanted = [{"name": name, "image": image} for name, image in containers.items()]
    return edit(BLUE, in_pods(containers=wanted), "kubectl-set")


def add_port(people: People) -> None:
    ports = value_at(people.get(ROUTE), ("spec", "ports"))
    ports = [*ports, {"name": "udp", "port": 80, "protocol": "UDP"}]
    people.edit(ROUTE, {"spec": {"ports": ports}}, "kubectl-edit")


def rename_port(people: People) -> None:
    ports = value_at(people.get(ROUTE), ("spec", "ports"))
    ports = [{**port, "name": "web"} for port in ports]
    people.edit(ROUTE, {"spec": {"ports": ports}}, "kubectl-edit")


def forge(people: People) -> None:
    """Change the image, and then say that all of it is ours, as whoever may update it can."""
    before = value_at(people.get(BLUE), ("metadata", "managedFields"))
    set_images(blue=EVIL)(people)
    people.edit(BLUE, {"metadata": {"managedFields": before}}, "kubectl-edit")


def apply_as_us(people: People) -> None:
    body = extract(people.get(BLUE) or {}, OURS) or {}
    body["spec"]["template"]["spec"]["containers"][0]["image"] = EVIL
    people.apply(body, OURS, force=True)


edit_as_us = edit(BLUE, in_pods(containers=[{"name": "blue", "image": EVIL}]), OURS)


def mended_or_told(people: People) -> object:
    """Look whether the image is as it was declared, or is said not to be."""
    status = (people.get(DEMO) or {})["status"]
    told = [field["path"] for field in status.get("contested", ())]
    containers = value_at(people.get(BLUE), ("spec", "template", "spec", "containers"))
    return containers[0]["image"] == DECLARED or told == [IMAGE]


def says_who_emptied_it(people: People) -> bool:
    """Look for the one Event that says what to do about an item of unknown owner."""
    [note] = {one["note"] for one in people.every(EVENTS) if SIDE in one["note"]}
    remedy = f"`hedgerow adopt {CHILD} --from before-first-apply -n "
    unknown = "its owner is unknown (before-first-apply (Update)); left as it is"
    return remedy in note and unknown in note


TOOK = step(take_image(), contested=TAKEN)
UNKNOWN = [(CHILD, SIDE, "before-first-apply")]
PUT_BACK = step(NO_DISK, nodes=DISK, contested=[], events="FieldRestored")
GONE_AGAIN = step(NO_DISK, nodes=None, contested=NODES, events="FieldConflict FieldRestored")
VANISHED_TWICE = (
    step(declare(blueSpec=ON_DISK), nodes=DISK, Ready="False/Unavailable"),
    PUT_BACK,
    GONE_AGAIN,
)
ROWS = (
    row(
        "a taken field is reported and never written",
        CREATED,
        step(
            take_image(),
            contested=TAKEN,
            Contested="True/FieldConflict",
            Ready="False/FieldConflict",
            events="FieldConflict",
            writes=[APPLY_STATUS],
        ),
    ),
    row(
        "another field of the same object still follows",
        CREATED,
        TOOK,
        step(
            declare(blueSpec=pods("blue", "mine:2", terminationGracePeriodSeconds=7)),
            grace=7,
            blue="theirs:9",
        ),
    ),
    row(
        "what is contested no longer is taken off",
        CREATED,
        TOOK,
        step(declare(blueSpec=pods("blue", "theirs:9")), contested=[], Contested=""),
    ),
    row(
        "a conflict that nobody saw coming is looked up and not repeated",
        CREATED,
        step(
            take_image(),
            declare(blueSpec=pods("blue", "mine:2")),
            lag="BlueGreen",
            Ready="False/FieldConflict",
            writes=[APPLY_BLUE, APPLY_STATUS],
        ),
        step(look_again, lag="BlueGreen", writes=[]),
        step(contested=TAKEN),
    ),
    row(
        "scaling is honoured and not reported",
        CREATED,
        step(scale(BLUE, 5), contested=[]),
        looked(lambda people: value_at(people.get(BLUE), ("spec", "replicas")) == 5),
    ),
    row(
        "a patient flip does not move on a template that was refused",
        step(declare(**PATIENT), roll_out(BLUE, GREEN)),
        step(roll_out(BLUE, GREEN), Ready="True/Serving"),
        step(
            take_image("x", "green"),
            declare(**PATIENT, routeTo="Green", greenSpec=pods("green", "mine:2")),
            lag="BlueGreen",
            route="Blue",
        ),
    ),
    row("who agrees holds it as well", CREATED, step(take_image(DECLARED), contested=[])),
    row(
        "a map is contested as a whole",
        CREATED,
        step(
            select("Grey"),
            route="Grey",
            contested=[("Service/demo", ".spec.selector", "kubectl-edit")],
        ),
    ),
    row("an item more is nobody's business", CREATED, step(add_port, contested=[])),
    row(
        "a field of an item is contested by its key",
        CREATED,
        step(
            rename_port,
            contested=[
                ("Service/demo", '.spec.ports[port=80,protocol="TCP"].name', "kubectl-edit")
            ],
        ),
    ),
    row(
        "an item of ours that is declared no more goes",
        step(declare(blueSpec=TWO), blue="a b"),
        step(declare(blueSpec=ONE), blue="a", contested=[]),
    ),
    row(
        "but not with what another holds in it",
        step(declare(blueSpec=TWO), blue="a b"),
        step(set_images(blue="a", side="theirs:9")),
        step(declare(blueSpec=ONE), blue="a theirs:9", contested=[(CHILD, SIDE, "kubectl-set")]),
        real="An apply without a list item leaves the item to whoever holds a part.",
    ),
    row(
        "a field that vanishes is put back and told, and left alone when it vanishes again",
        *VANISHED_TWICE,
        step(restarted=True, nodes=None),
    ),
    row(
        "until there is a new declaration",
        *VANISHED_TWICE,
        step(declare(blueSpec=ON_DISK, routeTo="Green"), nodes=DISK, contested=[]),
        real="An edit that removes a field leaves no entry of who removed it.",
    ),
    row(
        "by a new operator as well",
        *VANISHED_TWICE,
        step(declare(blueSpec=ON_DISK, routeTo="Green"), restarted=True, nodes=DISK, contested=[]),
    ),
    row(
        "a label of our own is put back once as well",
        CREATED,
        step(label(BLUE, None), label="bluegreen", events="FieldRestored"),
        step(label(BLUE, None), label=None, contested=[(CHILD, ".metadata.labels", None)]),
        step(restarted=True, label=None),
    ),
    row(
        "records that are emptied: an item that was dropped meanwhile stays and is told of",
        step(declare(blueSpec=TWO), blue="a b"),
        step(
            EMPTY,
            declare(blueSpec=ONE),
            blue="a b",
            contested=UNKNOWN,
            Contested="True/FieldConflict",
        ),
        looked(says_who_emptied_it),
        step(
            yields('Deployment/*: spec.template.spec.containers[name="side"]'),
            blue="a b",
            contested=[],
        ),
    ),
    row(
        "so does one that is dropped once all was declared again",
        step(declare(blueSpec=TWO), blue="a b"),
        step(EMPTY, contested=[], holders="before-first-apply hedgerow-bluegreen"),
        step(declare(blueSpec=ONE), blue="a b", contested=UNKNOWN),
        real="Emptied managed fields are booked to before-first-apply.",
    ),
    row(
        "and what another changed with them",
        CREATED,
        step(
            edit(
                BLUE,
                in_pods(containers=[{"name": "blue", "image": "wiped:9"}])
                | {"metadata": {"managedFields": [{}]}},
                "wiper",
            ),
            blue="wiped:9",
            contested=[(CHILD, IMAGE, "before-first-apply")],
        ),
    ),
    row(
        "what is forged in our name is mended or told",
        CREATED,
        step(forge),
        looked(mended_or_told),
        real="The managed fields that an edit brings are taken, whoever they name.",
    ),
    *(
        row(f"so it is {how}", CREATED, forgery, looked(mended_or_told))
        for how, forgery in {
            "while we are away": step(forge, restarted=True),
            "by the name of our manager": step(edit_as_us),
            "by that while we are away": step(edit_as_us, restarted=True),
            "by an apply": step(apply_as_us),
            "by an apply while we are away": step(apply_as_us, restarted=True),
        }.items()
    ),
)


@pytest.mark.parametrize("row", ROWS, ids=str)
async def test_row(row):
    await play_to_rest(row)


class TestGivingUp:
    @pytest.mark.parametrize(
        ("change", "is_versioned"),
        [(pods("blue"), True), (pods("blue", "mine:2", terminationGracePeriodSeconds=7), False)],
        ids=["a field is given up", "a field is changed"],
    )
    async def test_only_what_gives_a_field_up_is_for_the_version_that_was_looked_at(
        self, change, is_versioned
    ):
        first = step(declare(blueSpec=pods("blue", terminationGracePeriodSeconds=7)), grace=7)
        world = await play_row(row("given up", first, step(declare(blueSpec=change))))

        write = next(sent for sent in world.cluster.writes[4:] if sent.api.kind == "Deployment")
        assert ("resourceVersion" in write.body["metadata"]) == is_versioned
