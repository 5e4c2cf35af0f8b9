"""A pass leaves no cycle: what it held is freed at its end, not when the collector comes."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest

from runtime.scenes import settled
from runtime.world import World, pods

pytestmark = pytest.mark.anyio


@contextmanager
def collected() -> Generator[list[object]]:
    """Yield a list that has, in the end, what only a collection could free."""
    found: list[object] = []
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        yield found
        gc.collect()
        found += gc.garbage
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


BLUE, GREEN = {"blueSpec": pods("blue", "x:2")}, {"greenSpec": pods("green", "y:2")}


@pytest.mark.parametrize(
    "spec",
    [BLUE, {"routeTo": "Green"}, {**BLUE, **GREEN}],
    ids=["one write", "a flip", "several writes"],
)
async def test_a_pass_leaves_nothing_to_the_collector(spec: dict[str, Any]):
    world = await settled()

    with collected() as found:
        world.apply(**spec)
        await world.settle()

    assert [type(one) for one in found] == []
    assert world.cluster.writes


async def test_the_first_pass_leaves_nothing_either():
    world = World()
    world.apply()

    with collected() as found:
        await world.settle()

    assert [type(one) for one in found] == []
    assert len(world.cluster.writes) == 4
