"""The machine's clock."""

from __future__ import annotations

from datetime import UTC, timedelta

import anyio
import pytest

from hedgerow.runtime.clock import SystemClock

pytestmark = pytest.mark.anyio


class TestSystemClock:
    async def test_the_wall_clock_is_in_utc(self):
        assert SystemClock().now().tzinfo is UTC
        assert SystemClock().now().utcoffset() == timedelta()

    async def test_the_monotonic_clock_is_the_loops(self):
        before = SystemClock().monotonic()
        await anyio.sleep(5)

        assert SystemClock().monotonic() - before == pytest.approx(5)

    async def test_jitter_is_a_fraction_and_not_always_the_same(self):
        draws = {SystemClock().jitter() for _ in range(50)}

        assert all(0 <= draw < 1 for draw in draws)
        assert len(draws) > 1
