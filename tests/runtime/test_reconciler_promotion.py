"""The Service moves on what is available now, never on what was."""

from __future__ import annotations

from typing import Any

import pytest

from hedgerow.kube import errors
from runtime.scenes import (
    CREATION,
    refuse,
    settled,
    writes_of,
)
from runtime.world import pods

Object = dict[str, Any]

pytestmark = pytest.mark.anyio


class TestPromotion:
    async def test_the_service_moves_once_the_chosen_colour_is_available(self):
        world = await settled(promotion="WhenAvailable")
        world.make_ready("blue")
        world.apply(promotion="WhenAvailable", routeTo="Green")
        await world.settle()
        assert (world.selected(), world.condition("Ready")) == (
            "Blue",
            "False/WaitingForAvailability",
        )

        world.make_ready("green")
        await world.settle()

        assert (world.selected(), world.condition("Ready")) == ("Green", "True/Serving")

    async def test_a_new_template_and_a_flip_at_once_wait_for_the_new_template(self):
        world = await settled(promotion="WhenAvailable")
        world.make_ready("blue")
        world.make_ready("green")
        await world.settle()

        new = pods("green", "example/echo:2")
        world.apply(promotion="WhenAvailable", routeTo="Green", greenSpec=new)
        await world.settle()
        assert world.selected() == "Blue"

        world.make_ready("green", available=0)
        await world.settle()
        assert world.selected() == "Blue"

        world.make_ready("green")
        await world.settle()
        assert world.selected() == "Green"

    @pytest.mark.parametrize(
        "error",
        [
            errors.Forbidden("no", code=403),
            errors.Invalid("no", code=422),
            errors.Unreachable("no", sent=False),
        ],
        ids=lambda error: type(error).__name__,
    )
    async def test_a_template_that_could_not_be_written_does_not_move_the_service(self, error):
        world = await settled(promotion="WhenAvailable")
        world.make_ready("blue")
        world.make_ready("green")
        await world.settle()
        refuse(world, error, "demogreen-deployment")

        new = pods("green", "example/echo:2")
        world.apply(promotion="WhenAvailable", routeTo="Green", greenSpec=new)
        await world.settle()

        assert world.selected() == "Blue"
        assert "apply Service default/demo" not in world.writes[4:]

    async def test_taking_a_refused_template_back_clears_the_air(self):
        world = await settled(promotion="WhenAvailable")
        world.make_ready("blue")
        await world.settle()
        refuse(world, errors.Invalid("no", code=422), "demoblue-deployment")
        world.apply(promotion="WhenAvailable", blueSpec=pods("blue", "bad"))
        await world.settle()
        assert world.condition("Stalled") == "True/Rejected"

        written = await writes_of(world, lambda: world.apply(promotion="WhenAvailable"))

        assert written == [CREATION[3]]
        assert world.condition("Stalled") == ""
        assert world.condition("Ready") == "True/Serving"

    async def test_a_refused_template_whose_colour_is_removed_is_no_longer_told(self):
        world = await settled()
        world.make_ready("blue")
        refuse(world, errors.Invalid("no", code=422), "demogreen-deployment", verb="apply")
        world.apply(greenSpec=pods("green", "bad"))
        await world.settle()
        assert world.condition("Stalled") == "True/Rejected"

        world.apply(greenSpec=None)
        await world.settle()

        assert world.condition("Ready") == "True/Serving"
