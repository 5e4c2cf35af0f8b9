"""Jobs that are made up: they end in time, and go as a Job with a finalizer goes."""

from __future__ import annotations

from datetime import timedelta

import pytest

from cli.schedule.asked import at
from hedgerow.cli.schedule.simulation import SimulatedJobs


@pytest.fixture
def world():
    made = SimulatedJobs("default", timedelta(minutes=5))
    made.create("plain", {}, at(0))
    made.create("guarded", {"metadata": {"finalizers": ["ours", "theirs"]}}, at(1))
    return made


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
