"""Pulse: a loop that turns, one that is late, and one that is stuck."""

from __future__ import annotations

import anyio
import pytest

from hedgerow.serving import loop_latency
from hedgerow.serving.loop_latency import BEAT, SPAN, TOO_LATE, Pulse
from hedgerow.testing.virtual import BACKEND, VirtualClock


@pytest.fixture
def anyio_backend() -> object:
    return BACKEND


pytestmark = pytest.mark.anyio


class Skewed(VirtualClock):
    """A clock that can be found further on than the loop thinks."""

    ahead = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.ahead


class TestPulse:
    async def test_a_loop_that_turns_is_well(self) -> None:
        pulse = Pulse(VirtualClock())
        with anyio.move_on_after(TOO_LATE * 2.5):
            await pulse.beat()

        assert pulse.check() == ""
        assert pulse.note() == "0 ms late"

    async def test_a_late_beat_is_noted(self) -> None:
        clock, heard = Skewed(), list[float]()
        pulse = Pulse(clock, heard.append)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(pulse.beat)
            await anyio.sleep(BEAT / 2)
            clock.ahead = 0.25
            await anyio.sleep(BEAT)
            tasks.cancel_scope.cancel()

        assert heard == [0.25]
        assert pulse.note() == "250 ms late"

    async def test_the_longest_lag_is_told_for_some_minutes(self) -> None:
        clock = Skewed()
        pulse = Pulse(clock)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(pulse.beat)
            await anyio.sleep(BEAT / 2)
            clock.ahead = 0.25
            await anyio.sleep(SPAN)
            assert pulse.longest() == pytest.approx(0.25)
            await anyio.sleep(SPAN * 2)
            assert pulse.longest() < 0.01
            tasks.cancel_scope.cancel()

    async def test_it_beats_as_often_as_is_said_when_it_is_made(self, monkeypatch) -> None:
        """The machine in memory has it beat seldom: on a clock that jumps nothing is ever late."""
        heard = list[float]()
        monkeypatch.setattr(loop_latency, "BEAT", 600.0)
        with anyio.move_on_after(1250):
            await Pulse(VirtualClock(), heard.append).beat()

        assert heard == [0.0, 0.0]

    async def test_a_loop_that_does_not_beat_is_stuck(self) -> None:
        pulse = Pulse(VirtualClock())
        await anyio.sleep(TOO_LATE)
        assert pulse.check() == ""
        await anyio.sleep(1)

        assert pulse.check() == "the event loop has not turned for 31 s"
