"""What stalls a CronJob is told once, whatever lives of the operator see it."""

from __future__ import annotations

import pytest

from runtime.clockwork import MINUTE, started

pytestmark = pytest.mark.anyio

STATUS = "apply CronJob default/demo/status"


class TestStalled:
    async def test_too_many_missed_starts_are_one_event_and_one_condition(self):
        world = await started()
        world.pass_time(101 * MINUTE)
        await world.work()
        for _ in range(2):
            world.restart()
            world.pass_time(3 * MINUTE)
            await world.work()

        assert world.condition("Stalled") == "True/TooManyMissedStarts"
        assert world.events() == ["TooManyMissedStarts"]
        assert world.status()["missed"] == 101
        assert world.writes.count(STATUS) == 2

    async def test_it_recovers_when_the_deadline_is_set(self):
        world = await started()
        world.pass_time(200 * MINUTE)
        await world.work()
        world.apply(startingDeadlineSeconds=90)
        world.deliver()
        await world.work()

        assert world.made == [world.job(200)]
        assert world.condition("Ready") == "True/Scheduled"
        assert world.condition("Stalled") == ""
        await world.live_through(MINUTE)
        assert world.made == [world.job(200), world.job(201)]

    async def test_a_schedule_that_cannot_be_read_is_one_event(self):
        world = await started(schedule="junk")
        for _ in range(2):
            world.restart()
            await world.live_through(MINUTE)

        assert world.condition("Stalled") == "True/UnparseableSchedule"
        assert world.events() == ["UnparseableSchedule"]

    async def test_another_schedule_that_cannot_be_read_is_another(self):
        world = await started(schedule="junk")
        world.apply(schedule="rubbish")
        world.deliver()
        await world.work()

        assert world.events() == ["UnparseableSchedule"] * 2

    async def test_missed_and_forbidden_starts_are_told_once_each(self):
        world = await started(concurrencyPolicy="Forbid", startingDeadlineSeconds=90)
        await world.live_through(4 * MINUTE)
        world.restart()
        await world.work()

        assert sorted(world.events()) == ["JobAlreadyActive"] * 3
        assert world.made == [world.job(1)]
