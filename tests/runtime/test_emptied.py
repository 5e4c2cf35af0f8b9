"""Emptied managed fields: what can no longer be proven ours is shown, and never pruned."""

from __future__ import annotations

from typing import Any

import pytest

from hedgerow.plan.yield_and_claim import YIELD
from runtime.scenes import settled, writes_of
from runtime.world import World

Object = dict[str, Any]
NAME = "demoblue-deployment"
SIDE = '.spec.template.spec.containers[name="side"]'
TOLD = [(f"Deployment/{NAME}", SIDE, "before-first-apply")]

pytestmark = pytest.mark.anyio


def containers(*names: str) -> Object:
    return {"containers": [{"name": name, "image": f"{name}:1"} for name in names]}


def there(world: World) -> list[str]:
    pods = world.the("Deployment", NAME)["spec"]["template"]["spec"]
    return [container["name"] for container in pods["containers"]]


def empty(world: World) -> None:
    live = world.the("Deployment", NAME)
    live["metadata"]["managedFields"] = [{}]
    world.server.update(live, "wiper")


async def dropped_meanwhile() -> World:
    """Two containers; the records go, and with the next declaration one container."""
    world = await settled(blueSpec=containers("blue", "side"))
    empty(world)
    world.apply(blueSpec=containers("blue"))
    await world.settle()
    return world


class TestItems:
    async def test_one_that_is_declared_no_more_is_reported_and_stays(self):
        world = await dropped_meanwhile()

        assert there(world) == ["blue", "side"]
        assert world.contested() == TOLD
        assert world.condition("Contested") == "True/FieldConflict"
        notes = [event["note"] for event in world.server.list("events.k8s.io", "Event").items]
        (note,) = {note for note in notes if SIDE in note}
        assert f"`hedgerow adopt Deployment/{NAME} --from before-first-apply -n default`" in note
        assert "its owner is unknown (before-first-apply (Update)); left as it is" in note
        assert await writes_of(world, lambda: None) == []
        assert await writes_of(world, world.restart) == []

    async def test_so_is_one_that_goes_once_all_is_declared_again(self):
        world = await settled(blueSpec=containers("blue", "side"))
        empty(world)
        await world.settle()
        assert world.contested() == []

        world.apply(blueSpec=containers("blue"))
        await world.settle()

        assert there(world) == ["blue", "side"]
        assert world.contested() == TOLD

    async def test_what_is_yielded_is_no_conflict(self):
        world = await dropped_meanwhile()

        field_policy = {YIELD: 'Deployment/*: spec.template.spec.containers[name="side"]'}
        world.edit("BlueGreen", "demo", {"metadata": {"annotations": field_policy}}, "annotator")
        await world.settle()

        assert world.contested() == []
        assert there(world) == ["blue", "side"]


async def test_what_another_changed_with_it_is_a_conflict_and_stays():
    world = await settled(blueSpec=containers("blue"))
    live = world.the("Deployment", NAME)
    live["metadata"]["managedFields"] = [{}]
    (container,) = live["spec"]["template"]["spec"]["containers"]
    container["image"] = "wiped:9"
    world.server.update(live, "wiper")
    await world.settle()

    ((target, path, manager),) = world.contested()
    assert (target, path) == (
        f"Deployment/{NAME}",
        '.spec.template.spec.containers[name="blue"].image',
    )
    assert manager == "before-first-apply"
    (container,) = world.the("Deployment", NAME)["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "wiped:9"
