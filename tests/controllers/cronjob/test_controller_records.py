"""CronJob: what tells of a start, what does not, and how many Jobs may run at once."""

from __future__ import annotations

import sys
from datetime import timedelta
from typing import Any

import pytest

from controllers.crons import (
    at,
    composed,
    cronjob,
    job,
    job_name,
    kept,
    message,
    recorded,
    says,
    started,
    status,
    told,
    wire,
)
from hedgerow.contract import Keep
from hedgerow.controllers.cronjob.starts import SCHEDULED_AT
from hedgerow_schemas.job import Job

YEAR = 365 * 24 * 60
FAR = 9 * YEAR
MINUTE = timedelta(minutes=1)


def by_hand(name: str, scheduled_at: str, how: str = "Complete", **meta: Any) -> Job:
    """A Job that somebody made, with a copied annotation."""
    annotations = {SCHEDULED_AT: scheduled_at}
    metadata = {"name": name, "uid": name, "annotations": annotations, **meta}
    conditions = [{"type": how, "status": "True"}]
    return Job({"metadata": metadata, "status": {"conditions": conditions}})


class TestAhead:
    """What lies after now is no record of a start."""

    @pytest.mark.parametrize(
        "there",
        [
            job(FAR, "Complete"),
            by_hand("demo-1795222400123", "2026-01-01T11:00:00Z"),
        ],
        ids=["a year ahead", "milliseconds"],
    )
    def test_a_job_dated_ahead_holds_no_start_back_and_is_named(self, there):
        desired = composed(cronjob(), at(3.5), there)

        assert started(desired) == [job_name(3)]
        assert "lastScheduleTime" not in status(desired)
        assert status(desired)["nextScheduleTime"] == wire(at(4))
        assert says(desired) == "True/Scheduled"
        assert says(desired, "DatedAhead") == "True/JobAhead"
        assert message(desired, "DatedAhead").startswith(f"Job {there.name} is dated ")

    def test_of_several_one_is_named_and_the_rest_counted(self):
        there = [job(FAR + minute) for minute in range(50)]
        said = message(composed(cronjob(), at(3), *there), "DatedAhead")

        assert job_name(FAR) in said
        assert "(and 49 more)" in said
        assert len(said) < 250

    def test_once_it_is_gone_nothing_is_said_of_it(self):
        assert says(composed(cronjob(), at(3)), "DatedAhead") == ""

    def test_it_is_told_though_the_schedule_cannot_be_read(self):
        desired = composed(cronjob(schedule="junk"), at(3), job(FAR))

        assert says(desired, "DatedAhead") == "True/JobAhead"
        assert says(desired, "Stalled") == "True/UnparseableSchedule"

    def test_it_is_pruned_like_any_other(self):
        none_kept = cronjob(successfulJobsHistoryLimit=0)

        assert kept(composed(none_kept, at(0.5), job(FAR, "Complete"))) == []

    @pytest.mark.parametrize("spec", [{}, {"suspend": True}, {"schedule": "junk"}], ids=str)
    def test_it_is_looked_at_again_when_its_time_has_come(self, spec):
        yearly = {"schedule": "0 0 1 1 *", **spec}
        desired = composed(cronjob(**yearly), at(3), job(10), job(FAR))

        assert desired.requeue_after == timedelta(minutes=7)
        beyond = by_hand(f"demo-{10**12}", "")
        assert composed(cronjob(**yearly), at(3), beyond).requeue_after

    def test_a_job_of_the_next_minute_counts_once_its_time_has_come(self):
        early = job(4, "Complete")
        before, after = composed(cronjob(), at(3.5), early), composed(cronjob(), at(4), early)

        assert (started(before), kept(before)) == ([job_name(3)], [job_name(4)])
        assert says(before, "DatedAhead") == ""
        assert started(after) == []
        assert status(after)["lastScheduleTime"] == wire(at(4))

    @pytest.mark.parametrize("text", [wire(at(3)), wire(at(FAR)), "9999-12-31T23:59:59-01:00", ""])
    def test_an_annotation_is_no_start(self, text):
        """Whoever may create Jobs writes what they like there."""
        desired = composed(cronjob(), at(3), by_hand("rerun", text))

        assert started(desired) == [job_name(3)]
        assert says(desired, "DatedAhead") == ""


class TestRecordAhead:
    """A pass under a clock that was ahead leaves a record that the next one corrects."""

    def test_starts_go_on_from_now_and_none_until_then_is_made_twice(self):
        desired = composed(cronjob(recorded(YEAR)), at(3.5))

        assert started(desired) == []
        assert status(desired)["lastScheduleTime"] == wire(at(3))
        assert status(desired)["nextScheduleTime"] == wire(at(4))
        assert says(desired) == "True/Scheduled"
        assert started(composed(cronjob(recorded(3)), at(4))) == [job_name(4)]

    def test_it_is_told_by_an_event_that_names_the_time(self):
        (notice,) = composed(cronjob(recorded(YEAR)), at(3.5)).events

        assert (notice.type, notice.reason) == ("Warning", "RecordAhead")
        assert wire(at(YEAR)) in notice.note

    def test_a_record_of_the_end_of_time_is_not_taken_for_a_schedule_without_starts(self):
        far = {"lastScheduleTime": "9999-12-31T23:59:59Z"}

        assert says(composed(cronjob(far), at(3.5))) == "True/Scheduled"

    def test_the_jobs_that_the_wrong_clock_made_are_named(self):
        desired = composed(cronjob(recorded(YEAR)), at(3.5), job(YEAR), job(2, "Complete"))

        assert job_name(YEAR) in message(desired, "DatedAhead")
        assert status(desired)["lastScheduleTime"] == wire(at(3))

    def test_where_another_manager_keeps_the_record_starts_go_on_all_the_same(self):
        """Its status cannot be corrected: what is announced next is what may start next."""
        held = recorded(YEAR, nextScheduleTime=wire(at(4)))

        assert started(composed(cronjob(held), at(3.9))) == []
        assert started(composed(cronjob(held), at(4))) == [job_name(4)]
        assert started(composed(cronjob(held), at(4.1), job(4))) == []

    def test_a_schedule_that_cannot_be_read_leaves_the_record_as_it_is(self):
        desired = composed(cronjob(recorded(YEAR), schedule="junk"), at(3))

        assert status(desired)["lastScheduleTime"] == wire(at(YEAR))

    def test_a_cronjob_without_creation_time_recovers_too(self):
        desired = composed(cronjob(recorded(YEAR), created=None), at(3.5))

        assert "lastScheduleTime" not in status(desired)
        assert status(desired)["nextScheduleTime"] == wire(at(4))

    def test_what_this_process_made_under_a_wrong_clock_is_no_record_either(self):
        made = frozenset({("Job", job_name(YEAR))})

        assert started(composed(cronjob(), at(3), made=made)) == [job_name(3)]


class TestClocks:
    """A record tells whose clock is wrong: it is none if it is ahead of both."""

    WRONG = (2.6, 150, YEAR)

    @pytest.mark.parametrize("skew", WRONG)
    @pytest.mark.parametrize("passed", [0.1, 0.9])
    def test_behind_a_record_that_has_come_by_the_servers_clock_is_kept(self, skew, passed):
        server = at(5 + passed)
        desired = composed(cronjob(recorded(5)), server - skew * MINUTE, server=server)

        assert started(desired) == []
        assert status(desired)["lastScheduleTime"] == wire(at(5))
        assert status(desired)["nextScheduleTime"] == wire(at(6))
        assert says(desired) == "False/ClockBehind"
        assert [notice.reason for notice in desired.events] == ["ClockBehind"]
        assert wire(at(5)) in message(desired, "Ready")

    def test_behind_it_is_told_alike_however_long_it_lasts(self):
        one, other = (
            composed(cronjob(recorded(500)), at(now), server=at(501 + now / 9)) for now in (3, 400)
        )

        assert (one.status, one.events) == (other.status, other.events)

    def test_behind_a_job_that_has_come_by_the_servers_clock_is_a_start(self):
        desired = composed(cronjob(), at(3.5), job(5, "Complete"), server=at(6))

        assert started(desired) == []
        assert status(desired)["lastScheduleTime"] == wire(at(5))
        assert says(desired, "DatedAhead") == ""

    def test_behind_what_this_process_made_is_a_start(self):
        made = frozenset({("Job", job_name(5))})

        assert started(composed(cronjob(), at(3.5), made=made, server=at(6))) == []

    def test_behind_starts_go_on_once_the_clock_has_come_to_the_record(self):
        cj = cronjob(recorded(5))

        assert started(composed(cj, at(5.9), server=at(8.6))) == []
        assert started(composed(cj, at(6), server=at(8.7))) == [job_name(6)]
        assert started(composed(cj, at(8.7), server=at(8.7))) == [job_name(8)]

    @pytest.mark.parametrize("off", [-0.99, -0.01, 0, 0.01, 0.99])
    def test_by_up_to_a_minute_clocks_may_differ(self, off):
        desired = composed(cronjob(recorded(4)), at(5), server=at(5 + off))

        assert started(desired) == [job_name(5)]
        assert says(desired) == "True/Scheduled"

    @pytest.mark.parametrize("skew", [0, *WRONG])
    @pytest.mark.parametrize("sign", [-1, 1])
    def test_a_record_ahead_of_both_is_wrong(self, skew, sign):
        """Any start that one of the clocks has come to may have been made."""
        now, server = at(3.5) + sign * skew * MINUTE, at(3.5)
        desired = composed(cronjob(recorded(2 * YEAR)), now, server=server)

        assert started(desired) == []
        assert desired.events[0].reason == "RecordAhead"
        last = max(now, server).replace(second=0)
        assert status(desired)["lastScheduleTime"] == wire(last)

    @pytest.mark.parametrize("skew", WRONG)
    def test_ahead_starts_are_made_by_our_clock(self, skew):
        """Nothing tells whose clock is wrong: no start is on record that one has not come to."""
        now = at(6) + skew * MINUTE
        desired = composed(cronjob(recorded(5)), now, server=at(6))

        assert len(started(desired)) == 1
        assert says(desired) == "True/Scheduled"

    def test_while_suspended_nothing_is_told(self):
        desired = composed(cronjob(recorded(5), suspend=True), at(3), server=at(5.5))

        assert says(desired) == "True/Suspended"
        assert desired.events == ()


class TestByHand:
    """A Job made by hand at a time that is no start of the schedule takes the place of none."""

    HOURLY = {"schedule": "0 * * * *", "concurrencyPolicy": "Forbid"}

    @pytest.mark.parametrize("ended", ["Complete", "Failed"])
    def test_a_start_that_waits_is_not_lost_to_it(self, ended):
        waiting = cronjob(recorded(0), **self.HOURLY)
        by_hand = job(65, ended)

        assert started(composed(waiting, at(66), job(0), by_hand)) == []
        assert started(composed(waiting, at(67), job(0, "Complete"), by_hand)) == [job_name(60)]

    def test_one_of_a_start_to_come_does_not_lose_the_one_that_waits(self):
        every_five = cronjob(recorded(0), schedule="*/5 * * * *", concurrencyPolicy="Forbid")
        early = job(10, "Complete")

        assert started(composed(every_five, at(7), job(0, "Complete"), early)) == [job_name(5)]

    def test_it_is_no_record_and_is_pruned_like_any_other(self):
        none_kept = cronjob(recorded(0), successfulJobsHistoryLimit=0, **self.HOURLY)
        desired = composed(none_kept, at(30), job(5, "Complete"))

        assert kept(desired) == []
        assert status(desired)["lastScheduleTime"] == wire(at(0))

    def test_one_of_the_very_start_is_that_start(self):
        assert started(composed(cronjob(**self.HOURLY), at(60.5), job(60, "Complete"))) == []

    def test_what_the_controller_made_counts_though_the_schedule_is_another_by_now(self):
        ours = job(65, "Complete")
        entry = {"manager": "hedgerow-cronjob", "operation": "Apply"}
        ours = Job({**ours.raw, "metadata": {**ours.raw["metadata"], "managedFields": [entry]}})
        desired = composed(cronjob(recorded(0), **self.HOURLY), at(66), ours)

        assert started(desired) == []
        assert status(desired)["lastScheduleTime"] == wire(at(65))


class TestLimit:
    """No more Jobs run at once than `activeLimit` allows."""

    def running(self, count: int) -> list[Job]:
        return [job(minute) for minute in range(1, count + 1)]

    def test_a_start_beyond_it_waits_and_is_told(self):
        desired = composed(cronjob(recorded(3), activeLimit=3), at(4), *self.running(3))

        assert started(desired) == []
        assert says(desired) == "False/ActiveLimitReached"
        assert message(desired) == (
            "3 Jobs have not ended, as many as spec.activeLimit allows: starts wait until a Job"
            " ends"
        )
        assert told(desired) == [("Warning", "ActiveLimitReached")]
        assert status(desired)["missed"] == 1

    def test_the_newest_is_made_once_a_job_has_ended(self):
        there = [job(1, "Complete"), job(2), job(3)]

        assert started(composed(cronjob(recorded(3), activeLimit=3), at(7.5), *there)) == [
            job_name(7)
        ]

    def test_it_waits_no_longer_than_its_deadline(self):
        cj = cronjob(recorded(3), activeLimit=3, startingDeadlineSeconds=30)
        desired = composed(cj, at(4.5), *self.running(3))

        assert told(desired) == [("Warning", "MissedStart")]
        assert says(desired) == "True/Scheduled"

    def test_without_a_start_that_is_due_nothing_is_held_back(self):
        full = composed(cronjob(recorded(3), activeLimit=3), at(3.5), *self.running(3))
        suspended = cronjob(recorded(3), activeLimit=3, suspend=True)

        assert says(full) == "True/Scheduled"
        assert says(composed(suspended, at(9), *self.running(3))) == "True/Suspended"

    def test_it_is_told_alike_however_long_it_lasts(self):
        cj = cronjob(recorded(3), activeLimit=3)
        notes = {composed(cj, at(minute), *self.running(3)).events[-1] for minute in range(4, 60)}

        assert len(notes) == 1

    def test_a_hundred_may_run_unless_told_otherwise(self):
        cj = cronjob(recorded(100))

        assert started(composed(cj, at(101), *self.running(99))) == [job_name(101)]
        assert started(composed(cj, at(101), *self.running(100))) == []

    def test_one_is_one_job(self):
        desired = composed(cronjob(recorded(1), activeLimit=1), at(2), job(1))

        assert message(desired).startswith("1 Job has not ended, ")

    def test_what_is_replaced_goes_first_and_counts_until_it_is_gone(self):
        cj = cronjob(recorded(1), activeLimit=1, concurrencyPolicy="Replace")

        assert kept(composed(cj, at(2), job(1))) == []
        assert started(composed(cj, at(2), job(1, going=True))) == []
        assert started(composed(cj, at(2))) == [job_name(2)]


class TestManyJobs:
    def test_the_oldest_twenty_that_run_are_listed_and_all_are_counted(self):
        there = [job(minute) for minute in range(60, 0, -1)]
        said = status(composed(cronjob(recorded(60)), at(60.5), *there))

        assert said["activeCount"] == 60
        assert [each["name"] for each in said["active"]] == [
            job_name(minute) for minute in range(1, 21)
        ]

    def test_of_a_status_by_somebody_else_no_more_are_looked_for(self):
        """Each is read from the API server by itself."""
        listed = [{"kind": "Job", "name": f"j{number}"} for number in range(1_000)]
        desired = composed(cronjob(recorded(1, active=listed)), at(1.5))

        assert len([child for child in desired.children if isinstance(child, Keep)]) == 20

    @pytest.mark.untraced  # whose calls would be counted as well
    @pytest.mark.parametrize("policy", ["Allow", "Forbid", "Replace"])
    @pytest.mark.parametrize("how", ["", "Complete", "by hand"])
    def test_twice_the_jobs_cost_twice_the_steps(self, policy, how):
        def steps(count: int) -> int:
            ending = "" if how == "by hand" else how
            step = 1.5 if how == "by hand" else 1
            there = [job(step * minute, ending) for minute in range(1, count + 1)]
            cj = cronjob(recorded(0), concurrencyPolicy=policy, activeLimit=10**6)
            return counted(lambda: composed(cj, at(step * count + 1), *there))

        assert steps(400) <= 2.2 * steps(200)


def counted(work: Any) -> int:
    """Count the calls that work makes: steps that no clock and no load change."""
    calls = 0

    def note(_frame: Any, event: str, _arg: Any) -> None:
        nonlocal calls
        calls += event in {"call", "c_call"}

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return calls
