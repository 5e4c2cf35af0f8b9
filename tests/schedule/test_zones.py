"""Time zones: which names there are, whose data they have, and what the search assumes of them."""

from __future__ import annotations

import struct
from datetime import UTC, datetime, timedelta, timezone
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
import tzdata

from hedgerow.schedule import ScheduleError, zone
from hedgerow.schedule.zones import (
    FIRST,
    LAST,
    next_change,
    offset,
    stretches,
    to_datetime,
)  # fmt: skip

DATA = Path(tzdata.__file__).parent
NAMES = (DATA / "zones").read_text().split()
BERLIN = zone("Europe/Berlin")
SUMMER = int(datetime(2026, 3, 29, 1, tzinfo=UTC).timestamp())
WINTER = int(datetime(2026, 10, 25, 1, tzinfo=UTC).timestamp())
HOUR = 3600


class TestNames:
    def test_every_one_of_the_database_is_known(self):
        assert len(NAMES) > 500
        assert [name for name in NAMES if str(zone(name)) not in {name, "UTC"}] == []

    @pytest.mark.parametrize("name", ["UTC", "Etc/UTC"])
    def test_utc_is_pythons(self, name):
        assert zone(name) is UTC

    def test_a_zone_is_loaded_once(self):
        assert zone("Asia/Tokyo") is zone("Asia/Tokyo")

    @pytest.mark.parametrize(
        "name",
        ["../../etc/passwd", "/etc/localtime", "Europe/../UTC", "Europe//Berlin", "Europe/", "",
        " ",
         "A" * 10**6, "A/" * 500 + "A", "U\0TC", "tzdata.zi", "__init__.py", "Europe\\Berlin",
         "UTC\n",
         "\u0395urope/Berlin", "\ud800", "C:UTC", ".", "..", "~root"],
    )  # fmt: skip
    def test_what_cannot_be_a_name_is_refused_before_any_file_is_sought(self, name):
        with pytest.raises(ScheduleError, match="this is no IANA name, such as Europe/Berlin"):
            zone(name)

    @pytest.mark.parametrize(
        "name", ["Mars/Base", "America", "europe/berlin", "leapseconds", "__init__", "localtime"]
    )
    def test_what_is_no_zone_is_said_to_be_none(self, name):
        with pytest.raises(ScheduleError, match=f"time zone '{name}': the IANA database has none"):
            zone(name)

    def test_the_machines_own_is_refused(self):
        with pytest.raises(ScheduleError, match="time zone 'Local': say which"):
            zone("Local")


class TestData:
    def test_they_are_the_packages_even_where_the_machine_has_its_own(self):
        assert isinstance(BERLIN, ZoneInfo)
        assert BERLIN is not ZoneInfo("Europe/Berlin")
        assert version("tzdata") == tzdata.__version__

    def test_no_zone_has_two_changes_within_six_days(self):
        assert min(gap for name in NAMES for gap in gaps(name)) > 6 * 24 * HOUR


def gaps(name: str) -> list[int]:
    """Return the seconds between changes of the offset, read from the file (RFC 8536)."""
    content = (DATA / "zoneinfo" / name).read_bytes()
    *_, leaps, times, types, letters = head(content, 0)
    second = 44 + times * 5 + types * 6 + letters + leaps * 8 + sum(head(content, 0)[:2])
    *_, times, types, letters = head(content, second)
    body = content[second + 44 :]
    moments = struct.unpack_from(f">{times}q", body)
    kinds = body[8 * times : 9 * times]
    offsets = [struct.unpack_from(">l", body, 9 * times + 6 * kind)[0] for kind in kinds]
    changes = [
        moment
        for moment, (before, after) in zip(moments[1:], pairwise(offsets), strict=True)
        if before != after
    ] if times else []  # fmt: skip
    return [later - earlier for earlier, later in pairwise(changes)]


def head(content: bytes, at: int) -> tuple[int, ...]:
    return struct.unpack_from(">6l", content, at + 20)


class TestOffset:
    @pytest.mark.parametrize(
        ("instant", "expected"), [(SUMMER - 1, HOUR), (SUMMER, 2 * HOUR), (WINTER, HOUR)]
    )
    def test_it_is_that_of_the_instant(self, instant, expected):
        assert offset(BERLIN, instant) == expected

    def test_a_fixed_one_is_itself(self):
        assert offset(timezone(timedelta(hours=-3)), 10**15) == -3 * HOUR

    @pytest.mark.parametrize("beyond", [FIRST - 1, FIRST - 10**12, LAST + 1, LAST + 10**12])
    def test_it_is_known_beyond_the_ends_of_datetime(self, beyond):
        assert offset(BERLIN, beyond) in {3208, HOUR, 2 * HOUR}

    def test_a_change_is_found_to_the_second(self):
        assert next_change(BERLIN, SUMMER - 10**6, SUMMER + 10**6) == SUMMER
        assert next_change(BERLIN, SUMMER, SUMMER + 10**8) == WINTER

    def test_without_a_change_there_is_the_horizon(self):
        assert next_change(BERLIN, SUMMER, SUMMER + 10**6) == SUMMER + 10**6
        assert next_change(UTC, SUMMER, SUMMER + 10**9) == SUMMER + 10**9


class TestStretches:
    def test_each_has_one_offset_and_they_follow_each_other(self):
        begin, end = SUMMER - 10**7, WINTER + 10**7
        found = list(stretches(BERLIN, begin, end))
        instants = [(low - ahead, high - ahead) for ahead, low, high in found]

        assert [instants[0][0], instants[-1][1]] == [begin, end]
        assert all(one[1] == after[0] for one, after in pairwise(instants))
        assert {first for first, _ in instants} > {SUMMER, WINTER}
        for ahead, low, high in found:
            assert {offset(BERLIN, low - ahead), offset(BERLIN, high - ahead - 1)} == {ahead}

    def test_there_are_none_where_time_stands_still_or_goes_back(self):
        assert list(stretches(BERLIN, SUMMER, SUMMER)) == []
        assert list(stretches(UTC, SUMMER, SUMMER - 1)) == []


class TestReading:
    def test_there_is_no_datetime_after_the_year_9999(self):
        assert to_datetime(10**15) is None
