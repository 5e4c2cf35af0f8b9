"""What resources that are gone claimed is given back, whatever is refused on the way."""

from __future__ import annotations

import pytest

from hedgerow.kube import errors
from hedgerow.runtime.applier import Applier
from hedgerow.runtime.giving_back import GivingBack
from hedgerow.runtime.large import USUAL
from runtime.scenes import refuse
from runtime.test_claims import MANAGER, SCALER, claimed, deploy, is_held, on_deployments
from runtime.world import DEMO, World

pytestmark = pytest.mark.anyio


async def orphaned(*names: str) -> World:
    """Return a world whose resource is gone, which claimed fields of Deployments."""
    world = await claimed()
    for name in names:
        deploy(world, name)
    await world.settle()
    world.delete("BlueGreen")
    world.deliver(kind="BlueGreen")
    return world


def giving_back(world: World) -> GivingBack:
    meter = world.meters.of("scaler")
    applier = Applier(world.cluster, MANAGER)  # type: ignore[arg-type]
    return GivingBack(SCALER, world.insides.cache, applier, world.clock, meter)


def lines(world: World) -> list[tuple[str, str]]:
    entries = world.logs.entries
    return [(e["log_level"], e["event"]) for e in entries if e["log_level"] != "info"]


class TestTrouble:
    async def test_what_was_given_back_is_known_at_once(self):
        world = await orphaned()
        given = giving_back(world)
        await given.give_back(DEMO, USUAL)
        before = len(world.writes)

        assert not is_held(world)
        assert await given.give_back(DEMO, USUAL) is None
        assert on_deployments(world, before) == []

    @pytest.mark.parametrize("error", [errors.Missing("gone", code=404), errors.Stale("old")])
    async def test_what_the_watch_is_about_to_tell_is_no_warning(self, error):
        world = await orphaned()
        refuse(world, error, "web")
        await giving_back(world).give_back(DEMO, USUAL)

        assert lines(world) == [("debug", "refused")]

    @pytest.mark.parametrize(
        "error",
        [
            errors.Conflict("theirs"),
            errors.Invalid("bad"),
            errors.Forbidden("no", code=403),
            errors.Unavailable("failed calling webhook", code=500),
        ],
        ids=lambda error: type(error).__name__,
    )
    async def test_what_is_refused_is_logged_and_tried_again_as_soon_as_it_may_be(self, error):
        world = await orphaned()
        refuse(world, error, "web", times=3)
        await world.work()
        assert lines(world) == [("warning", "refused")]
        assert is_held(world)

        for _ in range(20):
            world.server.now += 1
            await world.work()

        assert not is_held(world)

    async def test_while_it_waits_other_passes_send_nothing(self):
        world = await orphaned()
        refuse(world, errors.Forbidden("no", code=403), "web")
        given = giving_back(world)
        before = len(world.writes)
        waits = [await given.give_back(DEMO, USUAL) for _ in range(5)]

        assert len(on_deployments(world, before)) == 1
        assert None not in waits

    async def test_a_server_that_is_away_is_raised_to_be_tried_again(self):
        world = await orphaned()
        refuse(world, errors.Unreachable("down", sent=False), "web")

        with pytest.raises(errors.Unreachable):
            await giving_back(world).give_back(DEMO, USUAL)

    async def test_one_that_is_refused_does_not_keep_the_others(self):
        world = await orphaned("another", "xylophone")
        refuse(world, errors.Invalid("bad"), "web")
        await giving_back(world).give_back(DEMO, USUAL)

        held = [name for name in ("another", "web", "xylophone") if is_held(world, name)]
        assert held == ["web"]
