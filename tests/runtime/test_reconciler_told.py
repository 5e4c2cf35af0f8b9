"""What is told of conflicts: within bounds, once, and whatever the server makes of the status."""

from __future__ import annotations

from typing import Any

import pytest

from hedgerow.kube import errors
from hedgerow.testing.memory.cluster import Sent
from runtime.scenes import IMAGE, MOST_REPEATS, refuse, settled, take_image, writes_of
from runtime.world import World, pods

Object = dict[str, Any]

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("on_the_loop")]


NAME = "demoblue-deployment"
STATUS = "apply BlueGreen default/demo/status"


def env(value: str, number: int) -> Object:
    pairs = [{"name": f"K{n:03}", "value": value} for n in range(number)]
    return {"containers": [{"name": "blue", "image": "example/echo:1", "env": pairs}]}


async def contested_many(number: int) -> World:
    """Return a world where another manager took so many fields of one Deployment."""
    world = await settled(blueSpec=env("ours", number))
    body = {
        **world.target("Deployment", NAME),
        "spec": {"template": {"spec": env("theirs", number)}},
    }
    world.server.apply(body, "helm", force=True)
    await world.settle()
    return world


class TestBounds:
    async def test_of_many_fields_fifty_are_listed_all_are_counted_and_told_once(self):
        world = await contested_many(120)

        assert (len(world.contested()), world.status()["contestedCount"]) == (50, 120)
        assert world.condition("Ready") == "False/FieldConflict"
        assert world.events() == ["FieldConflict"]
        assert await writes_of(world, lambda: None) == []
        assert await writes_of(world, world.restart) == []
        world.server.now += 7200
        assert await writes_of(world, world.restart) == []

    async def test_what_is_left_is_listed_once_the_rest_is_settled(self):
        world = await contested_many(120)

        world.apply(blueSpec=env("theirs", 115) | {"hostname": "x"})
        await world.settle()

        assert (world.contested(), "contestedCount" in world.status()) == ([], False)


class TestTooLarge:
    async def refused(self, number: int) -> World:
        """Return a world whose server stores no status that lists anything."""

        async def hook(sent: Sent) -> None:
            if sent.subresource == "status" and sent.body["status"].get("contested"):
                raise errors.from_status(
                    {"code": 500, "message": "etcdserver: request is too large"}
                )

        world = await settled(blueSpec=env("ours", number))
        world.cluster.before = hook
        target = world.target("Deployment", NAME)
        body = {**target, "spec": {"template": {"spec": env("theirs", number)}}}
        world.server.apply(body, "helm", force=True)
        await world.settle()
        return world

    async def test_a_status_that_is_too_large_counts_what_it_cannot_list(self):
        world = await self.refused(3)

        assert (world.contested(), world.status()["contestedCount"]) == ([], 3)
        assert world.condition("Ready") == "False/FieldConflict"
        assert world.condition("Contested") == "True/FieldConflict"
        assert world.status()["routeTo"] == "Blue"

    async def test_it_is_not_tried_again_until_the_declaration_changes(self):
        world = await self.refused(3)

        assert await writes_of(world, lambda: None) == []
        written = await writes_of(
            world, lambda: world.apply(blueSpec=env("ours", 3), routeTo="Green")
        )
        assert written.count(STATUS) >= 1


class TestLiveValues:
    async def test_the_status_follows_the_value_and_keeps_since(self):
        world = await settled()
        take_image(world)
        await world.settle()
        (before,) = world.status()["contested"]
        world.server.now += 60

        take_image(world, image="theirs:10")
        await world.settle()

        (after,) = world.status()["contested"]
        assert (before["live"], after["live"]) == ("theirs:9", "theirs:10")
        assert after["since"] == before["since"]
        assert world.events() == ["FieldConflict"]

    async def test_a_value_that_changes_all_the_time_is_told_a_few_times(self):
        world = await settled()
        self.select(world, "grey")
        await world.settle()
        begun = len(world.writes)

        for number in range(40):
            world.server.now += 1
            self.select(world, f"grey-{number}")
            world.deliver()
            await world.work()

        assert 2 < world.writes[begun:].count(STATUS) < MOST_REPEATS
        world.server.now += 601
        world.deliver()
        await world.work()
        (field,) = world.status()["contested"]
        assert "grey-39" in field["live"]

    def select(self, world: World, phase: str) -> None:
        world.edit("Service", "demo", {"spec": {"selector": {"app.kubernetes.io/phase": phase}}})

    async def test_both_are_logged_once_each_though_the_status_is_refused(self):
        world = await settled()
        refuse(world, errors.Invalid("no", code=422), "demo/status")
        take_image(world)
        for _ in range(3):
            world.deliver()
            await world.work()
            world.server.now += 61

        told = [
            entry["told"] for entry in world.logs.entries if entry["event"] == "field contested"
        ]
        assert len(told) == 1
        assert "you declare example/echo:1, it is theirs:9; held by helm (Apply)" in told[0]

    async def test_the_end_of_a_conflict_is_logged_once_after_its_beginning(self):
        world = await settled()
        take_image(world)
        await world.settle()
        world.apply(blueSpec=pods("blue", "theirs:9"))
        for _ in range(3):
            await world.settle()
            world.server.now += 61

        logged = {
            event: [e["told"] for e in world.logs.entries if e["event"] == event]
            for event in ("field contested", "field no longer contested")
        }
        field = f"Deployment/{NAME}: {IMAGE}"
        said = "you declare example/echo:1, it is theirs:9; held by helm (Apply); left as it is"
        assert logged == {
            "field contested": [f"{field}: {said}"],
            "field no longer contested": [field],
        }


class TestRestoring:
    async def test_more_than_ten_fields_put_back_make_one_event(self):
        world = await settled(blueSpec=env("ours", 30))
        live = world.the("Deployment", NAME)
        live["spec"]["template"]["spec"]["containers"][0].pop("env")
        world.server.update(live, "remover")
        await world.settle()

        assert world.events() == ["FieldRestored"]
