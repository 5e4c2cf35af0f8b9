"""What stalls a CronJob is told once, whatever lives of the operator see it."""

from __future__ import annotations

import pytest

from runtime.clockwork import MINUTE, started

pytestmark = pytest.mark.anyio

STATUS = "apply CronJob default/demo/status"


class TestStalled:
    async def test_of_many_missed_starts_the_newest_is_made_and_one_event_tells_of_the_rest(self):
        world = await started()
        world.pass_time(101 * MINUTE)
        await world.work()
        world.deliver()
        world.restart()
        await world.work()

        assert world.made == [world.job(101)]
        assert world.condition("Ready") == "True/Scheduled"
        assert sorted(world.events()) == ["Started", "TooManyMissedTimes"]
        assert world.status()["missed"] == 100
        assert world.writes.count(STATUS) == 2

        await world.live_through(MINUTE)
        assert world.made == [world.job(101), world.job(102)]
        assert sorted(world.events()) == ["Started", "Started", "TooManyMissedTimes"]
        assert world.status()["missed"] == 0

    async def test_a_clock_that_was_ahead_recovers_by_itself(self):
        world = await started()
        await world.live_through(2 * MINUTE)
        world.pass_time(365 * 24 * 60 * MINUTE)
        await world.work()
        ahead = world.made[-1]
        world.pass_time(-365 * 24 * 60 * MINUTE)
        world.restart()
        await world.work()

        assert world.last == world.at(2 * MINUTE)
        assert "RecordAhead" in world.events()
        assert ahead in world.status()["conditions"][-1]["message"]
        await world.live_through(2 * MINUTE)
        assert world.made[-2:] == [world.job(3), world.job(4)]

        world.delete("Job", ahead)
        world.deliver()
        await world.work()
        assert world.condition("DatedAhead") == ""

    async def test_a_clock_that_is_behind_starts_nothing_twice(self):
        world = await started(successfulJobsHistoryLimit=1)
        for _ in range(9):
            await world.live_through(MINUTE)
            world.end_job(world.made[-1])
            world.deliver()
            await world.work()
        made, last = world.made, world.last
        world.clock.ahead = -150
        world.restart()
        await world.live_through(MINUTE)

        assert world.condition("Ready") == "False/ClockBehind"
        assert world.events().count("ClockBehind") == 1
        await world.live_through(MINUTE)
        assert world.jobs == made[-1:]
        assert (world.made, world.last) == (made, last)

        world.clock.ahead = 0
        world.restart()
        await world.live_through(MINUTE)
        assert world.made == [*made, world.job(11), world.job(12)]
        assert world.condition("Ready") == "True/Scheduled"
        assert "RecordAhead" not in world.events()

    async def test_a_record_ahead_that_somebody_else_holds_stops_nothing(self):
        world = await started()
        await world.live_through(MINUTE)
        live = world.the("CronJob", "demo")
        ahead = world.at(365 * 24 * 60 * MINUTE)
        edited = {**live, "status": {**live["status"], "lastScheduleTime": ahead}}
        world.server.update(edited, "kubectl-edit", "status")
        world.deliver()
        await world.live_through(3 * MINUTE)

        assert world.last == ahead
        assert [field["path"] for field in world.status()["contested"]] == [
            ".status.lastScheduleTime"
        ]
        assert world.made == [world.job(minute) for minute in (1, 2, 3, 4)]
        assert "TooManyMissedTimes" not in world.events()

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

        assert sorted(world.events()) == [*["JobAlreadyActive"] * 3, "Started"]
        assert world.made == [world.job(1)]
