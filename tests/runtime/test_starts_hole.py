"""The one way to make a start twice, which Kubernetes's own CronJob has too."""

from __future__ import annotations

from typing import Any

import pytest

from hedgerow.kube.errors import Unreachable
from hedgerow_testing.memory.cluster import Sent
from runtime.clockwork import MINUTE, Clockwork, standstill, started
from runtime.world import Crash, calm, crash

pytestmark = pytest.mark.anyio


def taken(world: Clockwork) -> None:
    """Let the Job of the next start be gone as soon as it is made, as a TTL of nothing has it."""
    world.delete("Job", world.jobs[-1])


class TestTheHole:
    """The operator is killed between two writes, and the Job is gone before it is back."""

    async def killed(self, number: int = 0, **spec: Any) -> Clockwork:
        """Kill it around the request of that number."""
        world = await started(**spec)
        world.during(number, crash)
        with pytest.raises(Crash):
            await world.live_through(MINUTE)
        taken(world)
        world.restart()
        await standstill(world)
        return world

    async def unanswered(self, **spec: Any) -> Clockwork:
        world = await started(**spec)

        async def lost(sent: Sent) -> None:
            taken(world)
            world.cluster.after = calm
            raise Unreachable("no answer", sent=True)

        world.cluster.after = lost
        await world.live_through(MINUTE)
        world.deliver()
        await world.live_through(1)
        return world

    @pytest.mark.parametrize("how", [killed, unanswered])
    async def test_the_start_is_made_once_more(self, how):
        world = await how(self)

        assert world.made == [world.job(1)] * 2

    async def test_killed_after_the_status_was_written_nothing_is_lost(self):
        world = await self.killed(1)

        assert world.made == [world.job(1)]

    async def test_one_that_is_made_after_all_is_found_by_its_name(self):
        late: list[Sent] = []

        async def lost(sent: Sent) -> None:
            if sent.writes and sent.api.kind == "Job":
                late.append(sent)
                raise Unreachable("no answer", sent=True)

        world = await started(concurrencyPolicy="Forbid")
        world.cluster.before = lost
        await world.live_through(2 * MINUTE - 1)
        world.cluster.before = calm
        world.server.apply(late[-1].body, late[-1].manager)  # no watch tells of it yet
        await world.live_through(1)

        assert len(late) > 2
        assert world.jobs == [world.job(1)]

    @pytest.mark.parametrize("kind", ["", "Job"])
    async def test_while_the_operator_lives_it_knows_what_it_made(self, kind):
        # The Job is gone before even the answer to its creation is in.
        world = await started()

        def gone() -> None:
            taken(world)
            world.deliver(kind=kind)

        world.during(0, gone)
        await world.live_through(MINUTE)
        world.deliver()
        await world.live_through(MINUTE - 1)

        assert world.made == [world.job(1)]
        assert world.last == world.at(MINUTE)

    async def test_it_knows_so_as_long_as_the_status_cannot_be_written(self):
        world = await started()

        def edited() -> None:
            world.edit("CronJob", "demo", {"metadata": {"annotations": {"a": "b"}}})

        world.during(0, edited)
        await world.live_through(MINUTE)
        assert world.last == ""
        taken(world)
        world.deliver(kind="Job")
        await world.work()
        assert world.made == [world.job(1)]

        world.deliver()
        await world.work()
        assert world.made == [world.job(1)]
        assert world.last == world.at(MINUTE)
