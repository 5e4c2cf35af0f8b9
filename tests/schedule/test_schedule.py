"""Schedules: their starts around daylight saving, and how many were missed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hedgerow.schedule import Missed, parse, schedule, zone, zones

MINUTE = timedelta(minutes=1)
ZONES = [
    "UTC", "America/New_York", "Europe/London", "Europe/Berlin", "America/Sao_Paulo", "Asia/Tehran",
    "Australia/Lord_Howe", "Pacific/Apia", "Antarctica/Troll", "Africa/Cairo", "Asia/Beirut",
    "America/Havana", "Asia/Amman", "Atlantic/Azores", "America/St_Johns", "Africa/Casablanca",
    "Antarctica/Casey", "Asia/Gaza", "Africa/Monrovia",
]  # fmt: skip
EXPRESSIONS = [
    "* * * * *", "*/15 * * * *", "7 * * * *", "0 0 * * *", "30 0 * * *", "15 0 * * *",
    "30 2 * * *", "15 5 * * *", "30 23 * * *", "0 */2 * * *", "15 0 * * 1", "0 0 * * 5",
    "30 1 * * *", "30 0-3 * * *", "0 0 1 * *", "59 23 31 12 *", "0 0 29 2 *", "0 0 30 2 *",
    "0 12 13 * 5", "0 0 */2 * 1", ", * * * *", "@every 1h", "@every 1s", "@every 7m13s",
    "@every 2000h",
]  # fmt: skip

schedules = st.builds(
    lambda text, place: parse(text, zone(place)),
    st.sampled_from(EXPRESSIONS),
    st.sampled_from(ZONES),
)
instants = st.datetimes(
    datetime(1965, 1, 1), datetime(2045, 1, 1), timezones=st.just(UTC)  # noqa: DTZ001 - the zone is UTC
)  # fmt: skip


def at(text: str) -> datetime:
    return datetime.fromisoformat(text)


def walked(found: schedule.Schedule, since: datetime, until: datetime, most: int) -> list[datetime]:
    """Return the starts in (since, until], one by one, as far as there are not too many."""
    starts: list[datetime] = []
    start = found.after(since)
    while start is not None and start <= until and len(starts) < most:
        starts.append(start)
        start = found.after(start)
    return starts


CHANGES = [
    ("skipped in New York", "America/New_York", "30 2 * * *", "2026-03-07T12:00Z",
     ["2026-03-09T02:30-04:00"]),
    ("repeated in New York", "America/New_York", "30 1 * * *", "2026-10-31T12:00Z",
     ["2026-11-01T01:30-04:00", "2026-11-01T01:30-05:00", "2026-11-02T01:30-05:00"]),
    ("asked between the two in New York", "America/New_York", "30 1 * * *", "2026-11-01T05:45Z",
     ["2026-11-01T01:30-05:00"]),
    ("skipped in London", "Europe/London", "15 1 * * *", "2026-03-28T12:00Z",
     ["2026-03-30T01:15+01:00"]),
    ("hourly across London's hour", "Europe/London", "0 * * * *", "2026-03-29T00:00Z",
     ["2026-03-29T02:00+01:00", "2026-03-29T03:00+01:00"]),
    ("hourly across Berlin's repeated hour", "Europe/Berlin", "0 * * * *", "2026-10-25T00:00Z",
     ["2026-10-25T02:00+01:00", "2026-10-25T03:00+01:00"]),
    ("midnight does not exist in Sao Paulo", "America/Sao_Paulo", "0 0 * * *", "2018-11-03T12:00Z",
     ["2018-11-05T00:00-02:00"]),
    ("half an hour is skipped on Lord Howe: robfig skips the next day", "Australia/Lord_Howe",
     "15 0 * * *", "2026-10-03T12:00Z",
     ["2026-10-04T00:15+10:30", "2026-10-05T00:15+11:00", "2026-10-06T00:15+11:00"]),
    ("midnight does not exist in Cairo: robfig skips the Friday", "Africa/Cairo", "0 5 * * 5",
     "2024-04-25T12:00Z", ["2024-04-26T05:00+03:00", "2024-05-03T05:00+03:00"]),
    ("a day does not exist in Apia", "Pacific/Apia", "0 6 * * *", "2011-12-29T20:00Z",
     ["2011-12-31T06:00+14:00"]),
    ("robfig would never return in Apia", "Pacific/Apia", "0 0 * * 0", "2011-12-29T12:00Z",
     ["2012-01-01T00:00+14:00", "2012-01-08T00:00+14:00"]),
    ("two hours are skipped at Troll", "Antarctica/Troll", "30 2 * * *", "2026-03-28T12:00Z",
     ["2026-03-30T02:30+02:00"]),
    ("robfig stands still at St. John's", "America/St_Johns", "30 0 * * *", "2010-11-07T02:40Z",
     ["2010-11-07T00:30-03:30", "2010-11-08T00:30-03:30"]),
    ("local mean time ends, at an odd second", "Europe/Berlin", "10 0 * * *", "1893-03-31T20:00Z",
     ["1893-04-01T00:10+01:00"]),
]  # fmt: skip


class TestDaylightSaving:
    @pytest.mark.parametrize(
        ("place", "expression", "asked", "expected"),
        [record[1:] for record in CHANGES],
        ids=[record[0] for record in CHANGES],
    )  # fmt: skip
    def test_the_starts_are(self, place, expression, asked, expected):
        found = parse(expression, zone(place))
        start = at(asked)
        for wanted in expected:
            start = found.after(start)
            assert (start, start.tzinfo) == (at(wanted), UTC)

    def test_a_change_at_an_odd_second_is_crossed_second_by_second(self):
        found = parse("* * * * *", zone("Europe/Berlin"))

        assert found.after(at("1893-03-31T23:06:20Z")) == at("1893-03-31T23:07Z")

    @pytest.mark.parametrize(
        "instant",
        [
            at("2026-11-01T01:45-04:00"),
            datetime(2026, 11, 1, 1, 45, tzinfo=zone("America/New_York")),
            datetime(2026, 11, 1, 5, 45, tzinfo=UTC),
        ],
    )
    def test_an_instant_means_the_same_in_any_zone(self, instant):
        found = parse("30 1 * * *", zone("America/New_York"))

        assert found.after(instant) == at("2026-11-01T06:30Z")

    def test_the_second_of_a_repeated_hour_is_pythons_fold(self):
        found = parse("30 1 * * *", zone("America/New_York"))
        instant = datetime(2026, 11, 1, 1, 45, fold=1, tzinfo=zone("America/New_York"))

        assert found.after(instant) == at("2026-11-02T06:30Z")


class TestAfter:
    @given(schedules, instants)
    def test_it_is_later_and_grows_from_start_to_start(self, found, instant):
        starts = walked(found, instant, datetime.max.replace(tzinfo=UTC), 5)

        assert [instant, *starts] == sorted({instant, *starts})

    @given(schedules, instants)
    def test_a_start_is_on_the_second(self, found, instant):
        start = found.after(instant)

        assert start is None or start.microsecond == 0

    def test_a_naive_instant_is_refused(self):
        with pytest.raises(ValueError, match="2026-01-01T00:00:00 has no time zone"):
            parse("* * * * *").after(datetime(2026, 1, 1))  # noqa: DTZ001 - that is the case

    @pytest.mark.parametrize("place", ["UTC", "Pacific/Kiritimati", "Pacific/Pago_Pago"])
    @pytest.mark.parametrize(
        "text", ["* * * * *", "0 0 1 1 *", "0 0 29 2 *", "@every 2540400h", "0 0 30 2 *"]
    )
    def test_the_ends_of_datetime_are_no_obstacle(self, text, place):
        found = parse(text, zone(place))
        first, last = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)

        assert (found.after(first) is None) == (text == "0 0 30 2 *")
        assert found.after(last) is None
        assert found.after(first.astimezone(timezone(timedelta(hours=14)))) == found.after(first)
        assert found.missed(last - timedelta(hours=1), last).count in {0, 60}

    def test_leap_days_eight_years_apart_are_never(self):
        found = parse("0 0 29 2 *")

        assert found.after(at("2096-02-29T00:00Z")) is None
        assert found.after(at("2098-12-31T23:59:58Z")) is None
        assert found.after(at("2098-12-31T23:59:59Z")) == at("2104-02-29T00:00Z")


class TestEvery:
    ANCHOR = at("2026-01-01T00:00:07Z")

    def test_without_an_anchor_it_is_a_distance_from_the_second_asked_for(self):
        assert parse("@every 1h").after(at("2026-01-01T00:10:20.9Z")) == at("2026-01-01T01:10:20Z")

    @given(st.integers(1, 10**7), instants)
    @example(3600, ANCHOR)
    @example(3600, ANCHOR - timedelta(microseconds=1))
    def test_with_an_anchor_it_is_the_next_multiple_from_it(self, seconds, instant):
        distance = timedelta(seconds=seconds)
        start = parse(f"@every {seconds}s", anchor=self.ANCHOR).after(instant)

        assert instant < start <= instant + distance
        assert (start - self.ANCHOR) % distance == timedelta(0)

    def test_an_anchor_counts_by_the_whole_second(self):
        found = parse("@every 1m", anchor=self.ANCHOR + timedelta(microseconds=999_999))

        assert found.after(self.ANCHOR) == self.ANCHOR + MINUTE

    def test_a_naive_anchor_is_refused(self):
        with pytest.raises(ValueError, match="has no time zone"):
            parse("@every 1m", anchor=datetime(2026, 1, 1))  # noqa: DTZ001 - that is the case

    def test_an_anchor_means_nothing_to_other_schedules(self):
        assert parse("0 * * * *", anchor=self.ANCHOR).after(self.ANCHOR) == at("2026-01-01T01:00Z")

    def test_daylight_saving_means_nothing_to_it(self):
        found = parse("@every 24h", zone("Europe/Berlin"), at("2026-03-28T12:00+01:00"))

        assert found.after(at("2026-03-28T13:00+01:00")) == at("2026-03-29T13:00+02:00")


class TestMissed:
    @given(schedules, instants, st.timedeltas(timedelta(days=-1), timedelta(days=8000)))
    def test_it_is_what_walking_finds(self, found, since, time):
        starts = walked(found, since, since + time, 60)
        until = starts[-1] if len(starts) == 60 else since + time

        assert found.missed(since, until) == Missed(len(starts), starts[-1] if starts else None)

    @pytest.mark.parametrize("place", ZONES)
    @pytest.mark.parametrize("text", ["30 */12 * * *", "0 0 * * 5"])
    def test_it_is_what_walking_finds_over_a_year(self, text, place):
        found = parse(text, zone(place))
        since, until = at("2023-12-31T23:00Z"), at("2025-01-01T00:30Z")
        starts = walked(found, since, until, 20_000)

        assert found.missed(since, until) == Missed(len(starts), starts[-1])

    @pytest.mark.parametrize("text", ["*/20 * * * *", "0 0 * * *", "59 23 * * 6"])
    @pytest.mark.parametrize(
        ("place", "change"),
        [("Asia/Amman", "2021-10-28T22:00Z"), ("America/St_Johns", "2010-11-07T02:31Z"),
         ("Pacific/Apia", "2011-12-30T10:00Z"), ("Antarctica/Troll", "2026-10-25T01:00Z")],
    )  # fmt: skip
    def test_it_is_what_walking_finds_up_to_any_minute_near_a_change(self, text, place, change):
        found = parse(text, zone(place))
        since = at(change) - timedelta(days=2)
        starts = walked(found, since, at(change) + timedelta(days=4), 1000)

        for hour in range(36, 96):
            until = since + timedelta(hours=hour, minutes=1)
            passed = [start for start in starts if start <= until]
            assert found.missed(since, until).count == len(passed)

    def test_since_is_excluded_and_until_included(self):
        found = parse("0 * * * *")

        missed = found.missed(at("2026-01-01T00:00Z"), at("2026-01-01T03:00Z"))
        assert missed == Missed(3, at("2026-01-01T03:00Z"))

    def test_there_are_none_where_time_stands_still_or_goes_back(self):
        found = parse("* * * * *")

        assert found.missed(at("2026-01-01T00:00Z"), at("2026-01-01T00:00Z")) == Missed(0, None)
        assert found.missed(at("2026-01-02T00:00Z"), at("2026-01-01T00:00Z")) == Missed(0, None)

    def test_every_second_of_many_years_is_a_division(self):
        missed = parse("@every 1s").missed(at("2000-01-01T00:00Z"), at("2026-01-01T00:00:00.5Z"))

        assert missed == Missed(820_540_800, at("2026-01-01T00:00Z"))

    def test_every_minute_of_years_is_counted_by_the_day(self, monkeypatch):
        looks = []
        look = zones.offset
        monkeypatch.setattr(zones, "offset", lambda *asked: looks.append(asked) or look(*asked))
        found = parse("* * * * *", zone("America/New_York"))

        missed = found.missed(at("2006-01-01T05:00Z"), at("2026-01-01T05:00Z"))

        assert missed == Missed(20 * 525_600 + 5 * 1440, at("2026-01-01T05:00Z"))
        assert len(looks) < 20 * 366

    def test_a_gap_of_more_than_five_years_does_not_end_it(self):
        found = parse("0 0 29 2 *")

        missed = found.missed(at("2090-01-01T00:00Z"), at("2110-01-01T00:00Z"))
        assert missed == Missed(4, at("2108-02-29T00:00Z"))

    def test_a_day_that_the_fields_do_not_match_has_none_where_its_midnight_does_not_exist(self):
        found = parse("0 5 * * 6", zone("America/Sao_Paulo"))

        missed = found.missed(at("2018-11-03T06:00-03:00"), at("2018-11-05T00:00-02:00"))
        assert missed == Missed(0, None)


class TestHas:
    @given(schedules, instants)
    @example(parse("0 0 * * *", zone("America/Havana")), at("2026-03-08T00:00Z"))
    @example(parse("15 0 * * *", zone("Australia/Lord_Howe")), at("2026-10-04T00:00Z"))
    def test_there_is_a_start_where_the_one_after_the_second_before_is(self, found, instant):
        begin = instant.replace(second=0, microsecond=0)
        near = [begin, *walked(found, begin, begin + timedelta(days=3), 5)]
        for time in (*near, *(time + MINUTE for time in near)):
            assert found.has(time) == (found.after(time - timedelta(seconds=1)) == time)

    @pytest.mark.parametrize(("place", "expression", "asked"), [record[1:4] for record in CHANGES])
    def test_around_a_change_too(self, place, expression, asked):
        found = parse(expression, zone(place))
        begin = at(asked)
        for quarter in range(4 * 72):
            time = begin + quarter * timedelta(minutes=15)
            assert found.has(time) == (found.after(time - timedelta(seconds=1)) == time)

    def test_nothing_is_searched_for(self, monkeypatch):
        monkeypatch.setattr(zones, "stretches", lambda *_: pytest.fail("searched"))
        found = parse("0 0 29 2 *", zone("America/New_York"))

        assert found.has(at("2028-02-29T00:00-05:00"))
        assert not found.has(at("2027-01-15T00:00-05:00"))

    def test_of_a_distance_it_is_a_whole_number_of_it_from_the_anchor(self):
        found = parse("@every 7m", anchor=at("2026-01-01T12:00Z"))

        assert found.has(at("2026-01-01T12:21Z"))
        assert not found.has(at("2026-01-01T12:22Z"))
