"""Between two children of a long plan the loop turns, and what has changed then counts."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from hedgerow.runtime.passes import turns
from runtime.scenes import CREATION
from runtime.world import World

pytestmark = pytest.mark.anyio


@pytest.fixture
def at_each_turn(monkeypatch) -> Callable[[Callable[[], Any]], list[int]]:
    """Have the loop turn after each child, and do something meanwhile; count the turns."""

    def install(act: Callable[[], Any]) -> list[int]:
        made: list[int] = []

        async def turn() -> None:
            made.append(len(made))
            act()

        monkeypatch.setattr(turns, "TURN", 0.0)
        monkeypatch.setattr(turns, "checkpoint", turn)
        return made

    return install


class TestPlan:
    async def test_one_of_which_nothing_changes_is_carried_out(self, at_each_turn):
        made = at_each_turn(lambda: None)
        world = World()
        world.apply()
        await world.settle()

        assert world.writes[:4] == CREATION
        assert made

    async def test_one_of_which_an_input_has_changed_is_dropped(self, at_each_turn):
        world = World()
        edits = count()

        def edit() -> None:
            if next(edits) == 0:
                world.apply(greenSpec=None)
                world.deliver()

        at_each_turn(edit)
        world.apply()
        await world.settle()

        assert not any("green" in write for write in world.writes)

    async def test_one_of_a_resource_that_has_gone_is_dropped(self, at_each_turn):
        world = World()
        at_each_turn(lambda: (world.delete("BlueGreen"), world.deliver()))
        world.apply()
        world.deliver()
        await world.work()

        assert world.writes == []

    async def test_one_of_which_an_input_changes_all_the_time_is_carried_out_at_last(
        self, at_each_turn
    ):
        world = World()
        edits = count()

        def edit() -> None:
            number = next(edits)
            if not world.writes:
                world.apply(routeTo=("Green", "Blue")[number % 2])
                world.deliver()

        at_each_turn(edit)
        world.apply()
        world.deliver()
        await world.work()

        assert world.writes
        assert next(edits) > 8
