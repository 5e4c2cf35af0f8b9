"""Jobs that are made up: they end in time, and go as a Job with a finalizer goes."""

from __future__ import annotations

from datetime import timedelta

import pytest

from cli.schedule.asked import at
from hedgerow.cli.schedule.world import World


@pytest.fixture
def world():
    made = World("default", timedelta(minutes=5))
    made.create("plain", {}, at(0))
    made.create("guarded", {"metadata": {"finalizers": ["ours", "theirs"]}}, at(1))
    return made


class TestTime:
    def test_a_job_has_ended_when_its_time_is_over(self, world):
        def ended(minute):
            return {job.name: job.succeeded for job in world.jobs(at(minute))}

        assert ended(4) == {"plain": False, "guarded": False}
        assert ended(5) == {"plain": True, "guarded": False}
        assert ended(6) == {"plain": True, "guarded": True}

    def test_it_tells_when_it_began_and_ended(self, world):
        job = world.jobs(at(9))[0]

        assert (job.start_time, job.completion_time) == (at(0), at(5))

    def test_the_next_end_is_told(self, world):
        assert [world.next_end(at(m)) for m in (0, 5, 6)] == [at(5), at(6), None]
        assert [world.running(at(m)) for m in (0, 5, 6)] == [("plain", "guarded"), ("guarded",), ()]


class TestDeletion:
    def test_a_job_without_finalizer_is_gone_at_once(self, world):
        world.delete("plain")

        assert "plain" not in world
        assert world.surplus(()) == ("guarded",)

    def test_one_with_a_finalizer_goes_when_the_last_is_off(self, world):
        world.delete("guarded")

        assert "guarded" in world
        assert world.jobs(at(1))[1].going
        assert world.surplus(()) == ("plain",)

        assert world.release("guarded", "ours")
        assert "guarded" in world
        assert world.release("guarded", "theirs")
        assert "guarded" not in world

    def test_one_that_does_not_go_loses_its_finalizer_and_stays(self, world):
        assert world.release("guarded", "ours")
        assert not world.release("guarded", "ours")
        assert world.jobs(at(1))[1].finalizers == ("theirs",)
