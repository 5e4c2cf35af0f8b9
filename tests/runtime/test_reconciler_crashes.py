"""Crashes, lag and resources that cannot be read: the next pass mends it."""

from __future__ import annotations

from contextlib import suppress
from math import inf
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow.kube import errors
from hedgerow.testing.memory.cluster import Sent
from hedgerow.testing.virtual import run
from runtime.scenes import (
    CREATION,
    RESPELLED,
    SELECTOR,
    everything,
    flipped_during,
    settled,
    take_image,
)
from runtime.world import DEMO, Crash, World, crash, pods

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


class TestCrashes:
    """A process that dies between any two requests leaves nothing that the next does not mend."""

    SCENES: tuple[tuple[str, Object, Object], ...] = (
        ("a flip", {}, {"routeTo": "Green"}),
        ("a flip and a removal", {}, {"routeTo": "Green", "blueSpec": None}),
        ("respelled", {"greenSpec": None}, {"blueSpec": RESPELLED, "greenSpec": None}),
    )

    calm: ClassVar[dict[str, object]] = {}
    """How each of them ends without a crash."""

    @pytest.mark.parametrize("plan_input", SCENES, ids=lambda plan_input: plan_input[0])
    @pytest.mark.parametrize("when", ["before", "after"])
    @pytest.mark.parametrize("number", range(5))
    async def test_a_crash_around_any_request_is_mended(self, plan_input, when, number):
        name, first, then = plan_input
        if name not in self.calm:
            calm = await settled(**first)
            calm.apply(**then)
            await calm.settle()
            self.calm[name] = everything(calm)
        world = await settled(**first)
        world.apply(**then)
        world.deliver()

        world.during(number, crash, when=when)
        try:
            await world.settle()
        except Crash:
            world.restart()
            await world.settle()

        assert everything(world) == self.calm[name]
        assert world.failures == []

    @pytest.mark.parametrize("when", ["before", "after"])
    @pytest.mark.parametrize("number", range(4))
    async def test_a_crash_during_creation_doubles_nothing(self, when, number):
        world = World()
        world.apply()
        world.deliver()

        world.during(number, crash, when=when)
        with pytest.raises(Crash):
            await world.work()
        world.restart()
        await world.settle()

        assert len(world.server.list("apps", "Deployment").items) == 2
        assert len(world.server.list("", "Service").items) == 1
        # The second Deployment and the Service at the same time: both may have to be sent again.
        assert len(world.writes) in ((5, 6) if when == "before" else (4, 5))

    @pytest.mark.parametrize("number", range(2))
    async def test_a_crash_before_the_status_tells_of_no_conflict_twice(self, number):
        world = await settled()
        take_image(world)
        # As after a scale, of which the API server notes no time.
        live = world.the("Deployment", "demoblue-deployment")
        for entry in live["metadata"]["managedFields"]:
            entry.pop("time", None)
        world.server.put(live)
        world.deliver()

        world.during(number, crash, when="before")
        with pytest.raises(Crash):
            await world.work()
        world.restart()
        world.server.now += 3
        await world.settle()

        assert world.events() == ["FieldConflict"]

    @settings(max_examples=settings().max_examples // 2)
    @given(st.lists(st.tuples(st.integers(0, 6), st.sampled_from(["before", "after"])), max_size=4))
    def test_any_number_of_crashes_is_mended(self, crashes):
        async def story() -> None:
            calm, world = await settled(blueSpec=RESPELLED), World()
            world.apply(blueSpec=RESPELLED)

            for number, when in crashes:
                world.during(number, crash, when=when)
                with suppress(Crash):
                    await world.settle()
                world.restart()
            await world.settle()
            assert everything(world) == everything(calm)

        run(story)


class TestLag:
    """Caches that are behind never make a second object or undo what somebody did."""

    async def test_passes_over_a_cache_that_hears_nothing_write_once(self, world):
        world.apply()
        world.deliver()
        for _ in range(5):
            world.life.look(DEMO)
            await world.work()

        assert world.writes == CREATION

    async def test_our_own_writes_are_told_back_without_another_pass(self, world):
        world.apply()
        world.deliver()
        await world.work()
        world.deliver()

        assert not world.life.is_due

    async def test_a_child_that_the_cache_believes_in_is_made_anew_at_once(self):
        world = await settled()
        world.delete("Service")
        world.apply(routeTo="Green")
        world.deliver(kind="BlueGreen")

        await world.work()

        assert world.selected() == "Green"
        assert [entry for entry in world.logs.entries if entry["log_level"] != "info"] == []

    async def test_an_edit_that_the_cache_has_not_seen_is_not_overwritten(self):
        world = await settled()
        world.edit("Service", "demo", SELECTOR)
        world.apply(routeTo="Green")
        world.deliver(kind="BlueGreen")

        await world.work()

        assert world.the("Service")["spec"]["selector"]["app.kubernetes.io/phase"] == "Grey"
