"""Pulse: a loop that turns, one that is late, and one that is stuck."""

from __future__ import annotations

import anyio
import pytest

from hedgerow.serving.loop_latency import BEAT, TOO_LATE, Pulse
from hedgerow_testing.virtual import BACKEND, VirtualClock


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
        heard = list[float]()
        pulse = Pulse(VirtualClock(), heard.append)
        with anyio.move_on_after(TOO_LATE * 2.5):
            await pulse.beat()

        assert pulse.check() == ""
        assert set(heard) == {0.0}

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

    async def test_a_loop_that_does_not_beat_is_stuck(self) -> None:
        pulse = Pulse(VirtualClock())
        await anyio.sleep(TOO_LATE)
        assert pulse.check() == ""
        await anyio.sleep(1)

        assert pulse.check() == "the event loop has not turned for 31 s"
