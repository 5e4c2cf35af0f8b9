"""What resources that are gone contributed is given back, whatever is refused on the way."""

from __future__ import annotations

import dataclasses
import gc
from typing import Any

import pytest

from hedgerow.kube import errors
from hedgerow.kube.errors import Cause
from hedgerow.plan.ledger import Ledger
from runtime.scenes import refuse
from runtime.stepwise import WorldPeople, play, settle
from runtime.test_contributions import (
    CONTRIBUTED,
    MANAGER,
    SCALER,
    contributed,
    deploy,
    deployed,
    is_held,
    on_deployments,
)
from runtime.world import DEMO, World

pytestmark = pytest.mark.anyio

SECONDS = 20
GONE = errors.Missing("gone", code=404, status={"details": {"name": "web"}})
ENDS = errors.Forbidden("ends", code=403, causes=[Cause("", "", "", "NamespaceTerminating")])


async def orphaned(*names: str) -> World:
    """Return a world whose resource is gone, which contributed to Deployments."""
    world = await contributed()
    for name in names:
        deploy(world, name)
    await world.settle()
    world.delete("BlueGreen")
    world.deliver(kind="BlueGreen")
    return world


def lines(world: World) -> list[tuple[str, str]]:
    """Return the log but for what was written."""
    entries = world.logs.entries
    return [(e["log_level"], e["event"]) for e in entries if e["log_level"] != "info"]


def ledgers() -> int:
    gc.collect()
    return sum(isinstance(one, Ledger) for one in gc.get_objects())


async def wait(world: World) -> None:
    for _ in range(SECONDS):
        world.server.now += 1
        await world.work()


class TestTrouble:
    async def test_what_was_given_back_is_known_at_once(self):
        world = await orphaned()
        await world.work()
        before = len(world.writes)

        assert not is_held(world)
        await wait(world)
        assert on_deployments(world, before) == []

    @pytest.mark.parametrize("error", [GONE, errors.Stale("old")])
    async def test_what_the_watch_is_about_to_tell_is_no_warning(self, error):
        world = await orphaned()
        refuse(world, error, "web", times=1)
        await world.work()

        assert not {level for level, _ in lines(world)} - {"debug"}

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

        await wait(world)

        assert not is_held(world)

    async def test_a_namespace_that_is_deleted_takes_the_contributions_along(self):
        world = await orphaned()
        refused = refuse(world, ENDS, "web")
        await world.work()
        await wait(world)

        assert len(refused) == 1

    async def test_of_what_is_gone_or_had_nothing_to_give_back_nothing_is_remembered(self):
        before = ledgers()
        world = await orphaned()
        await world.settle()
        world.delete("Deployment", "web")
        for name in ("another", "xylophone"):
            deployed(name, of=name)(WorldPeople(world))
        await world.settle()

        assert ledgers() == before

    async def test_while_it_waits_other_passes_send_nothing(self):
        world = await orphaned()
        refused = refuse(world, errors.Forbidden("no", code=403), "web")
        for _ in range(5):
            world.life.runner.queue.add(DEMO)
            await world.work()

        assert len(refused) == 1
        assert world.life.next_due < float("inf")

    async def test_a_server_that_is_away_is_tried_again(self):
        world = await orphaned()
        refuse(world, errors.Unreachable("down", sent=False), "web", times=1)
        await world.work()
        assert world.life.retried == (DEMO,)

        await wait(world)

        assert not is_held(world)

    async def test_one_that_is_refused_does_not_keep_the_others(self):
        world = await orphaned("another", "xylophone")
        refuse(world, errors.Invalid("bad"), "web")
        await world.work()

        held = [name for name in ("another", "web", "xylophone") if is_held(world, name)]
        assert held == ["web"]

    async def test_what_is_rewritten_again_and_again_is_not_fought_without_end(self, monkeypatch):
        remains = dataclasses.replace(
            SCALER.contributes[0], remains=lambda *_: {"spec": {"replicas": 5}}
        )
        world = World(controller=dataclasses.replace(SCALER, contributes=(remains,)))
        await play(world, [CONTRIBUTED], rest=settle)
        apply = world.server.apply

        def rewritten(body: Any, manager: str, **how: Any) -> Any:
            """Store what a webhook makes of each write of ours."""
            is_ours = body["kind"] == "Deployment" and manager == MANAGER
            return apply({**body, "spec": {"replicas": 4}} if is_ours else body, manager, **how)

        monkeypatch.setattr(world.server, "apply", rewritten)
        world.delete("BlueGreen")
        before = len(world.writes)
        for _ in range(60):
            world.server.now += 1
            world.deliver()
            await world.work()

        assert 1 < len(on_deployments(world, before)) < 10
