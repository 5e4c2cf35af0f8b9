"""Every change of a zone's clocks: the starts around it, and from wherever one looks for them."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from hedgerow.schedule import Missed, parse, zone
from hedgerow_tools.schedule.daylight import skipped
from schedule.clocks import (
    NAMES,
    admits,
    changes,
    distinct,
    offset,
    walls,
)

HOUR, DAY = 3600, 86_400
BEFORE, AFTER = 30 * HOUR, 48 * HOUR
"""How long before and after a change to look: a whole day of the zone on either side."""
ALWAYS = ("*/15 * * * *", "0 0 * * *", "0 */6 * * *", "0 0 * * 1-5", "30 4 */2 * 1")


def second(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


YEARS = (second("2027-01-01"), second("2029-01-01"))


@dataclass(frozen=True)
class Change:
    """A change of a zone's clocks: at most six hours before `found`, in seconds since 1970."""

    place: str
    found: int

    def __str__(self) -> str:
        return f"{self.place} {datetime.fromtimestamp(self.found, UTC):%Y-%m-%d}"

    def expressions(self) -> list[str]:
        """Return schedules of the days and the hours around it."""
        there_are = list(ALWAYS)
        for instant in (self.found - 6 * HOUR, self.found, self.found + 6 * HOUR):
            wall = datetime.fromtimestamp(instant + offset(self.place, instant), UTC)
            day = wall.isoweekday() % 7
            there_are += [
                f"30 4 * * {day}",
                f"15,45 0-3,22-23 {wall.day} {wall.month} *",
                f"0 12 {wall.day} * *",
            ]
        return list(dict.fromkeys(there_are))


def recent() -> list[Change]:
    """Return the changes of 2027 and 2028 in all zones; of those that change alike, in one."""
    kinds: dict[object, Change] = {}
    for place in distinct():
        for at, before, after in changes(place, *YEARS):
            kinds.setdefault((at, before, after), Change(place, at))
    return list(kinds.values())


RECENT = recent()
MEMORABLE = [
    Change("Pacific/Apia", second("2011-12-30 10:00")),  # a day does not exist
    Change("Pacific/Kwajalein", second("1993-08-21 12:00")),  # nor here
    Change("Pacific/Kiritimati", second("1995-01-01 00:00")),  # nor here, the first of a year
    Change("Asia/Manila", second("1844-12-31 16:00")),  # nor here, of local mean time
    Change("America/Juneau", second("1867-10-19 00:00")),  # one that exists twice
    Change("America/Sao_Paulo", second("2018-11-04 06:00")),
    Change("America/St_Johns", second("2010-03-14 06:00")),  # clocks change at 00:01
    Change("America/St_Johns", second("2010-11-07 06:00")),
    Change("America/Scoresbysund", second("2024-03-31 06:00")),  # with another zone at once
    Change("Asia/Gaza", second("2011-08-30 00:00")),  # twice within a month
    Change("Asia/Pyongyang", second("2018-05-04 18:00")),
    Change("Asia/Beirut", second("2023-03-30 00:00")),
    Change("Antarctica/Casey", second("2023-03-08 18:00")),  # by three hours
    Change("Antarctica/Troll", second("2026-03-29 06:00")),  # by two
    Change("Europe/Berlin", second("1893-04-01 00:00")),  # by 394 seconds
]  # fmt: skip


class TestZones:
    def test_those_whose_midnight_is_skipped_are_among_them(self):
        named = {"Africa/Cairo", "Asia/Beirut", "America/Santiago", "America/Havana"}
        for place in named | {"Atlantic/Azores"}:
            assert place in NAMES
            found = changes(place, *YEARS)
            assert any(after > before and _skips_midnight(place, at) for at, before, after in found)
        assert len(RECENT) > 100


def _skips_midnight(place: str, found: int) -> bool:
    shown = [wall for _, wall in walls(place, found - 12 * HOUR, found + 12 * HOUR)]
    days = {wall.date() for wall in shown[1:]} - {shown[0].date()}
    return any((day, 0, 0) not in {(w.date(), w.hour, w.minute) for w in shown} for day in days)


@pytest.mark.untraced
class TestStarts:
    @pytest.mark.parametrize("change", [*RECENT, *MEMORABLE], ids=str)
    def test_they_are_when_the_clocks_show_them_from_wherever_one_looks(self, change):
        begin, end = change.found - BEFORE, change.found + AFTER
        shown = walls(change.place, begin, end)
        for expression in change.expressions():
            schedule = parse(expression, zone(change.place))
            starts = [instant for instant, wall in shown if admits(expression, wall)]

            assert schedule.count(begin, end) == (len(starts), starts[-1] if starts else None)
            for at in range(begin, end, 2 * HOUR + 7 * 60):
                index = bisect_right(starts, at)
                if index < len(starts):
                    assert schedule.next(at) == starts[index]
                if index:
                    latest = schedule.before(datetime.fromtimestamp(at, UTC))
                    assert latest == datetime.fromtimestamp(starts[index - 1], UTC)
                passed = starts[index - 1] if index else None
                assert schedule.count(begin, at) == (index, passed)
            for start in starts[:20]:
                assert schedule.starts_at(start)
                assert not schedule.starts_at(start + 1)

    @pytest.mark.parametrize("change", [*RECENT[::7], *MEMORABLE], ids=str)
    def test_what_is_skipped_is_what_they_never_show(self, change):
        begin, end = change.found - BEFORE, change.found + AFTER
        shown = walls(change.place, begin, end)
        gaps = [
            minute
            for (_, one), (_, after) in pairwise(shown)
            for minute in _between(one.replace(tzinfo=None), after.replace(tzinfo=None))
        ]
        for expression in change.expressions():
            expected = [minute for minute in gaps if admits(expression, minute)]
            ends = (datetime.fromtimestamp(each, UTC) for each in (begin, end))
            left_out = skipped(parse(expression, zone(change.place)), *ends, limit=2000)

            assert list(left_out) == expected


def _between(one: datetime, after: datetime) -> list[datetime]:
    """Return the full minutes between two times on a wall without a zone."""
    minute, found = one + timedelta(minutes=1), []
    while minute < after:
        found.append(minute)
        minute += timedelta(minutes=1)
    return found


@dataclass(frozen=True)
class Reported:
    """A schedule in a zone, and its starts from a day on, by the clocks there."""

    place: str
    expression: str
    since: str
    starts: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.expression} in {self.place}"


MIDNIGHTS = [
    Reported("Africa/Cairo", "30 4 * * 4", "2026-04-22", ("04-23 04:30", "04-30 04:30")),
    Reported("Africa/Cairo", "30 4 * * 5", "2026-04-22", ("04-24 04:30", "05-01 04:30")),
    Reported("Africa/Cairo", "0 0 * * 5", "2026-04-22", ("05-01 00:00",)),
    Reported("Africa/Cairo", "30 23 * * 4", "2026-10-28", ("10-29 23:30", "10-29 23:30")),
    Reported("Asia/Beirut", "0 6 * * 0", "2026-03-27", ("03-29 06:00", "04-05 06:00")),
    Reported("America/Santiago", "0 12 * * 6", "2026-09-04", ("09-05 12:00", "09-12 12:00")),
    Reported("America/Santiago", "0 12 * * 0", "2026-09-04", ("09-06 12:00", "09-13 12:00")),
    Reported("America/Havana", "0 12 8 3 *", "2026-03-06", ("03-08 12:00",)),
    Reported("Atlantic/Azores", "30 4 29 * *", "2026-03-27", ("03-29 04:30", "04-29 04:30")),
    Reported("Australia/Lord_Howe", "0 8 * * *", "2026-04-04",
             ("04-04 08:00", "04-05 08:00", "04-06 08:00")),
    Reported("Australia/Lord_Howe", "15 0 * * *", "2026-10-03",
             ("10-03 00:15", "10-04 00:15", "10-05 00:15")),
    Reported("Pacific/Apia", "0 6 * * 5", "2011-12-22", ("12-23 06:00", "01-06 06:00")),
    Reported("Pacific/Apia", "0 6 * * *", "2011-12-29", ("12-29 06:00", "12-31 06:00")),
]  # fmt: skip


class TestMidnight:
    @pytest.mark.parametrize("case", MIDNIGHTS, ids=str)
    def test_whatever_it_does_a_time_that_exists_on_a_matching_day_is_a_start(self, case):
        place = zone(case.place)
        schedule = parse(case.expression, place)
        at = datetime.fromisoformat(case.since).replace(tzinfo=place)
        found = []
        for _ in case.starts:
            at = schedule.after(at)
            found.append(at)
        shown = [start.astimezone(place).strftime("%m-%d %H:%M") for start in found]

        assert shown == list(case.starts)
        begin = datetime.fromisoformat(case.since).replace(tzinfo=place)
        assert schedule.missed(begin, found[-1]) == Missed(len(found), found[-1])
