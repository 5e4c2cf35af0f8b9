"""The API server's clock, as the `Date` of its answers tells it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from hedgerow.kube.server_clock import ServerClock

DATE = "Sat, 28 Nov 2026 12:05:42 GMT"


class Elapsed:
    """Seconds since something, set by hand."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


def heard(date: str) -> tuple[ServerClock, Elapsed]:
    elapsed = Elapsed()
    clock = ServerClock(elapsed)
    clock.hear(date)
    return clock, elapsed


class TestServerClock:
    def test_it_is_that_of_the_latest_answer_and_goes_on(self):
        clock, elapsed = heard(DATE)
        elapsed.seconds += 90.5

        assert clock.now() == datetime(2026, 11, 28, 12, 7, 12, 500_000, tzinfo=UTC)
        clock.hear("Sat, 28 Nov 2026 12:07:13 GMT")
        assert clock.now() == datetime(2026, 11, 28, 12, 7, 13, tzinfo=UTC)

    @pytest.mark.parametrize(
        "date",
        ["", "soon", "Sat, 31 Feb 2026 12:05:42 GMT", "Sat, 28 Nov 9999 12:05:42 GMT", "9" * 99,
         "Sat, 28 Nov 2026 12:05:42", "Sat, 28 Nov 2026 12:05:42 -0000"],
    )  # fmt: skip
    def test_it_is_not_known_where_no_date_can_be_read(self, date):
        assert heard(date)[0].now() is None

    def test_before_any_answer_it_is_not_known(self):
        assert ServerClock(Elapsed()).now() is None
