"""A schedule with its zone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from hedgerow.schedule import ScheduleError, schedule_problems, timetable

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def at(minute: float) -> datetime:
    """An instant so many minutes after noon."""
    return NOON + timedelta(minutes=minute)


class TestTimetable:
    def test_without_a_zone_it_is_utc(self):
        assert timetable("0 9 * * *", None, None).after(NOON) == NOON + timedelta(hours=21)

    def test_with_a_zone_it_is_the_time_there(self):
        found = timetable("0 9 * * *", "Asia/Seoul", None).after(NOON)

        assert found == datetime(2026, 1, 2, tzinfo=UTC)

    @pytest.mark.parametrize("prefix", ["TZ=Asia/Seoul", "CRON_TZ=Asia/Seoul"])
    def test_a_prefix_says_it_as_well(self, prefix):
        found = timetable(f"{prefix} 0 9 * * *", None, None).after(NOON)

        assert found == datetime(2026, 1, 2, tzinfo=UTC)

    @pytest.mark.parametrize("zone", ["Mars/Olympus", "Local", "../etc/passwd", "KST"])
    def test_a_zone_that_is_none_is_refused(self, zone):
        with pytest.raises(ScheduleError, match="time zone"):
            timetable("0 9 * * *", zone, None)

    @pytest.mark.parametrize(
        ("expression", "zone", "expected"),
        [
            ("@daily", "UTC", []),
            ("@daily", None, []),
            ("61 * * * *", None, [("schedule", "minute")]),
            ("@daily", "Mars", [("timeZone", "time zone")]),
            ("61 * * * *", "Mars", [("schedule", "minute"), ("timeZone", "time zone")]),
            ("TZ=Mars 61 * * * *", None, [("schedule", "time zone"), ("schedule", "minute")]),
            ("TZ=Mars", None, [("schedule", "schedule")]),
            ("TZ=UTC @daily", "UTC", [("timeZone", "timeZone")]),
        ],
    )
    def test_every_fault_is_found_and_says_which_field_has_to_change(
        self, expression, zone, expected
    ):
        found = schedule_problems(expression, zone)

        assert [(fault.field, fault.error.field) for fault in found] == expected

    def test_every_is_anchored(self):
        found = timetable("@every 7m", None, NOON - timedelta(minutes=1))

        assert found.after(NOON) == at(6)
        assert found.after(at(5.9)) == at(6)
        assert found.after(at(6)) == at(13)
