"""Passes over the cluster in memory: how few writes are made, and when none is."""

from __future__ import annotations

from math import inf

import pytest

from faults.checked import BLUE, DEMO, ROUTE
from faults.scenario import People, at
from runtime.bluegreens import (
    APPLY_BLUE,
    APPLY_SERVICE,
    APPLY_STATUS,
    CHILD,
    CREATED,
    PHASE,
    declare,
    edit,
    in_pods,
    looked,
    play_row,
    play_to_rest,
    row,
    step,
    take_image,
)
from runtime.scenes import CREATION, IMAGE, RESPELLED, settled
from runtime.stepwise import rest
from runtime.world import DEMO as KEY
from runtime.world import World, pods

pytestmark = pytest.mark.anyio


def take_status(people: People) -> None:
    status = {**(people.get(DEMO) or {})["status"], "routeTo": "Grey"}
    people.edit(DEMO, {"status": status}, "meddler", subresource="status")


OTHER, OTHER_ROUTE = ({**one, "metadata": {"name": "other"}} for one in (DEMO, ROUTE))
SPELLED_OTHERWISE = step(declare(blueSpec=RESPELLED))
MANY_PORTS = [{"name": "a", "port": 1}, {"name": "b", "port": 2}]
OTHER_IMAGE = declare(blueSpec=pods("blue", "x:2"))
ONE, TWO = ({"name": name, "image": f"{name}:1"} for name in ("one", "two"))
BOTH = step(declare(blueSpec={"containers": [ONE, TWO]}), blue="one:1 two:1")
ROWS = (
    row(
        "a BlueGreen is made by four writes, and flipped by two",
        step(declare(), writes=CREATION),
        step(declare(routeTo="Green"), writes=[APPLY_SERVICE, APPLY_STATUS]),
    ),
    row(
        "a changed template takes one write and the status",
        CREATED,
        step(OTHER_IMAGE, writes=[APPLY_BLUE, APPLY_STATUS]),
    ),
    row(
        "so do containers that change places",
        BOTH,
        step(
            declare(blueSpec={"containers": [TWO, ONE]}),
            writes=[APPLY_BLUE, APPLY_STATUS],
            blue="two:1 one:1",
        ),
    ),
    row(
        "those that somebody shuffles are put back",
        BOTH,
        step(
            edit(BLUE, in_pods(containers=[TWO, ONE])),
            writes=[APPLY_BLUE],
            blue="one:1 two:1",
        ),
    ),
    row(
        "one in which another holds a field stays where it is",
        BOTH,
        step(edit(BLUE, in_pods(containers=[{**ONE, "args": ["x"]}, TWO]))),
        step(declare(blueSpec={"containers": [TWO]}), writes=[APPLY_STATUS], blue="one:1 two:1"),
    ),
    row(
        "several resources do not mix",
        step(declare(), declare(OTHER, routeTo="Green"), route="Blue", requests=8),
        looked(at(OTHER_ROUTE, "spec", "selector", PHASE, is_="Green")),
    ),
    row("a declaration that the server spells otherwise is settled", SPELLED_OTHERWISE),
    row(
        "so is a contested field besides",
        SPELLED_OTHERWISE,
        step(take_image(), contested=[(CHILD, IMAGE, "helm")]),
    ),
    row("and a contested status", CREATED, step(take_status, Contested="True/FieldConflict")),
    row("one colour only", step(declare(greenSpec=None), green="")),
    row("many ports", step(declare(ports=MANY_PORTS), route="Blue")),
    row(
        "a patient flip that waits",
        step(declare()),
        step(declare(promotion="WhenAvailable", routeTo="Green"), route="Blue"),
    ),
)


@pytest.mark.parametrize("row", ROWS, ids=str)
async def test_row(row):
    await play_to_rest(row)


async def test_children_are_made_create_only_and_changed_by_uid_a_status_by_version():
    flip = declare(routeTo="Green", blueSpec=None)
    world = await play_row(row("written", CREATED, step(OTHER_IMAGE), step(flip)))

    applies = [sent for sent in world.cluster.writes if sent.verb == "apply"]
    guards = [sent.body["metadata"] for sent in applies]
    assert [meta.get("resourceVersion") for meta in guards[:3]] == ["1"] * 3
    assert all(meta["uid"] for meta in guards[3:])
    versioned = [s.subresource for s in applies[3:] if "resourceVersion" in s.body["metadata"]]
    assert versioned == ["status"] * len(versioned)
    assert versioned
    assert {sent.manager for sent in applies} == {"hedgerow-bluegreen"}
    assert not any(sent.force for sent in world.cluster.writes)


class TestRequeue:
    async def test_a_settled_resource_is_looked_at_only_when_something_happens(self):
        world = await settled()

        world.life.look(KEY)
        assert await world.work() == 1
        assert (world.life.retried, world.life.next_due) == ((), inf)

    async def test_a_resource_that_is_gone_is_forgotten(self):
        world = await settled()
        world.delete("BlueGreen")
        await world.settle()

        assert world.insides._reconciler.states == {}

    async def test_what_is_known_of_children_does_not_outlive_them(self):
        world = await settled()
        for colour in ("Green", "Blue") * 3:
            world.apply(routeTo=colour, **{f"{'blue' if colour == 'Green' else 'green'}Spec": None})
            await world.settle()

        (state,) = world.insides._reconciler.states.values()
        assert len(state.ledger) == 3  # two children and the status


async def test_a_switch_is_watched_though_the_watch_came_with_the_edit_that_asks_for_it():
    world = World()
    world.apply()
    await rest(world)
    for colour in ("blue", "green"):
        world.make_ready(colour)
    await rest(world)

    world.apply(routeTo="Green", promotion="WhenAvailable", bakeSeconds=300)
    await rest(world)
    assert (world.selected(), world.status()["phase"]) == ("Green", "Baking")
    world.make_ready("green", available=0)
    for _ in range(3):
        world.server.now += 20
        world.life.look()
        await rest(world)

    assert (world.selected(), world.status()["phase"]) == ("Blue", "RolledBack")
