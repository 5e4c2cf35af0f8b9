"""Finalizers of ours on the children of resources that are gone or going."""

from __future__ import annotations

from typing import Any

import pytest

from hedgerow.controllers.cronjob.starts import START_GUARD
from hedgerow.kube import errors
from hedgerow.plan import oversized
from hedgerow.plan.oversized import Family, Oversize
from hedgerow.runtime.applier import Applier
from hedgerow.runtime.cache.budget import Budget, Weigher
from hedgerow.runtime.child_finalizers import Finalizers
from hedgerow.runtime.large import USUAL
from hedgerow.runtime.refusals import RefusalLog
from runtime.clockwork import CRONJOBS, MINUTE, Clockwork, guarded_jobs, started
from runtime.scenes import refuse
from runtime.world import DEMO, Crash, calm, crash

Object = dict[str, Any]

pytestmark = pytest.mark.anyio

HOLD = {"metadata": {"finalizers": ["example.com/hold"]}}


async def guarded() -> Clockwork:
    """Return a world in which the first Job still has its guard, unknown to the status."""
    world = await started(startGuard=True)
    world.during(0, crash)
    with pytest.raises(Crash):
        await world.live_through(MINUTE)
    world.cluster.before = world.cluster.after = calm
    world.deliver()
    assert guarded_jobs(world) == [world.job(1)]
    return world


async def take_off(world: Clockwork) -> list[str]:
    """Take finalizers off; give the writes that were made of it."""
    before = len(world.writes)
    await taker(world).take_off(DEMO, USUAL)
    return world.writes[before:]


def taker(world: Clockwork) -> Finalizers:
    backoff = RefusalLog(world.clock, world.meters.of("cronjob"))
    return Finalizers(CRONJOBS, world.cache, Applier(world.cluster, "hedgerow-cronjob"), backoff)


def lines(world: Clockwork) -> list[tuple[str, str]]:
    entries = world.logs.entries
    return [(e["log_level"], e["event"]) for e in entries if e["log_level"] != "info"]


class TestWhose:
    async def test_a_resource_that_is_there_keeps_its_childrens_guards(self):
        world = await guarded()

        assert await take_off(world) == []

    @pytest.mark.parametrize(
        "acts",
        [
            [lambda world: world.delete("CronJob")],
            [lambda world: world.edit("CronJob", "demo", HOLD), lambda w: w.delete("CronJob")],
            [lambda world: world.delete("CronJob"), lambda world: world.apply(startGuard=True)],
        ],
        ids=["gone", "going", "made anew under the name"],
    )
    async def test_a_resource_that_is_there_no_more_gives_them_up(self, acts):
        world = await guarded()
        for act in acts:
            act(world)
        world.deliver(kind="CronJob")

        assert await take_off(world) == [f"apply Job default/{world.job(1)}"]
        assert guarded_jobs(world) == []

    async def test_of_a_job_that_is_cached_in_part_all_the_rest_stays(self):
        world = await guarded()
        (before,) = world.server.list("batch", "Job").items
        store = world.cache.child_store("Job", "default")
        key = ("default", world.job(1))
        weigher = Weigher(Budget(), lambda _: Family("cronjob", *key), manager="hedgerow-cronjob")
        part = oversized.reduced(
            before, Oversize(2, 1, "object"), "hedgerow-cronjob", [START_GUARD]
        )
        store._weigher = weigher
        store._entries[key].obj = weigher.weigh((store._shelf, key), part)
        world.delete("CronJob")
        world.deliver(kind="CronJob")

        assert await take_off(world) == [f"apply Job default/{world.job(1)}"]
        (after,) = world.server.list("batch", "Job").items
        assert guarded_jobs(world) == []
        assert after["spec"] == before["spec"]
        assert after["metadata"]["labels"] == before["metadata"]["labels"]

    async def test_one_that_went_meanwhile_is_no_trouble(self):
        world = await guarded()
        (before,) = world.server.list("batch", "Job").items
        key = ("default", world.job(1))
        part = oversized.reduced(
            before, Oversize(2, 1, "object"), "hedgerow-cronjob", [START_GUARD]
        )
        world.cache.child_store("Job", "default")._entries[key].obj = part
        world.delete("CronJob")
        world.deliver(kind="CronJob")
        world.edit("Job", world.job(1), {"metadata": {"finalizers": None}})
        world.delete("Job", world.job(1))

        assert await take_off(world) == []

    async def test_what_others_finalize_is_left_with_them(self):
        world = await guarded()
        live = world.the("Job", world.job(1))
        live["metadata"]["finalizers"].append("example.com/hold")
        world.server.update(live, "somebody")
        world.delete("CronJob")
        world.deliver()
        await take_off(world)

        assert world.the("Job", world.job(1))["metadata"]["finalizers"] == ["example.com/hold"]

    async def test_a_guard_that_is_not_held_by_us_is_not_ours_to_take_off(self):
        world = await guarded()
        live = world.the("Job", world.job(1))
        live["metadata"]["managedFields"] = [{}]
        world.server.update(live, "wiper")
        world.delete("CronJob")
        world.deliver()

        assert await take_off(world) == []

    async def test_what_was_taken_off_is_known_at_once(self):
        world = await guarded()
        world.delete("CronJob")
        world.deliver(kind="CronJob")
        await take_off(world)

        assert await take_off(world) == []


class TestTrouble:
    async def orphaned(self) -> Clockwork:
        world = await guarded()
        world.delete("CronJob")
        world.deliver(kind="CronJob")
        return world

    async def test_a_child_that_is_gone_is_no_trouble(self):
        world = await self.orphaned()
        live = world.the("Job", world.job(1))
        live["metadata"]["finalizers"] = []
        world.server.update(live, "somebody")
        world.delete("Job", world.job(1))

        assert await take_off(world) == [f"apply Job default/{world.job(1)}"]
        assert [level for level, _ in lines(world)] == ["debug"]
        assert world.jobs == []

    @pytest.mark.parametrize("error", [errors.Missing("gone", code=404), errors.Stale("old")])
    async def test_what_the_watch_is_about_to_tell_is_no_warning(self, error):
        world = await self.orphaned()
        refuse(world, error, world.job(1))
        await take_off(world)

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
    async def test_what_is_refused_is_logged_and_taken_off_as_soon_as_it_may_be(self, error):
        world = await self.orphaned()
        refuse(world, error, world.job(1), times=3)
        await world.work()
        assert lines(world) == [("warning", "refused")]
        assert guarded_jobs(world) == [world.job(1)]

        for _ in range(20):
            world.server.now += 1
            await world.work()

        assert guarded_jobs(world) == []
        assert world.runner._reconciler._finalizers._refused == {}

    async def test_while_it_waits_other_passes_send_nothing(self):
        world = await self.orphaned()
        refuse(world, errors.Forbidden("no", code=403), world.job(1))
        finalizers = taker(world)
        before = len(world.writes)
        waits = [await finalizers.take_off(DEMO, USUAL) for _ in range(5)]

        assert len(world.writes) - before == 1
        assert None not in waits

    async def test_a_server_that_is_away_is_raised_to_be_tried_again(self):
        world = await self.orphaned()
        refuse(world, errors.Unreachable("down", sent=False), world.job(1))

        with pytest.raises(errors.Unreachable):
            await take_off(world)

    async def test_one_that_cannot_be_taken_off_does_not_keep_the_others(self):
        world = await guarded()
        world.during(1, lambda: None)
        world.restart()
        world.during(0, crash)
        world.pass_time(MINUTE)
        with pytest.raises(Crash):
            await world.work()
        world.restart()
        assert len(guarded_jobs(world)) == 2
        world.delete("CronJob")
        world.deliver(kind="CronJob")
        refuse(world, errors.Invalid("bad"), world.job(1))
        await take_off(world)

        assert guarded_jobs(world) == [world.job(1)]


class TestPasses:
    """As the operator does it by itself."""

    @pytest.mark.parametrize("seen", [True, False], ids=["", "nobody there to see it"])
    async def test_jobs_of_a_deleted_resource_go_with_it(self, seen):
        world = await guarded()
        world.delete("CronJob")
        if seen:
            world.deliver()
        world.server.collect()
        assert world.the("Job", world.job(1))["metadata"]["deletionTimestamp"]
        if not seen:
            world.restart()
        await world.settle()

        assert world.jobs == []
        assert world.failures == []

    @pytest.mark.parametrize("seen", [True, False], ids=["", "nobody there to see it"])
    async def test_an_orphaned_job_is_let_go_too(self, seen):
        world = await guarded()
        world.edit("Job", world.job(1), {"metadata": {"ownerReferences": None}})
        world.delete("CronJob")
        if not seen:
            world.restart()
        await world.settle()

        assert "finalizers" not in world.the("Job", world.job(1))["metadata"]

    async def test_a_start_that_is_on_record_frees_its_job_in_the_same_pass(self):
        world = await started(startGuard=True)
        await world.live_through(MINUTE)

        assert guarded_jobs(world) == []
        written = [write for write in world.writes if "Event" not in write]
        assert written[-3:] == [
            f"apply Job default/{world.job(1)}",
            "apply CronJob default/demo/status",
            f"apply Job default/{world.job(1)}",
        ]

    async def test_a_job_deleted_by_hand_goes_once_its_start_is_on_record(self):
        world = await guarded()
        world.delete("Job", world.job(1))
        assert world.jobs == [world.job(1)]
        world.restart()
        await world.work()

        assert world.jobs == []
        assert world.last == world.at(MINUTE)
        assert world.made == [world.job(1)]
