"""CronJob: its starts on both sides of daylight saving, and those of `@every`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from controllers.crons import Object, composed, cronjob, started, wire


@dataclass(frozen=True)
class Days:
    """A schedule in a zone, and all its starts (UTC, month-day hour:minute) in some days."""

    reason: str
    schedule: str
    zone: str | None
    first: str
    last: str
    starts: tuple[str, ...]

    def __str__(self) -> str:
        return self.reason


# Each change of each zone stands in schedule/test_clocks.py.
DAYS = (
    Days("New York, skipped", "30 2 * * *", "America/New_York", "03-07", "03-10",
         ("03-07 07:30", "03-09 06:30")),
    Days("New York, repeated", "30 1 * * *", "America/New_York", "10-31", "11-03",
         ("10-31 05:30", "11-01 05:30", "11-01 06:30", "11-02 06:30")),
    Days("a zone in the schedule", "TZ=Europe/Berlin 30 2 * * *", None, "03-28", "03-31",
         ("03-28 01:30", "03-30 00:30")),
)  # fmt: skip


def day(text: str) -> datetime:
    return datetime.fromisoformat(f"2026-{text}T00:00:00+00:00")


def lived(spec: Object, begin: datetime, end: datetime, late: float = 0.0) -> list[str]:
    """Return the seconds of all starts, the operator waking as asked and so many seconds late."""
    made: list[str] = []
    status: Object = {}
    now = begin
    while True:
        desired = composed(cronjob(status, created=begin, **spec), now)
        for name in started(desired):
            made.append(name.rpartition("-")[2])
            moment = datetime.fromtimestamp(int(made[-1]), UTC)
            status = {"lastScheduleTime": wire(moment)}
        now += desired.requeue_after + timedelta(seconds=late)
        if now >= end:
            return made


class TestDaylightSaving:
    @pytest.mark.parametrize("deadline", [None, 3600])
    @pytest.mark.parametrize("case", DAYS, ids=str)
    def test_a_start_that_is_skipped_does_not_run_and_one_that_is_repeated_runs_twice(
        self, case, deadline
    ):
        spec = {
            "schedule": case.schedule,
            "timeZone": case.zone,
            "startingDeadlineSeconds": deadline,
        }
        made = lived(spec, day(case.first) - timedelta(seconds=1), day(case.last))

        shown = [datetime.fromtimestamp(int(second), UTC) for second in made]
        assert [moment.strftime("%m-%d %H:%M") for moment in shown] == list(case.starts)

    @pytest.mark.parametrize("deadline", [None, 3600])
    def test_the_deadline_does_not_change_what_is_a_start(self, deadline):
        spec = {"schedule": "30 4 * * 5", "timeZone": "Africa/Cairo"}
        cj = cronjob(created=day("04-01"), **spec, startingDeadlineSeconds=deadline)
        desired = composed(cj, day("04-24") + timedelta(hours=1, minutes=30))

        assert started(desired) == [f"demo-{int(day('04-24').timestamp()) + 5400}"]

    def test_what_was_missed_while_clocks_changed_is_one_start(self):
        spec = {"schedule": "30 1 * * *", "timeZone": "America/New_York"}
        cj = cronjob(created=day("10-31"), **spec)
        desired = composed(cj, day("11-02"))

        assert started(desired) == [f"demo-{int(day('11-01').timestamp()) + 6 * 3600 + 1800}"]


class TestEvery:
    BEGIN = datetime(2026, 3, 28, 12, 0, 20, tzinfo=UTC)

    @pytest.mark.parametrize("late", [0, 0.3, 7, 44])
    def test_its_starts_are_counted_from_the_creation_and_do_not_drift(self, late):
        end = self.BEGIN + timedelta(hours=2)
        made = lived({"schedule": "@every 90s"}, self.BEGIN, end, late)

        origin = int(self.BEGIN.timestamp())
        assert [int(second) - origin for second in made] == list(range(90, 7200, 90))

    def test_one_that_was_missed_is_made_under_its_own_time(self):
        cj = cronjob(created=self.BEGIN, schedule="@every 1h")
        desired = composed(cj, self.BEGIN + timedelta(hours=3, minutes=10))

        assert started(desired) == [f"demo-{int(self.BEGIN.timestamp()) + 3 * 3600}"]
        assert desired.requeue_after == timedelta(minutes=50)

    def test_without_a_creation_time_nothing_was_missed(self):
        desired = composed(cronjob(created=None, schedule="@every 1h"), self.BEGIN)

        assert started(desired) == []
        assert desired.requeue_after == timedelta(hours=1)
