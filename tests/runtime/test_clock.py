"""The machine's clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import pytest

from hedgerow.runtime.clock import SystemClock, Wall

pytestmark = pytest.mark.anyio

UPTIME = Path("/proc/uptime")


class TestSystemClock:
    async def test_the_wall_clock_is_in_utc(self):
        assert SystemClock().now().tzinfo is UTC
        assert SystemClock().now().utcoffset() == timedelta()

    async def test_elapsed_time_is_not_the_loops(self):
        before = SystemClock().elapsed()
        await anyio.sleep(500)

        assert 0 <= SystemClock().elapsed() - before < 400


@pytest.mark.skipif(not UPTIME.exists(), reason="only Linux tells how long it has been up")
def test_elapsed_time_is_that_since_the_machine_was_started() -> None:
    up = float(UPTIME.read_text("utf-8").split()[0])

    assert SystemClock().elapsed() == pytest.approx(up, abs=60)


class Ticking:
    """A clock whose two times are set by hand."""

    def __init__(self) -> None:
        self.wall, self.loop = datetime(2026, 1, 1, tzinfo=UTC), 100.0

    def now(self) -> datetime:
        return self.wall

    def monotonic(self) -> float:
        return self.loop

    def jitter(self) -> float:
        return 0.5


class TestWall:
    @pytest.mark.parametrize(
        ("wall", "loop", "jumped"),
        [
            (10, 10, False),
            (10.9, 10, False),
            (3600, 10, True),
            (-50, 10, True),
            (3600, 3600, False),
        ],
    )
    async def test_it_jumps_when_it_goes_otherwise_than_time_passes(self, wall, loop, jumped):
        clock = Ticking()
        watched = Wall(clock)
        clock.wall += timedelta(seconds=wall)
        clock.loop += loop

        assert watched.jumped() is jumped
        assert watched.jumped() is False
