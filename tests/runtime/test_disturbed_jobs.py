"""A CronJob's running Job that somebody disturbs: restored or told, and never a second one."""

from __future__ import annotations

from typing import Any

import pytest

from runtime.clockwork import MINUTE, Clockwork, started

Object = dict[str, Any]

pytestmark = pytest.mark.anyio

DISTURBANCES: dict[str, Object] = {
    "label removed": {"metadata": {"labels": {"hedgerow.dev/controller": None}}},
    "label changed": {"metadata": {"labels": {"hedgerow.dev/controller": "mine"}}},
    "owner removed": {"metadata": {"ownerReferences": None}},
    "label and owner removed": {
        "metadata": {"labels": {"hedgerow.dev/controller": None}, "ownerReferences": None}
    },
    "annotation removed": {
        "metadata": {"annotations": {"batch.tutorial.kubebuilder.io/scheduled-at": None}}
    },
    "suspended": {"spec": {"suspend": True}},
}


def disturb(world: Clockwork, change: Object) -> str:
    name = world.job(1)
    world.server.merge(world.target("Job", name), change, "kubectl-edit")
    return name


async def disturbed(policy: str, what: str, *, down: bool) -> Clockwork:
    """Return a world a minute after its one Job was disturbed."""
    world = await started(concurrencyPolicy=policy)
    await world.live_through(MINUTE)
    disturb(world, DISTURBANCES[what])
    if down:
        world.restart()
    world.deliver()
    await world.live_through(MINUTE)
    assert world.failures == []
    return world


@pytest.mark.parametrize("down", [False, True], ids=["", "while the operator is down"])
@pytest.mark.parametrize("what", DISTURBANCES)
class TestNeverASecondOne:
    async def test_forbid_waits_for_it_and_goes_on_once_it_has_ended(self, what, down):
        world = await disturbed("Forbid", what, down=down)

        assert world.jobs == [world.job(1)]
        assert world.status()["activeCount"] == 1
        world.end_job(world.job(1))
        world.deliver()
        await world.live_through(MINUTE)
        assert len(world.jobs) == 2

    async def test_replace_deletes_it_first_or_waits(self, what, down):
        world = await disturbed("Replace", what, down=down)
        world.deliver()
        await world.work()

        assert len(world.jobs) == 1
        assert (world.jobs == [world.job(1)]) == ("owner" in what)

    async def test_allow_makes_the_next_start_and_restores_or_tells(self, what, down):
        world = await disturbed("Allow", what, down=down)
        found = world.the("Job", world.job(1))

        assert world.jobs == [world.job(1), world.job(2)]
        if what == "label removed":
            assert found["metadata"]["labels"]["hedgerow.dev/controller"] == "cronjob"
        if what == "label changed":
            assert world.condition("Ready") == "False/FieldConflict"
            assert world.condition("Contested") == "True/FieldConflict"
            assert [manager for *_, manager in world.contested()] == ["kubectl-edit"]
        if "owner" in what:
            assert world.condition("JobAstray") == "True/OwnerChanged"
        assert world.status()["activeCount"] == 2


class TestRestored:
    async def test_one_that_is_ours_again_blocks_forbid_no_longer_than_it_runs(self):
        world = await started(concurrencyPolicy="Forbid")
        await world.live_through(MINUTE)
        before = world.the("Job", world.job(1))["metadata"]["ownerReferences"]
        name = disturb(world, DISTURBANCES["owner removed"])
        world.deliver()
        await world.live_through(MINUTE)
        assert world.condition("JobAstray") == "True/OwnerChanged"

        disturb(world, {"metadata": {"ownerReferences": before}})
        world.deliver()
        await world.live_through(MINUTE)
        assert world.condition("JobAstray") == ""
        world.end_job(name)
        world.deliver()
        await world.live_through(MINUTE)

        assert len(world.jobs) == 2

    async def test_one_that_gets_its_label_back_during_a_pass_is_observed_once(self):
        world = await started(concurrencyPolicy="Allow")
        await world.live_through(MINUTE)
        world.deliver()
        await world.work()
        disturb(world, DISTURBANCES["label changed"])
        world.deliver()

        def give_back() -> None:
            disturb(world, {"metadata": {"labels": {"hedgerow.dev/controller": "cronjob"}}})
            world.deliver()

        world.during(2, give_back)  # after the Job was read, while its conflict is told
        await world.live_through(MINUTE)

        assert world.failures == []
        assert world.jobs == [world.job(1), world.job(2)]
