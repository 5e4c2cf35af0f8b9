from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow import schedule as cron
from hedgerow.controllers.cronjob.missed import (
    MissedStarts,
    missed_starts,
    passed_over,
)
from hedgerow.controllers.cronjob.starts import LONGEST_LOOK_BACK

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def at(minute: float) -> datetime:
    """An instant so many minutes after noon."""
    return NOON + timedelta(minutes=minute)


def seconds(count: float) -> datetime:
    return NOON + timedelta(seconds=count)


@dataclass(frozen=True)
class Case:
    """A look at the schedule of every minute: since, deadline, now, and what is found."""

    reason: str
    since: datetime
    deadline: int | None
    now: datetime
    due: datetime | None
    late: datetime | None = None
    missed: int = 0

    def __str__(self) -> str:
        return self.reason


CASES = (
    Case("nothing is due yet", NOON, None, seconds(59.999), None),
    Case("due at the very second", NOON, None, at(1), at(1), missed=1),
    Case("due a moment later", NOON, None, seconds(60.001), at(1), missed=1),
    Case("the start that was made is not due again", at(1), None, at(1), None),
    Case("of several only the newest is due", NOON, None, at(7.5), at(7), missed=7),
    Case("created in the second of a start", NOON, None, NOON, None),
    Case("a clock that went back", at(9), None, at(3), None),
    Case("a fraction in since is no start", seconds(0.5), None, seconds(60), at(1), missed=1),
    Case("a hundred are not too many", NOON, None, at(100), at(100), missed=100),
    Case("in time", NOON, 10, seconds(69), at(1), missed=1),
    Case("in time by less than a second", NOON, 10, seconds(69.999), at(1), missed=1),
    Case("late by the second, as the original", NOON, 10, seconds(70), None, at(1), 1),
    Case("late", NOON, 10, seconds(95), None, at(1), 1),
    Case("late ones count as missed", NOON, 10, seconds(420 + 30), None, at(7), 7),
    Case("the newest is in time", NOON, 10, seconds(425), at(7), missed=7),
    Case("a deadline of nothing is always late", NOON, 0, at(1), None, at(1), 1),
    Case("a deadline that reaches further back than since", at(3), 600, at(4), at(4), missed=1),
    Case("a deadline that reaches just as far", NOON, 60, at(1), at(1), missed=1),
    Case("a deadline spares the count", NOON, 6000, at(200), at(200), missed=200),
)


class TestMissedStarts:
    @pytest.mark.parametrize("case", CASES, ids=str)
    def test_only_the_newest_missed_start_within_its_deadline_is_due(self, case):
        found = missed_starts(cron.parse("* * * * *"), case.since, case.deadline, case.now)

        upcoming = max(case.since, case.now).replace(second=0, microsecond=0) + timedelta(minutes=1)
        assert found == MissedStarts(case.due, case.late, upcoming, case.missed, too_many=False)

    @pytest.mark.parametrize("deadline", [None, 100_000, 6060])
    def test_more_than_a_hundred_within_the_deadline_are_too_many(self, deadline):
        found = missed_starts(cron.parse("* * * * *"), NOON, deadline, at(101))

        assert found == MissedStarts(at(101), None, at(102), 101, too_many=True)

    def test_a_schedule_that_never_comes_has_nothing_upcoming(self):
        assert missed_starts(cron.parse("0 0 30 2 *"), NOON, None, at(9)) == MissedStarts(
            None, None, None, 0, too_many=False
        )

    def test_decades_of_missed_starts_are_counted_at_once_and_only_the_last_five_years(self):
        found = missed_starts(cron.parse("* * * * *"), datetime(1, 1, 1, tzinfo=UTC), 60, NOON)

        assert found.due == NOON
        assert timedelta(minutes=found.missed) == LONGEST_LOOK_BACK > timedelta(days=5 * 365)

    @given(
        st.integers(0, 30_000),
        st.none() | st.integers(0, 7_000),
        st.integers(0, 30_000),
        st.sampled_from(["* * * * *", "*/7 * * * *", "@every 50s", "5,9 * * * *"]),
    )
    def test_it_finds_what_the_original_finds_by_walking(self, since, deadline, now, expression):
        schedule = cron.parse(expression, anchor=NOON)
        expected = walked(schedule, seconds(since), deadline, seconds(now))
        found = missed_starts(schedule, seconds(since), deadline, seconds(now))

        assert (found.too_many, found.due) == expected

    @given(
        st.integers(0, 30_000),
        st.integers(0, 30_000),
        st.sampled_from(["* * * * *", "*/7 * * * *", "@every 50s", "5,9 * * * *"]),
    )
    def test_what_a_start_passed_over_are_those_between(self, since, span, expression):
        schedule = cron.parse(expression, anchor=NOON)
        found = schedule.missed(seconds(since), seconds(since + span))
        if found.latest:
            passed = passed_over(schedule, seconds(since), found.latest)

            assert passed == found.count - 1


def walked(
    schedule: cron.Schedule, earliest: datetime, deadline: int | None, now: datetime
) -> tuple[bool, datetime | None]:
    """Walk through the starts: whether they are too many, and the newest that was missed."""
    if deadline is not None:
        earliest = max(earliest, now - timedelta(seconds=deadline))
    last, starts, coming = None, 0, schedule.after(earliest)
    while coming is not None and coming <= now:
        last, starts, coming = coming, starts + 1, schedule.after(coming)
    return starts > 100, last
