"""Crashes, lag and resources that cannot be read: the next pass mends it."""

from __future__ import annotations

from math import inf
from typing import Any

import pytest

from faults.checked import BLUE, ROUTE
from faults.scenario import Step
from hedgerow.kube import errors
from hedgerow_testing.memory.cluster import Sent
from runtime.bluegreens import (
    CREATED,
    crash_at,
    declare,
    delete,
    look_again,
    play_to_rest,
    row,
    select,
    step,
    take_image,
)
from runtime.scenes import CREATION, RESPELLED, everything, flipped_during, settled
from runtime.stepwise import play, settle
from runtime.world import World, pods

Object = dict[str, Any]

pytestmark = pytest.mark.anyio


class TestBadResources:
    def ruin(self, world: World, **change: Any) -> None:
        """Write a resource as only a CRD without a schema lets it through."""
        live = world.the("BlueGreen")
        meta = {**live["metadata"], "generation": live["metadata"]["generation"] + 1}
        world.server.put({**live, "metadata": meta, **change})

    async def test_a_bad_spec_is_told_and_children_stay_as_they_are(self):
        world = await settled()
        self.ruin(world, spec={"routeTo": "Grey", "blueSpec": pods("b")})
        world.deliver()
        before = len(world.writes)
        await world.work()

        (stalled,) = [c for c in world.status()["conditions"] if c["type"] == "Stalled"]
        assert stalled["reason"] == "InvalidSpec"
        assert "spec.routeTo" in stalled["message"]
        assert [w for w in world.writes[before:] if "Event" not in w] == [CREATION[3]]

    async def test_under_a_bad_spec_nothing_is_due_that_was_refused_before(self):
        world = await settled()

        async def hook(sent: Sent) -> None:
            if sent.name == "demoblue-deployment":
                raise errors.Forbidden("may not", code=403)

        world.cluster.before = hook
        world.apply(blueSpec=pods("blue", "mine:2"))
        world.deliver()
        await world.work()
        assert world.life.next_due < inf

        self.ruin(world, spec={"routeTo": "Grey", "blueSpec": pods("b")})
        world.deliver()
        await world.work()

        assert world.condition("Stalled") == "True/InvalidSpec"
        assert world.life.next_due == inf

    async def test_a_bad_spec_takes_nothing_back_that_the_status_said(self):
        world = await settled()
        self.ruin(world, spec={"routeTo": "Grey", "blueSpec": pods("b")})
        world.deliver()
        await world.work()

        assert world.status()["routeTo"] == "Blue"

    async def test_of_a_bad_status_what_can_be_read_counts(self):
        world = await settled()
        world.apply(routeTo="Green", promotion="WhenAvailable")
        status = world.status()
        world.delete("Service")
        self.ruin(world, status={**status, "observedGeneration": "x", "routeTo": "Blue"})
        await world.settle()

        # The Service made anew goes where the record says that the last one went.
        assert world.selected() == "Blue"

    async def test_a_bad_status_is_ours_to_write_anew(self):
        world = await settled()
        self.ruin(world, status={"routeTo": 7, "conditions": "none", "contested": [{}]})
        world.deliver()
        await world.work()

        assert world.failures == []
        assert [w for w in world.writes[4:] if "Deployment" in w] == []

    async def test_a_resource_whose_generation_is_behind_the_cache_is_not_said_to_be_observed(self):
        # The spec changes while a pass over the old one runs.
        world = await flipped_during(2)

        assert world.status()["observedGeneration"] == 2
        assert world.selected() == "Green"


def without_times(people: Any) -> None:
    """Have the entries of a child without times, as after a scale, of which none is noted."""
    live = people.get(BLUE)
    for entry in live["metadata"]["managedFields"]:
        entry.pop("time", None)
    people.world.server.put(live)


FLIPPED = declare(routeTo="Green")
FIRST_RESPELLED = step(declare(blueSpec=RESPELLED, greenSpec=None))
UNSET = declare(blueSpec=pods("blue", volumes=[{"name": "files"}]))
FILES = declare(blueSpec=pods("blue", volumes=[{"name": "files", "configMap": {"name": "files"}}]))
CRASHING: dict[str, tuple[Step, ...]] = {
    "a creation": (step(declare()),),
    "a flip": (CREATED, step(FLIPPED)),
    "a flip and a removal": (CREATED, step(declare(routeTo="Green", blueSpec=None))),
    "respelled": (CREATED, FIRST_RESPELLED),
    "a conflict": (CREATED, step(take_image(), without_times)),
    "a default that is taken over": (step(UNSET), step(FILES)),
}


class TestCrashes:
    """A process that dies between any two requests leaves nothing that the next does not mend."""

    @pytest.mark.parametrize("when", ["before", "after"])
    @pytest.mark.parametrize("name", CRASHING)
    async def test_a_crash_around_any_request_is_mended(self, name, when):
        *first, last = CRASHING[name]
        calm = World()
        await play(calm, first, rest=settle)
        before = len(calm.cluster.sent)
        await play(calm, [last], rest=settle)

        for number in range(len(calm.cluster.sent) - before):
            world = World()
            await play(world, [*first, step(last.act, crash_at(number, when))], rest=settle)
            world.server.now += 3
            world.restart()
            await settle(world)

            assert everything(world) == everything(calm), number
            assert set(world.events()) == set(calm.events())
            assert len(world.events()) == len(calm.events())
            # Those that were sent at the same time may have to be sent again.
            assert len(world.writes) <= len(calm.writes) + 3


LAG = (
    row(
        "passes over a cache that hears nothing write once",
        step(declare(), lag="BlueGreen", writes=CREATION),
        *[step(look_again, lag="BlueGreen", writes=[])] * 3,
    ),
    row(
        "a child that the cache believes in is made anew at once",
        CREATED,
        step(delete(ROUTE), FLIPPED, lag="BlueGreen", route="Green", complaints=[]),
    ),
    row(
        "an edit that the cache has not seen is not overwritten",
        CREATED,
        step(select("Grey"), FLIPPED, lag="BlueGreen", route="Grey"),
    ),
)


class TestLag:
    """Caches that are behind never make a second object or undo what somebody did."""

    @pytest.mark.parametrize("row", LAG, ids=str)
    async def test_row(self, row):
        await play_to_rest(row)

    async def test_our_own_writes_are_told_back_without_another_pass(self, world):
        world.apply()
        world.deliver()
        await world.work()
        world.deliver()

        assert not world.life.is_due
