"""What `kubectl describe` shows of what went well, one write each."""

from __future__ import annotations

import pytest

from runtime.clockwork import MINUTE, started
from runtime.world import World

pytestmark = pytest.mark.anyio


async def settled() -> World:
    world = World(normal_events=25)
    world.apply()
    await world.settle()
    return world


def told(world: World) -> list[tuple[str, str]]:
    listed = world.server.list("events.k8s.io", "Event").items
    return sorted((event["reason"], event["note"]) for event in listed)


CREATED = (
    "Created",
    "created Deployment/demoblue-deployment, Deployment/demogreen-deployment, Service/demo",
)
SWITCHED = ("Switched", "the Service selects Green now, Blue before")


async def test_all_that_a_pass_created_is_one_event():
    world = await settled()

    assert told(world) == [CREATED]


async def test_a_switch_is_told_once_whatever_comes_after():
    world = await settled()
    world.apply(routeTo="Green")
    await world.settle()
    world.restart()
    world.apply(routeTo="Green", ports=[{"name": "x", "port": 9}])
    await world.settle()

    assert told(world) == [CREATED, SWITCHED]


async def test_what_is_created_anew_is_told_anew():
    world = await settled()
    world.delete("Service")
    await world.settle()

    assert told(world) == [CREATED, ("Created", "created Service/demo")]


async def test_each_job_that_starts_and_ends_is_told_once():
    world = await started()
    await world.live_through(MINUTE)
    world.end_job(world.job(1))
    world.deliver()
    await world.live_through(MINUTE)
    world.end_job(world.job(2), "Failed")
    world.deliver()
    await world.work()
    world.restart()
    await world.work()

    assert told(world) == [
        ("Completed", f"{world.job(1)} has completed"),
        ("Failed", f"{world.job(2)} has failed"),
        ("Started", f"started {world.job(1)}"),
        ("Started", f"started {world.job(2)}"),
    ]
