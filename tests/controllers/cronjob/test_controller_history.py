"""CronJob: which Jobs are kept, how long their guards last, and what the status tells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.crons import (
    at,
    composed,
    cronjob,
    job,
    job_name,
    kept,
    message,
    recorded,
    remarks,
    says,
    started,
    status,
    wire,
)
from hedgerow_schemas.cronjob import CronJob
from hedgerow_schemas.job import Job


@dataclass(frozen=True)
class Past:
    """Ended Jobs, and those of them that are kept; minutes stand for Jobs."""

    reason: str
    jobs: tuple[Job, ...]
    keeps: tuple[float, ...]
    cronjob: CronJob = cronjob(recorded(9))  # noqa: RUF009 - a frozen model

    def __str__(self) -> str:
        return self.reason


def ended(*minutes: float, how: str = "Complete", **more: Any) -> tuple[Job, ...]:
    return tuple(job(minute, how, began=minute, **more) for minute in minutes)


NONE_KEPT = cronjob(recorded(9), successfulJobsHistoryLimit=0, failedJobsHistoryLimit=0)
UNRECORDED = cronjob(recorded(1), successfulJobsHistoryLimit=0, failedJobsHistoryLimit=0)
SUCCESS_ON_RECORD = cronjob(
    recorded(9, lastSuccessfulTime=wire(at(2))), successfulJobsHistoryLimit=0
)
PASTS = (
    Past("three that succeeded", ended(1, 2, 3), (1, 2, 3)),
    Past("the oldest of four", ended(4, 1, 3, 2), (2, 3, 4)),
    Past("one that failed", ended(1, 2, how="Failed"), (2,)),
    Past("both kinds apart", (*ended(1, 2, 3), *ended(4, 5, how="Failed")), (1, 2, 3, 5)),
    Past("those without start time first", (*ended(1, 2, 3), job(4, "Complete")), (1, 2, 3)),
    Past("the order is that of start times", (job(1, "Failed", began=8), *ended(5, how="Failed")),
         (1,)),
    Past("no history at all", (*ended(1, 2), *ended(3, how="Failed")), (), NONE_KEPT),
    Past("what runs is no history", (job(1), *ended(2)), (1,), NONE_KEPT),
    Past("the newest start until it is on record", ended(1, 2, 3), (3,), UNRECORDED),
    Past("older ones go though they are not on record", ended(2, 3), (3,), UNRECORDED),
    Past("once it is on record the newest may go", ended(1), (), UNRECORDED),
    Past("the newest success until it is on record", (*ended(1, ended=4), *ended(2, ended=3)), (1,),
         NONE_KEPT),
    Past("once the success is on record it may go", ended(1, ended=2), (), SUCCESS_ON_RECORD),
    Past("a job of no start at all", (job(1, "Failed", name="x"),), (), NONE_KEPT),
)  # fmt: skip


class TestHistory:
    @pytest.mark.parametrize("case", PASTS, ids=str)
    def test_the_oldest_beyond_the_limits_are_not_kept(self, case):
        desired = composed(case.cronjob, at(9.5), *case.jobs)

        assert kept(desired) == [job_name(minute) for minute in case.keeps]

    @given(
        st.lists(
            st.tuples(st.integers(1, 9), st.sampled_from(["", "Complete", "Failed"])),
            unique_by=lambda drawn: drawn[0],
        ),
        st.none() | st.integers(0, 9),
        st.integers(0, 2),
    )
    def test_what_the_status_does_not_tell_of_is_there_to_tell(self, drawn, last, limit):
        jobs = [job(minute, how) for minute, how in drawn]
        before = {} if last is None else recorded(last)
        cj = cronjob(before, successfulJobsHistoryLimit=limit, failedJobsHistoryLimit=limit)
        desired = composed(cj, at(9.5), *jobs)

        newest = max((minute for minute, _ in drawn), default=0)
        if newest > (last or 0):
            assert job_name(newest) in kept(desired)


class TestStatus:
    def test_of_nothing_it_tells_the_next_start(self):
        assert status(composed(cronjob(), at(0))) == {
            "activeCount": 0,
            "nextScheduleTime": wire(at(1)),
            "missed": 0,
        }

    def test_what_runs_is_referred_to_by_name(self):
        there = [job(2), job(1), job(3, "Complete"), job(4, "Failed"), job(5, going=True)]
        said = status(composed(cronjob(), at(5), *there))

        assert said["activeCount"] == 3
        assert said["active"] == [
            {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "namespace": "ns",
                "name": job_name(minute),
                "uid": f"uid-{minute}",
            }
            for minute in (1, 2, 5)
        ]

    @pytest.mark.parametrize(
        ("before", "there", "last"),
        [
            (None, (), None),
            (None, (3,), 3),
            (3, (), 3),
            (3, (1, 2), 3),
            (3, (5, 4), 5),
        ],
    )
    def test_the_last_start_never_goes_back(self, before, there, last):
        cj = cronjob({} if before is None else recorded(before))
        said = status(composed(cj, at(5.5), *(job(minute, "Complete") for minute in there)))

        assert said.get("lastScheduleTime") == (None if last is None else wire(at(last)))

    def test_a_start_that_is_only_being_made_is_not_told_yet(self):
        desired = composed(cronjob(recorded(1)), at(2))

        assert started(desired) == [job_name(2)]
        assert status(desired)["lastScheduleTime"] == wire(at(1))
        assert status(desired)["missed"] == 1

    def test_the_last_success_is_the_latest_of_those_there_and_never_goes_back(self):
        done, broke = job(1, "Complete", ended=2), job(3, "Failed", ended=4)
        before = {"lastSuccessfulTime": wire(at(9))}

        assert status(composed(cronjob(), at(5), done, broke))["lastSuccessfulTime"] == wire(at(2))
        assert status(composed(cronjob(before), at(5), done))["lastSuccessfulTime"] == wire(at(9))
        assert "lastSuccessfulTime" not in status(composed(cronjob(), at(5), job(1, "Complete")))

    def test_what_was_missed_is_counted_since_the_last_start_made(self):
        assert status(composed(cronjob(recorded(2)), at(7.5)))["missed"] == 5
        late = composed(cronjob(recorded(2), startingDeadlineSeconds=1), at(7.5))
        assert status(late)["missed"] == 5

    @pytest.mark.parametrize(
        ("spec", "minute", "verdict"),
        [
            ({}, 0, "True/Scheduled"),
            ({"suspend": True}, 0, "True/Suspended"),
            ({"schedule": "0 0 30 2 *"}, 0, "False/NeverAgain"),
            ({"schedule": "every minute"}, 0, "False/UnparseableSchedule"),
            ({"schedule": ""}, 0, "False/UnparseableSchedule"),
            ({"schedule": "0 0 * * 7"}, 0, "False/UnparseableSchedule"),
            ({"timeZone": "Mars/Olympus"}, 0, "False/UnknownTimeZone"),
            ({"startingDeadlineSeconds": 0}, 0, "False/NeverInTime"),
            ({"schedule": "TZ=UTC @daily", "timeZone": "UTC"}, 0, "False/UnparseableSchedule"),
            ({}, 101, "True/Scheduled"),
        ],
    )
    def test_ready_says_whether_starts_are_made(self, spec, minute, verdict):
        desired = composed(cronjob(**spec), at(minute))

        assert says(desired) == verdict
        stalled = verdict.partition("/")[2] if verdict.startswith("False") else ""
        assert says(desired, "Stalled") == (f"True/{stalled}" if stalled else "")

    @pytest.mark.parametrize(
        "spec", [{"suspend": True}, {"schedule": "junk"}, {"startingDeadlineSeconds": 0}]
    )
    def test_without_starts_none_is_next_and_none_is_missed(self, spec):
        said = status(composed(cronjob(recorded(1), **spec), at(5)))

        assert said == {"activeCount": 0, "lastScheduleTime": wire(at(1))}

    def test_a_schedule_that_cannot_be_read_is_quoted_as_the_original_does(self):
        desired = composed(cronjob(schedule="61 * * * *"), at(5))

        assert message(desired).startswith('Unparseable schedule "61 * * * *": ')
        assert "minute" in message(desired)

    def test_a_zone_that_is_none_is_told_without_a_word_about_the_schedule(self):
        desired = composed(cronjob(timeZone="europe/berlin"), at(5))

        assert message(desired) == (
            'Unknown time zone "europe/berlin": the IANA database has none of this name;'
            " it has Europe/Berlin"
        )

    @pytest.mark.parametrize("how", [{"timeZone": "Mars"}, {"prefix": "CRON_TZ=Mars "}], ids=str)
    def test_a_bad_schedule_and_a_bad_zone_are_both_told(self, how):
        prefix = how.pop("prefix", "")
        desired = composed(cronjob(schedule=f"{prefix}61 * * * *", **how), at(5))

        assert says(desired) == "False/UnparseableSchedule"
        assert "minute '61': 61 is above 59" in message(desired)
        assert "the IANA database has none of this name" in message(desired)

    def test_a_zone_given_twice_is_told_as_that(self):
        desired = composed(cronjob(schedule="TZ=UTC @daily", timeZone="UTC"), at(5))

        assert message(desired).endswith("the schedule names a zone of its own")

    def test_jobs_go_on_and_are_pruned_though_the_schedule_cannot_be_read(self):
        there = [job(minute, "Complete", began=minute) for minute in (1, 2, 3, 4)]
        cj = cronjob(recorded(4), schedule="junk")
        desired = composed(cj, at(5), *there, job(5))

        assert kept(desired) == sorted(job_name(minute) for minute in (2, 3, 4, 5))
        assert status(desired)["activeCount"] == 1


class TestRemarks:
    def test_a_start_that_was_missed_is_told_by_its_time(self):
        (notice,) = remarks(composed(cronjob(startingDeadlineSeconds=1), at(7.5)))

        assert notice.type == "Warning"
        assert notice.note == (
            "the start of 2026-01-01T12:07:00Z was missed: its deadline has passed"
        )

    def test_a_start_that_waits_is_told_with_what_it_waits_for(self):
        (notice,) = remarks(composed(cronjob(concurrencyPolicy="Forbid"), at(2), job(1)))

        assert notice.type == "Normal"
        assert (
            notice.note == f"the start of 2026-01-01T12:02:00Z waits: {job_name(1)} has not ended"
        )
