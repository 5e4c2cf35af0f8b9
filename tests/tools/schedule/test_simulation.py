"""What becomes of each start: every rule of the controller, met in virtual time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from hedgerow.schedule import ScheduleError
from hedgerow_tools.schedule.simulation import Happens
from tools.schedule.asked import BEGIN, at, cronjob, days, foresee, short

Told = list[tuple[int, str, int | None]]


def told(cj: Any, **question: Any) -> Told:
    return [short(fate) for fate in foresee(cj, **question).fates]


class TestConcurrency:
    @pytest.mark.parametrize(
        ("policy", "takes", "expected"),
        [
            ("Allow", 25, [(10, "runs", 10), (20, "runs", 20), (30, "runs", 30)]),
            ("Forbid", 9, [(10, "runs", 10), (20, "runs", 20), (30, "runs", 30)]),
            ("Forbid", 10, [(10, "runs", 10), (20, "runs", 20), (30, "runs", 30)]),
            ("Forbid", 15, [(10, "runs", 10), (20, "runsLate", 25), (30, "forbidden", None)]),
            ("Forbid", 25, [(10, "runs", 10), (20, "forbidden", None), (30, "runsLate", 35)]),
            ("Replace", 9, [(10, "runs", 10), (20, "runs", 20), (30, "runs", 30)]),
            ("Replace", 25, [(10, "runs", 10), (20, "replaces", 20), (30, "replaces", 30)]),
        ],
    )
    def test_a_start_meets_the_job_before_it_as_the_policy_says(self, policy, takes, expected):
        cj = cronjob(concurrencyPolicy=policy)

        assert told(cj, minutes=30, takes=takes) == expected

    def test_why_names_the_job_that_is_in_the_way(self):
        fates = foresee(cronjob(concurrencyPolicy="Forbid"), minutes=40, takes=25).fates
        first = f"c-{int(at(10).timestamp())}"

        assert [fate.why for fate in fates] == [
            "on time",
            f"{first} still ran when the next start came",
            f"late at 00:35:00: {first} has ended",
            f"c-{int(at(30).timestamp())} still ran when the next start came",
        ]

    def test_why_names_the_jobs_beside_and_the_one_replaced(self):
        beside = foresee(cronjob(), minutes=40, takes=25).fates
        replaced = foresee(cronjob(concurrencyPolicy="Replace"), minutes=20, takes=25).fates
        first = f"c-{int(at(10).timestamp())}"

        assert beside[1].why == f"on time; {first} still runs"
        assert beside[3].why == f"on time; c-{int(at(20).timestamp())} and 1 more still run"
        assert replaced[1].why == f"on time; {first} is deleted for it"

    def test_a_start_near_the_end_is_followed_beyond_it(self):
        cj = cronjob(concurrencyPolicy="Forbid")

        assert told(cj, minutes=20, takes=15) == [(10, "runs", 10), (20, "runsLate", 25)]
        assert told(cj, minutes=20, takes=25) == [(10, "runs", 10), (20, "forbidden", None)]

    def test_a_date_is_shown_where_it_is_another_one(self):
        cj = cronjob("50 23 * * *", concurrencyPolicy="Forbid")
        fates = foresee(cj, minutes=2 * 1440, takes=1460).fates

        assert fates[1].why.startswith("late at 2026-03-04 00:10:00: c-")

    def test_jobs_that_the_status_calls_active_are_there_when_it_begins(self):
        begun = f"c-{int(at(-10).timestamp())}"
        cj = cronjob(
            concurrencyPolicy="Forbid",
            status={
                "active": [{"name": begun}, {"name": "made-by-hand"}],
                "lastScheduleTime": at(-10).isoformat(),
            },
        )
        forecast = foresee(cj, minutes=20, takes=25)

        assert [short(fate) for fate in forecast.fates] == [
            (0, "forbidden", None),
            (10, "forbidden", None),
            (20, "runsLate", 25),
        ]
        assert forecast.fates[0].why == f"{begun} still ran when the next start came"

    def test_no_name_in_a_status_is_too_odd(self):
        odd = [{"name": "c-999999999999"}, {"name": None}, {"name": "c-"}, {}]
        forecast = foresee(cronjob(status={"active": odd}), minutes=10)

        assert [short(fate) for fate in forecast.fates] == [(10, "runs", 10)]


class TestRefusals:
    def test_a_suspended_cronjob_starts_nothing(self):
        cj = cronjob(suspend=True)

        assert told(cj, minutes=20) == [(10, "suspended", None), (20, "suspended", None)]

    def test_of_more_than_a_hundred_missed_starts_the_newest_is_made(self):
        cj = cronjob("* * * * *", concurrencyPolicy="Forbid")
        fates = foresee(cj, minutes=200, takes=150, limit=400).fates

        assert [fate.happens for fate in fates[:151]] == [
            Happens.RUNS,
            *[Happens.FORBIDDEN] * 149,
            Happens.RUNS,
        ]

    def test_as_many_jobs_run_as_the_limit_allows(self):
        fates = foresee(cronjob(activeLimit=2), minutes=50, takes=25).fates

        assert [short(fate) for fate in fates] == [
            (10, "runs", 10),
            (20, "runs", 20),
            (30, "runsLate", 35),
            (40, "runsLate", 45),
            (50, "activeLimit", None),
        ]
        assert fates[2].why.startswith(
            "late at 00:35:00: fewer than 2 run, and spec.activeLimit is 2"
        )

    def test_a_start_beyond_the_limit_is_skipped_when_the_next_one_comes(self):
        fates = foresee(cronjob(activeLimit=1), minutes=30, takes=25).fates

        assert [short(fate) for fate in fates] == [
            (10, "runs", 10),
            (20, "activeLimit", None),
            (30, "runsLate", 35),
        ]
        assert fates[1].why == (
            "1 Job still ran when the next start came, and spec.activeLimit is 1"
        )
        assert fates[2].why == "late at 00:35:00: none runs, and spec.activeLimit is 1"

    def test_jobs_that_a_status_counts_but_does_not_list_are_there_too(self):
        status = {"active": [{"name": "c-by-hand"}], "activeCount": 3}
        fates = foresee(cronjob(activeLimit=3, status=status), minutes=20, takes=15).fates

        assert [short(fate) for fate in fates] == [(10, "runsLate", 15), (20, "runs", 20)]


class TestDeadline:
    @pytest.mark.parametrize(
        ("deadline", "expected"),
        [
            (299, [(10, "runs", 10), (20, "deadlinePassed", None), (30, "runs", 30)]),
            (300, [(10, "runs", 10), (20, "deadlinePassed", None), (30, "runs", 30)]),
            (301, [(10, "runs", 10), (20, "runsLate", 25), (30, "deadlinePassed", None)]),
            (2**63 - 1, [(10, "runs", 10), (20, "runsLate", 25), (30, "forbidden", None)]),
        ],
    )
    def test_a_start_that_waits_is_dropped_by_it(self, deadline, expected):
        cj = cronjob(concurrencyPolicy="Forbid", startingDeadlineSeconds=deadline)

        assert told(cj, minutes=30, takes=15) == expected

    def test_why_says_when_it_passed_and_what_was_in_the_way(self):
        cj = cronjob(concurrencyPolicy="Forbid", startingDeadlineSeconds=90)
        fates = foresee(cj, minutes=20, takes=15).fates

        assert fates[1].why == (
            f"its deadline passed at 00:21:30: c-{int(at(10).timestamp())} still ran"
        )

    def test_one_of_no_time_at_all_lets_nothing_start(self):
        [fate] = foresee(cronjob(startingDeadlineSeconds=0), minutes=10).fates

        assert (fate.happens, fate.why) == (Happens.DEADLINE, "its deadline passed at 00:10:00")


class TestDown:
    def test_only_the_newest_missed_start_is_made_up_for(self):
        fates = foresee(cronjob(), minutes=50, down=((15, 45),)).fates

        assert [short(fate) for fate in fates] == [
            (10, "runs", 10),
            (20, "missed", None),
            (30, "missed", None),
            (40, "runsLate", 45),
            (50, "runs", 50),
        ]
        assert fates[1].why == (
            "the operator was down, and only the newest missed start is made up for"
        )
        assert fates[3].why == "late at 00:45:00: the operator is back"

    def test_the_deadline_drops_what_is_too_old(self):
        cj = cronjob(startingDeadlineSeconds=600)
        fates = foresee(cj, minutes=50, down=((5, 45),)).fates

        assert [short(fate)[1] for fate in fates] == [*["deadlinePassed"] * 3, "runsLate", "runs"]
        assert fates[0].why == "its deadline passed at 00:20:00: the operator was down"

    def test_the_newest_of_more_than_a_hundred_is_made_up_for(self):
        cj = cronjob("* * * * *")
        fates = foresee(cj, minutes=151, down=((10, 150.5),), limit=200).fates

        assert {fate.happens for fate in fates[9:-2]} == {Happens.MISSED}
        assert short(fates[-2]) == (150, "runsLate", 150)
        assert short(fates[-1]) == (151, "runs", 151)

    def test_times_that_touch_or_overlap_are_one(self):
        apart = told(cronjob(), minutes=60, down=((15, 45),))

        assert told(cronjob(), minutes=60, down=((30, 45), (15, 30))) == apart
        assert told(cronjob(), minutes=60, down=((15, 45), (20, 25))) == apart

    def test_two_of_them_are_two(self):
        assert told(cronjob(), minutes=40, down=((5, 12), (25, 32))) == [
            (10, "runsLate", 12),
            (20, "runs", 20),
            (30, "runsLate", 32),
            (40, "runs", 40),
        ]

    def test_an_operator_that_comes_back_later_is_waited_for(self):
        assert told(cronjob(), minutes=10, down=((5, 15),)) == [(10, "runsLate", 15)]
        assert told(cronjob(), minutes=10, down=((5, 25),)) == [(10, "missed", None)]

    def test_the_job_in_the_way_ends_meanwhile(self):
        cj = cronjob(concurrencyPolicy="Forbid")
        fates = foresee(cj, minutes=30, takes=15, down=((22, 28),)).fates

        assert [short(fate) for fate in fates][1] == (20, "runsLate", 28)


class TestBefore:
    def test_one_that_was_never_created_is_created_when_it_begins(self):
        assert told(cronjob("@every 7m"), minutes=15) == [(7, "runs", 7), (14, "runs", 14)]

    def test_one_that_was_created_counts_from_then(self):
        cj = cronjob("@every 7m")
        created = cj.metadata.model_copy(update={"creation_timestamp": at(-1)})
        forecast = foresee(cj.model_copy(update={"metadata": created}), minutes=15)

        assert [short(fate) for fate in forecast.fates] == [(6, "runs", 6), (13, "runs", 13)]

    def test_it_begins_no_earlier_than_its_creation(self):
        cj = cronjob()
        created = cj.metadata.model_copy(update={"creation_timestamp": at(25)})
        forecast = foresee(cj.model_copy(update={"metadata": created}), minutes=30)

        assert [short(fate) for fate in forecast.fates] == [(30, "runs", 30)]
        assert (forecast.begins, forecast.since) == (at(25), "metadata.creationTimestamp")

    def test_it_begins_no_earlier_than_what_the_status_has(self):
        forecast = foresee(cronjob(status={"lastScheduleTime": at(20).isoformat()}), minutes=30)

        assert [short(fate) for fate in forecast.fates] == [(30, "runs", 30)]
        assert (forecast.begins, forecast.since) == (at(20), "status.lastScheduleTime")

    def test_the_newest_start_missed_before_is_made_up_for(self):
        forecast = foresee(
            cronjob(status={"lastScheduleTime": at(-35).isoformat()}),
            minutes=10,
            since=BEGIN - timedelta(minutes=5),
        )

        assert [short(fate) for fate in forecast.fates] == [(-10, "runsLate", -5), (0, "runs", 0)]
        assert forecast.missed_before == 3
        assert forecast.fates[0].why == "late at 23:55:00: it was missed before"

    def test_it_is_not_if_the_operator_is_down_until_the_next(self):
        cj = cronjob(status={"lastScheduleTime": at(-20).isoformat()})
        forecast = foresee(cj, minutes=14, since=at(-5), down=((-8, 8),))

        assert [short(fate) for fate in forecast.fates] == [
            (-10, "missed", None),
            (0, "runsLate", 8),
        ]
        assert forecast.fates[0].why.startswith("it was missed before, and only the newest")

    def test_what_is_older_than_the_controller_looks_is_not_counted(self):
        status = {"lastScheduleTime": (BEGIN - timedelta(days=20 * 366)).isoformat()}
        forecast = foresee(cronjob("0 0 1 1 *", status=status), minutes=10)

        assert forecast.missed_before == 5
        assert [fate.happens for fate in forecast.fates] == [Happens.LATE]

    def test_a_start_at_the_very_beginning_is_on_time(self):
        cj = cronjob(status={"lastScheduleTime": at(-10).isoformat()})

        assert told(cj, minutes=5) == [(0, "runs", 0)]

    def test_a_record_ahead_of_when_it_is_asked_is_none(self):
        status = {"lastScheduleTime": "9999-12-31T23:59:59Z"}
        forecast = foresee(cronjob(status=status), minutes=20, now=at(5))

        assert forecast.refused == datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
        assert [short(fate) for fate in forecast.fates] == [(10, "runs", 10), (20, "runs", 20)]

    def test_what_is_made_as_soon_as_the_operator_looks_is_told(self):
        status = {"lastScheduleTime": at(-35).isoformat()}
        begin = BEGIN - timedelta(minutes=5)

        assert foresee(cronjob(status=status), minutes=10, since=begin).at_once == at(-10)
        assert (
            foresee(cronjob(status=status, suspend=True), minutes=10, since=begin).at_once is None
        )
        assert foresee(cronjob(), minutes=10).at_once is None

    def test_what_lies_after_the_end_is_no_matter(self):
        forecast = foresee(cronjob(status={"lastScheduleTime": at(99).isoformat()}), minutes=30)

        assert (forecast.fates, forecast.more) == ((), 0)


class TestLimit:
    def test_it_bounds_what_is_told_and_the_rest_is_counted(self):
        forecast = foresee(cronjob("* * * * *"), minutes=365 * 1440, limit=5)

        assert len(forecast.fates) == 5
        assert forecast.more == 365 * 1440 - 5

    def test_a_start_is_told_alike_whether_or_not_the_next_one_is(self):
        cj = cronjob(concurrencyPolicy="Forbid")
        full = told(cj, minutes=120, takes=35)

        for limit in range(1, len(full)):
            assert told(cj, minutes=120, takes=35, limit=limit) == full[:limit]

    def test_missed_ones_are_no_exception(self):
        cj = cronjob("* * * * *")
        full = told(cj, minutes=20, down=((3, 12),))

        for limit in range(1, len(full)):
            assert told(cj, minutes=20, down=((3, 12),), limit=limit) == full[:limit]

    def test_a_century_of_minutes_costs_no_more_than_its_first(self):
        cj = cronjob("* * * * *", concurrencyPolicy="Forbid", startingDeadlineSeconds=5)
        forecast = foresee(cj, minutes=100 * 365 * 1440, takes=10**7, limit=10)

        assert len(forecast.fates) == 10
        assert forecast.more == 100 * 365 * 1440 - 10

    def test_a_schedule_that_never_starts_has_nothing_to_tell(self):
        forecast = foresee(cronjob("0 0 30 2 *"), minutes=10 * 365 * 1440)

        assert (forecast.fates, forecast.more) == ((), 0)

    def test_one_that_cannot_be_read_is_an_error(self):
        with pytest.raises(ScheduleError, match="minute"):
            foresee(cronjob("61 * * * *"))


def change(zone: str, schedule: str, since: str, number: int, **spec: Any) -> list[tuple[str, str]]:
    cj = cronjob(schedule, timeZone=zone, **spec)
    begin = datetime.fromisoformat(since).replace(tzinfo=UTC)
    return days(*foresee(cj, since=begin, minutes=number * 1440).fates)


class TestDaylightSaving:
    @pytest.mark.parametrize(
        ("zone", "schedule", "since", "expected"),
        [
            (
                "America/New_York",
                "30 2 * * *",
                "2026-03-07",
                [("03-07T02:30", "runs"), ("03-08T02:30", "skippedByClocks")],
            ),
            (
                "Europe/Berlin",
                "0,30 2 * * *",
                "2026-03-28",
                [
                    ("03-28T02:00", "runs"),
                    ("03-28T02:30", "runs"),
                    ("03-29T02:00", "skippedByClocks"),
                ],
            ),
            (
                "Australia/Lord_Howe",
                "15 2 * * *",
                "2026-10-03",
                [("10-04T02:15", "skippedByClocks"), ("10-05T02:15", "runs")],
            ),
            (
                "America/Havana",
                "0 0 * * *",
                "2026-03-07T00:00",
                [("03-07T00:00", "runs"), ("03-08T00:00", "skippedByClocks")],
            ),
        ],
    )
    def test_what_the_clocks_skip_does_not_run(self, zone, schedule, since, expected):
        assert change(zone, schedule, since, 2)[: len(expected)] == expected

    @pytest.mark.parametrize(
        ("zone", "schedule", "since", "expected"),
        [
            ("America/New_York", "30 1 * * *", "2026-11-01", [(5.5, 1), (6.5, 2)]),
            ("Europe/Berlin", "30 2 * * *", "2026-10-24T22:00", [(2.5, 1), (3.5, 2)]),
            ("Australia/Lord_Howe", "45 1 * * *", "2026-04-04", [(14.75, 1), (15.25, 2)]),
        ],
    )
    def test_what_they_show_twice_runs_twice(self, zone, schedule, since, expected):
        begin = datetime.fromisoformat(since).replace(tzinfo=UTC)
        fates = foresee(cronjob(schedule, timeZone=zone), since=begin, minutes=1440).fates
        hours = [(fate.start - begin) / timedelta(hours=1) for fate in fates]

        assert list(zip(hours, [fate.repeated for fate in fates], strict=True)) == expected
        assert [fate.happens for fate in fates] == [Happens.RUNS, Happens.RUNS]
        assert fates[0].why.endswith("twice, this is the first time")
        assert fates[1].why.endswith("twice, this is the second time")

    def test_many_times_that_are_skipped_are_one_row(self):
        cj = cronjob("* * * * *", timeZone="America/New_York")
        since = datetime(2026, 3, 8, 6, 58, tzinfo=UTC)
        fates = foresee(cj, since=since, minutes=3).fates

        assert days(*fates) == [
            ("03-08T01:59", "runs"),
            ("03-08T02:00", "skippedByClocks"),
            ("03-08T03:00", "runs"),
            ("03-08T03:01", "runs"),
        ]
        assert fates[1].why == "the clocks skip 02:00, 02:01, 02:02 and 57 more"
        assert len(fates[1].skipped) == 60

    def test_a_day_that_is_skipped_is_named_with_its_date(self):
        cj = cronjob("0 12 29-31 12 *", timeZone="Pacific/Apia")
        fates = foresee(cj, since=datetime(2011, 12, 29, tzinfo=UTC), minutes=3 * 1440).fates

        assert days(*fates)[1] == ("12-30T12:00", "skippedByClocks")

    @pytest.mark.parametrize("deadline", [{}, {"startingDeadlineSeconds": 3600}], ids=str)
    @pytest.mark.parametrize(
        ("schedule", "expected"),
        [
            ("30 4 * * 4", ["04-23T04:30", "04-30T04:30"]),
            ("30 4 * * 5", ["04-24T04:30", "05-01T04:30"]),
        ],
    )
    def test_a_day_without_a_midnight_is_as_any_other(self, schedule, expected, deadline):
        cj = cronjob(schedule, timeZone="Africa/Cairo", **deadline)
        fates = foresee(cj, since=datetime(2026, 4, 22, tzinfo=UTC), minutes=10 * 1440).fates

        assert days(*fates) == [(start, "runs") for start in expected]

    def test_what_is_skipped_after_the_last_start_is_told_until_the_end(self):
        assert change("America/New_York", "30 2 * * *", "2026-03-07T08:00", 1) == [
            ("03-08T02:30", "skippedByClocks")
        ]
        assert change("America/New_York", "30 2 * * *", "2026-03-07T08:00", 0.9) == []

    def test_a_limit_counts_it_but_it_is_no_start(self):
        cj = cronjob("30 2 * * *", timeZone="America/New_York")
        since = datetime(2026, 3, 7, 8, tzinfo=UTC)
        forecast = foresee(cj, since=since, minutes=5 * 1440, limit=2)

        assert days(*forecast.fates) == [
            ("03-08T02:30", "skippedByClocks"),
            ("03-09T02:30", "runs"),
        ]
        assert forecast.more == 3

    def test_a_distance_knows_no_clocks(self):
        assert change("America/New_York", "@every 12h", "2026-03-08T00:00", 1) == [
            ("03-08T08:00", "runs"),
            ("03-08T20:00", "runs"),
        ]
