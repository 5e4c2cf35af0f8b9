"""What one look at the caches makes of a resource."""

from __future__ import annotations

from typing import Any

import pytest

from hedgerow.plan.status import reader_of
from hedgerow.runtime.passes.observation import ResourcePlanner
from hedgerow.runtime.passes.state import ResourceState
from runtime.scenes import settled
from runtime.world import DEMO, World

pytestmark = pytest.mark.anyio


def planner(world: World) -> ResourcePlanner:
    return world.insides._reconciler.context.planner


def state(world: World, **change: Any) -> ResourceState:
    live = world.the("BlueGreen")
    made = ResourceState.from_status(
        live["metadata"]["uid"], reader_of(planner(world).controller)(live)
    )
    for name, value in change.items():
        setattr(made, name, value)
    return made


class TestWritable:
    async def test_a_live_resource_may_be_written_for(self):
        world = await settled()

        assert planner(world).writable(DEMO, state(world)) == world.the("BlueGreen")

    async def test_one_made_anew_is_not_the_one_that_we_remember(self):
        world = await settled()

        assert planner(world).writable(DEMO, state(world, uid="former")) is None
        assert await planner(world).observe_and_plan(DEMO, state(world, uid="former")) is None

    async def test_in_a_namespace_that_is_going_nothing_is_written(self):
        world = await settled()

        assert planner(world).writable(DEMO, state(world, namespace_terminating=True)) is None

    async def test_a_resource_that_is_not_cached_is_not_written_for(self):
        world = await settled()

        assert planner(world).writable(("default", "other"), state(world)) is None


class TestLook:
    async def test_a_look_changes_no_cache(self):
        world = await settled()
        before = [dict(source.store._entries) for source in world.insides.cache]
        await planner(world).observe_and_plan(DEMO, state(world))

        assert [dict(source.store._entries) for source in world.insides.cache] == before
