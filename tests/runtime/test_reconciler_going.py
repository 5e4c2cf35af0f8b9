"""Nothing is written to, or on behalf of, anything that is going."""

from __future__ import annotations

from math import inf
from typing import Any

import pytest

from runtime.scenes import (
    BLUE,
    CREATION,
    SELECTOR,
    settled,
    take_image,
    writes_of,
)
from runtime.world import DEMO, World

Object = dict[str, Any]
STATUS = CREATION[3]
HOLD = {"metadata": {"finalizers": ["example.com/hold"]}}

pytestmark = pytest.mark.anyio


def hold(world: World) -> None:
    world.edit("BlueGreen", "demo", HOLD)


def delete(world: World) -> None:
    """Delete the resource, of which its watch tells at once."""
    world.delete("BlueGreen")
    world.deliver(kind="BlueGreen")


class TestGoing:
    """Nothing is written to, or on behalf of, anything that is going."""

    async def test_a_resource_that_is_being_deleted_gets_nothing(self):
        world = await settled()
        hold(world)
        await world.settle()
        world.delete("BlueGreen")
        take_image(world)
        world.delete("Service")

        assert await writes_of(world, lambda: None) == []

    async def test_a_deleted_resource_leaves_its_children_to_the_garbage_collector(self):
        world = await settled()

        written = await writes_of(world, lambda: world.delete("BlueGreen"))

        assert written == []
        world.server.collect()
        await world.settle()
        assert world.get("Service") is None
        assert world.writes == CREATION

    async def test_a_resource_deleted_before_the_first_pass_gets_nothing(self, world):
        world.apply()
        world.delete("BlueGreen")

        assert await writes_of(world, lambda: None) == []

    @pytest.mark.parametrize("number", [0, 1, 2, 3])
    @pytest.mark.parametrize("held", [True, False], ids=["with a finalizer", "at once"])
    async def test_a_resource_deleted_between_two_writes_gets_no_more(self, world, number, held):
        world.apply()
        if held:
            hold(world)
        world.deliver()

        world.during(number, lambda: delete(world))
        await world.work()

        # The children are made at the same time.
        assert len(world.writes) == (3, 3, 3, 4)[number]

    async def test_a_resource_deleted_after_an_event_gets_no_other(self):
        world = await settled()
        hold(world)
        await world.settle()
        take_image(world)
        world.edit("Service", "demo", SELECTOR)
        world.deliver()
        before = len(world.writes)

        world.during(0, lambda: delete(world))
        await world.work()

        assert ["Event" in write for write in world.writes[before:]] == [True]

    async def test_a_resource_deleted_during_a_pruning_gets_no_more(self):
        world = await settled()
        hold(world)
        world.apply(routeTo="Green", blueSpec=None)
        world.deliver()
        before = len(world.writes)

        world.during(1, lambda: delete(world))
        await world.work()

        assert world.writes[before:] == ["apply Service default/demo", f"delete {BLUE}"]

    async def test_a_resource_deleted_unseen_gets_no_status(self, world):
        # The watch lags: children are made for a resource that is gone; its status is not.
        world.apply()
        world.deliver()
        world.delete("BlueGreen")

        await world.work()
        world.server.collect()
        await world.settle()

        assert world.get("BlueGreen") is None
        assert world.server.list("apps", "Deployment").items == ()
        assert world.failures == []

    async def test_made_again_under_the_same_name_it_waits_for_what_the_former_left(self):
        world = await settled()
        world.delete("BlueGreen")
        world.apply(routeTo="Green")

        written = await writes_of(world, lambda: None)

        assert set(written) == {CREATION[3]}
        assert world.condition("Ready") == "False/WaitingForDeletion"
        world.server.collect()
        await world.settle()
        assert world.selected() == "Green"
        assert world.the("BlueGreen")["metadata"]["uid"] in str(world.the("Service"))

    async def test_a_child_that_is_going_gets_no_write_and_is_made_anew_after(self):
        world = await settled()
        world.edit("Service", "demo", HOLD)
        await world.settle()
        world.delete("Service")
        world.apply(routeTo="Green")

        await world.settle()
        assert world.condition("Ready") == "False/WaitingForDeletion"
        assert world.selected() == "Blue"

        world.edit("Service", "demo", {"metadata": {"finalizers": None}})
        await world.settle()
        assert world.selected() == "Green"


class TestTerminatingNamespace:
    async def test_nothing_is_written_in_it_and_nothing_is_logged_whatever_happens(self, world):
        world.apply()
        world.server.terminate("default")

        await world.settle()

        assert len(world.writes) == 3
        assert [entry["log_level"] for entry in world.logs.entries] == []
        assert world.life.next_due == inf

        world.apply(routeTo="Green")
        assert await writes_of(world, lambda: world.life.look(DEMO)) == []

    async def test_a_namespace_that_is_gone_altogether_is_quiet_until_the_watch_tells(self, world):
        world.apply("demo", "other")
        world.server.forget_namespace("other")

        assert 3 < len(await writes_of(world, lambda: None)) <= 3 * 8
        assert world.failures == []


class TestRemovedColour:
    async def test_it_goes_after_the_service_is_seen_on_the_other(self):
        world = await settled()

        written = await writes_of(world, lambda: world.apply(routeTo="Green", blueSpec=None))

        kinds = [write for write in written if "Event" not in write]
        assert kinds == ["apply Service default/demo", f"delete {BLUE}", CREATION[3]]

    async def test_it_stays_while_somebody_else_holds_the_selector(self):
        world = await settled()
        world.edit("Service", "demo", SELECTOR)
        world.apply(greenSpec=None)

        await world.settle()

        assert world.get("Deployment", "demogreen-deployment") is not None

    async def test_it_is_deleted_once_even_when_the_watch_is_slow(self):
        world = await settled()
        world.apply(greenSpec=None)
        world.deliver(kind="BlueGreen")
        for _ in range(3):
            world.life.look(DEMO)
            await world.work()

        assert sum(write.startswith("delete") for write in world.writes) == 1

    async def test_a_deletion_that_comes_too_late_is_decided_anew(self):
        # The Deployment changed since it was observed.
        world = await settled()
        world.make_ready("green")
        world.apply(greenSpec=None)
        world.deliver(kind="BlueGreen")

        await world.work()

        assert world.get("Deployment", "demogreen-deployment") is None
        assert sum(write.startswith("delete") for write in world.writes) == 2

    async def test_the_object_of_another_is_not_deleted_in_its_place(self):
        world = await settled()
        world.delete("Deployment", "demogreen-deployment")
        live = world.the("Deployment", "demoblue-deployment")
        theirs = {**world.target("Deployment", "demogreen-deployment"), "spec": live["spec"]}
        world.server.create(theirs, "kubectl-create")
        world.apply(greenSpec=None)
        world.deliver(kind="BlueGreen")

        await world.work()
        await world.settle()

        assert world.get("Deployment", "demogreen-deployment") is not None
        assert world.condition("Stalled") == ""

    async def test_a_colour_that_comes_back_before_it_is_gone_is_made_anew(self):
        world = await settled()
        world.edit("Deployment", "demogreen-deployment", HOLD)
        world.apply(greenSpec=None)
        await world.settle()

        world.apply()
        await world.settle()
        assert world.condition("Ready") == "False/WaitingForDeletion"

        world.edit("Deployment", "demogreen-deployment", {"metadata": {"finalizers": None}})
        await world.settle()
        assert (
            "deletionTimestamp" not in world.the("Deployment", "demogreen-deployment")["metadata"]
        )
