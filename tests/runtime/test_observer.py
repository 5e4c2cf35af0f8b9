"""What one look at the caches makes of a resource."""

from __future__ import annotations

from typing import Any

import pytest

from hedgerow.runtime.memory import Memory
from hedgerow.runtime.observer import Observer
from runtime.scenes import settled, take_label
from runtime.world import DEMO, World

pytestmark = pytest.mark.anyio


def observer(world: World) -> Observer:
    return world.runner._reconciler._observer


def memory(world: World, **change: Any) -> Memory:
    live = world.the("BlueGreen")
    made = Memory.of(live["metadata"]["uid"], live)
    for name, value in change.items():
        setattr(made, name, value)
    return made


class TestWritable:
    async def test_a_live_resource_may_be_written_for(self):
        world = await settled()

        assert observer(world).writable(DEMO, memory(world)) == world.the("BlueGreen")

    async def test_one_made_anew_is_not_the_one_that_we_remember(self):
        world = await settled()

        assert observer(world).writable(DEMO, memory(world, uid="former")) is None
        assert observer(world).look(DEMO, memory(world, uid="former"), frozenset()) is None

    async def test_in_a_namespace_that_is_going_nothing_is_written(self):
        world = await settled()

        assert observer(world).writable(DEMO, memory(world, barred=True)) is None
        world.going.add("default")
        assert observer(world).writable(DEMO, memory(world)) is None

    async def test_a_resource_that_is_not_cached_is_not_written_for(self):
        world = await settled()

        assert observer(world).writable(("default", "other"), memory(world)) is None


class TestUnseen:
    async def test_watched_children_are_seen(self):
        world = await settled()

        assert observer(world).unseen(memory(world), DEMO) == []

    async def test_a_child_that_lost_its_label_is_named_with_its_uid(self):
        world = await settled()
        take_label(world)
        await world.settle()

        (ref,) = observer(world).unseen(memory(world), DEMO)
        uid = world.the("Deployment", "demoblue-deployment")["metadata"]["uid"]
        assert (str(ref), ref.uid) == ("Deployment/demoblue-deployment", uid)


class TestLook:
    async def test_a_settled_resource_asks_for_nothing(self):
        world = await settled()
        look = observer(world).look(DEMO, memory(world), frozenset())

        assert look is not None
        assert (look.plan.writes, look.plan.deletions, look.plan.problems) == ((), (), ())
        assert look.live == world.the("BlueGreen")

    async def test_a_look_changes_no_cache(self):
        world = await settled()
        before = [dict(source.store._objects) for source in world.cache]
        observer(world).look(DEMO, memory(world), frozenset())

        assert [dict(source.store._objects) for source in world.cache] == before
