"""What daylight saving leaves out of a schedule, and what it shows twice."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from hedgerow.schedule import parse, zone
from hedgerow_tools.schedule.daylight import repeated, skipped

SUMMER = datetime(2026, 3, 29, 1, tzinfo=UTC)
WINTER = datetime(2026, 10, 25, 1, tzinfo=UTC)
HOUR, MINUTE, SECOND = timedelta(hours=1), timedelta(minutes=1), timedelta(seconds=1)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text)


@pytest.mark.parametrize(
    ("instant", "expected"),
    [
        (WINTER - HOUR - SECOND, None), (WINTER - HOUR, "first"), (WINTER - SECOND, "first"),
        (WINTER, "second"), (WINTER + HOUR - SECOND, "second"), (WINTER + HOUR, None),
        (SUMMER - SECOND, None), (SUMMER, None),
    ],
)  # fmt: skip
def test_which_of_two_times_it_is(instant, expected):
    assert repeated(instant.astimezone(zone("Europe/Berlin"))) == expected


class TestSkipped:
    @pytest.mark.parametrize(
        ("place", "expression", "since", "expected"),
        [
            ("America/New_York", "30 2 * * *", "2026-03-07T12:00Z", ["2026-03-08T02:30"]),
            ("America/New_York", "*/20 2 * * *", "2026-03-07T12:00Z",
             ["2026-03-08T02:00", "2026-03-08T02:20", "2026-03-08T02:40"]),
            ("America/New_York", "30 1 * * *", "2026-11-01T05:30Z", []),
            ("America/New_York", "0 9 * * *", "2026-03-08T00:00Z", []),
            ("Africa/Cairo", "0 5 * * 5", "2024-04-25T12:00Z", []),
            ("Africa/Cairo", "0 0 * * 5", "2024-04-25T12:00Z", ["2024-04-26T00:00"]),
            ("Pacific/Apia", "0 6 * * *", "2011-12-29T20:00Z", ["2011-12-30T06:00"]),
            ("America/New_York", "@every 10m", "2026-03-08T06:55Z", []),
        ],
    )  # fmt: skip
    def test_it_is_what_the_wall_clock_left_out_before_the_next_start(
        self, place, expression, since, expected
    ):
        found = parse(expression, zone(place))

        times = skipped(found, at(since), found.after(at(since)), 10)
        assert times == tuple(map(at, expected))

    def test_it_is_no_more_than_asked_for(self):
        found = parse("* 2 * * *", zone("America/New_York"))

        times = skipped(found, at("2026-03-08T06:59Z"), at("2026-03-09T06:00Z"), 2)
        assert times == (at("2026-03-08T02:00"), at("2026-03-08T02:01"))

    @pytest.mark.parametrize("place", ["Pacific/Kiritimati", "Pacific/Pago_Pago"])
    def test_the_ends_of_datetime_are_no_obstacle(self, place):
        found = parse("* * * * *", zone(place))
        first, last = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)

        assert skipped(found, first, first + MINUTE, 10) == ()
        assert skipped(found, last - MINUTE, last, 10) == ()
