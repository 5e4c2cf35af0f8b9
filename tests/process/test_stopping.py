"""Stopping: the first signal lets work end, the grace bounds it, the second waits no more."""

from __future__ import annotations

import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial

import anyio
import pytest
from structlog.testing import capture_logs

from hedgerow.process.stopping import Stop

pytestmark = pytest.mark.anyio

GRACE = 20.0


class Process:
    """Work under way in a process that hears signals."""

    def __init__(self, takes: float) -> None:
        self.stop = Stop(GRACE)
        self.ended: dict[str, float] = {}
        self._takes = takes

    async def work(self) -> None:
        """Work on after being asked to stop, for as long as it takes."""
        with self.stop.work:
            await self.stop.asked.wait()
            await anyio.sleep(self._takes)
            self.note("done")
        self.note("work")

    def note(self, what: str) -> None:
        self.ended[what] = anyio.current_time()

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Run to the end; what comes after the work takes two seconds more."""
        async with self.stop.on_signal(), anyio.create_task_group() as tasks:
            tasks.start_soon(self._main)
            yield
        self.note("process")

    async def _main(self) -> None:
        await self.work()
        await anyio.sleep(2)
        self.note("farewell")


def send(number: signal.Signals) -> None:
    signal.raise_signal(number)


class TestFirstSignal:
    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
    async def test_work_that_ends_in_time_is_let_end(self, number):
        process = Process(takes=15)
        with capture_logs() as logs:
            async with process.running():
                assert not process.stop.asked.is_set()
                send(number)

        assert process.ended == {"done": 15, "work": 15, "farewell": 17, "process": 17}
        assert [(e["event"], e["signal"]) for e in logs] == [("stopping", number.name)]

    async def test_without_a_signal_nothing_is_cut_off(self):
        process = Process(takes=0)
        async with process.running():
            await anyio.sleep(100 * GRACE)
            assert process.ended == {}
            send(signal.SIGTERM)

        assert process.ended["farewell"] == 100 * GRACE + 2


class TestGrace:
    async def test_work_that_goes_on_is_abandoned_when_it_has_run_out_and_what_comes_after_is_done(
        self,
    ):
        process = Process(takes=3600)
        with capture_logs() as logs:
            async with process.running():
                send(signal.SIGTERM)

        assert process.ended == {"work": GRACE, "farewell": GRACE + 2, "process": GRACE + 2}
        assert [(e["event"], e["log_level"]) for e in logs][1] == ("grace is over", "warning")
        assert logs[1]["seconds"] == GRACE


class TestSecondSignal:
    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
    async def test_within_the_grace_it_ends_everything_at_once(self, number):
        process = Process(takes=3600)
        async with process.running():
            send(signal.SIGTERM)
            await anyio.sleep(5)
            send(number)

        assert process.ended == {"process": 5}

    async def test_after_the_grace_it_ends_what_is_left_at_once(self):
        process = Process(takes=3600)
        async with process.running():
            send(signal.SIGTERM)
            await anyio.sleep(GRACE + 1)
            send(signal.SIGTERM)

        assert process.ended == {"work": GRACE, "process": GRACE + 1}


class TestUnlessAsked:
    async def test_it_cancels_what_waits_when_the_process_is_asked_to_stop(self):
        stop = Stop(GRACE)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stop.unless_asked, partial(anyio.sleep, 3600))
            await anyio.sleep(5)
            stop.asked.set()

        assert anyio.current_time() == 5

    async def test_it_returns_what_came_to_its_end_before(self):
        stop = Stop(GRACE)

        async def act() -> int:
            await anyio.sleep(5)
            return 7

        assert await stop.unless_asked(act) == 7

    async def test_what_goes_wrong_is_raised_as_it_is(self):
        stop = Stop(GRACE)

        async def act() -> None:
            raise ValueError("odd")

        with pytest.raises(ValueError, match="odd"):
            async with stop.on_signal():
                await stop.unless_asked(act)
