"""Passes over the cluster in memory: how few writes are made, and when none is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Any

import pytest

from runtime.scenes import (
    CREATION,
    RESPELLED,
    SELECTOR,
    nothing,
    settled,
    take_image,
    take_label,
    take_service_name,
    take_status,
    writes_of,
)
from runtime.world import DEMO, World, pods

Object = dict[str, Any]

pytestmark = pytest.mark.anyio


class TestCost:
    async def test_a_flip_takes_two_writes(self):
        world = await settled()

        written = await writes_of(world, lambda: world.apply(routeTo="Green"))

        assert written == CREATION[2:]

    async def test_a_changed_template_takes_one_write_and_the_status(self):
        world = await settled()

        written = await writes_of(world, lambda: world.apply(blueSpec=pods("blue", "x:2")))

        assert written == [CREATION[0], CREATION[3]]

    async def test_children_are_made_create_only_and_changed_by_uid_a_status_by_version(self):
        world = await settled()
        world.apply(blueSpec=pods("blue", "x:2"))
        await world.settle()

        guards = [sent.body["metadata"] for sent in world.cluster.writes]
        assert [meta.get("resourceVersion") for meta in guards[:3]] == ["1"] * 3
        assert all(meta["uid"] for meta in guards[3:])
        versioned = [
            s.subresource
            for s in world.cluster.writes[3:]
            if "resourceVersion" in s.body["metadata"]
        ]
        assert versioned == ["status"] * versioned.count("status")
        assert versioned

    async def test_every_write_is_an_unforced_apply_of_the_one_field_manager(self):
        world = await settled()
        world.apply(routeTo="Green", blueSpec=None)
        await world.settle()

        applies = [sent for sent in world.cluster.writes if sent.verb == "apply"]
        assert {sent.manager for sent in applies} == {"hedgerow-bluegreen"}
        assert not any(sent.force for sent in world.cluster.writes)

    async def test_several_resources_do_not_mix(self, world):
        world.apply("one")
        world.apply("two", routeTo="Green")
        await world.settle()

        assert (world.selected("one"), world.selected("two")) == ("Blue", "Green")
        assert len(world.writes) == 8


@dataclass(frozen=True)
class Steady:
    reason: str
    spec: Object
    upset: Callable[[World], Any]


STEADY = [
    Steady("nothing special", {}, nothing),
    Steady("a declaration that the server spells otherwise", {"blueSpec": RESPELLED}, nothing),
    Steady("a contested field", {}, take_image),
    Steady("a contested field besides one spelled otherwise", {"blueSpec": RESPELLED}, take_image),
    Steady("a contested selector", {}, lambda w: w.edit("Service", "demo", SELECTOR)),
    Steady("a name that is taken", {}, take_service_name),
    Steady("a contested status", {}, take_status),
    Steady("a contested label of our own", {}, take_label),
    Steady("one colour only", {"greenSpec": None}, nothing),
    Steady("many ports", {"ports": [{"name": "a", "port": 1}, {"name": "b", "port": 2}]}, nothing),
    Steady(
        "a patient flip that waits", {"promotion": "WhenAvailable", "routeTo": "Green"}, nothing
    ),
]


@pytest.mark.parametrize("case", STEADY, ids=lambda case: case.reason)
async def test_a_settled_world_gets_no_write_nor_does_a_restart(case):
    world = await settled(**case.spec)
    case.upset(world)
    await world.settle()
    version = world.server.version

    for _ in range(5):
        world.server.now += 301
        world.life.look(DEMO)
        assert await writes_of(world, world.lose_and_relist) == []

    assert await writes_of(world, world.restart) == []
    world.server.now += 3600
    assert await writes_of(world, world.restart) == []
    assert world.server.version == version


class TestRequeue:
    async def test_a_settled_resource_is_looked_at_only_when_something_happens(self):
        world = await settled()

        world.life.look(DEMO)
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
