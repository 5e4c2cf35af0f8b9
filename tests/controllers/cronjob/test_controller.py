"""CronJob: what one pass makes of the Jobs there are, and what it tells."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from controllers.crons import (
    NOON,
    TEMPLATE,
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
    told,
    wire,
)
from hedgerow.contract import Create
from hedgerow.controllers.cronjob.controller import missed_in_a_row
from hedgerow.objects import ObjectRef
from hedgerow.plan.writes import declare
from hedgerow_schemas.cronjob import CronJob
from hedgerow_schemas.job import Job


def creation(cj: CronJob, minute: float = 1) -> Create:
    (child,) = composed(cj, at(minute)).children
    assert isinstance(child, Create)
    return child


class TestJobs:
    """The Job of a start, as the original makes it."""

    def test_it_is_named_after_the_second_of_its_start(self):
        assert creation(cronjob()).name == f"demo-{int(NOON.timestamp()) + 60}"

    def test_labels_and_annotations_are_those_of_the_template_and_the_start(self):
        assert creation(cronjob()).fields["metadata"] == {
            "labels": {"team": "a"},
            "annotations": {
                "note": "b",
                "batch.tutorial.kubebuilder.io/scheduled-at": "2026-01-01T12:01:00Z",
            },
        }

    def test_its_spec_is_the_templates_unaltered(self):
        before = copy.deepcopy(TEMPLATE)

        assert creation(cronjob()).fields["spec"] == TEMPLATE["spec"] == before["spec"]
        assert before == TEMPLATE

    @pytest.mark.parametrize("template", [{}, {"metadata": None, "spec": None}, {"metadata": {}}])
    def test_a_template_may_leave_all_of_it_out(self, template):
        fields = creation(cronjob(jobTemplate=template)).fields

        assert (fields["metadata"]["labels"], fields["spec"]) == ({}, {})

    def test_what_else_a_template_says_of_metadata_is_dropped_as_in_the_original(self):
        given = {"name": "x", "namespace": "y", "finalizers": ["a/b"], "generateName": "z-"}
        fields = creation(cronjob(jobTemplate={"metadata": given})).fields

        assert fields["metadata"].keys() == {"labels", "annotations"}

    def test_a_template_cannot_say_when_it_was_scheduled(self):
        forged = {"batch.tutorial.kubebuilder.io/scheduled-at": "2030-01-01T00:00:00Z"}
        fields = creation(cronjob(jobTemplate={"metadata": {"annotations": forged}})).fields

        assert list(fields["metadata"]["annotations"].values()) == ["2026-01-01T12:01:00Z"]

    def test_it_is_controlled_by_the_cronjob(self):
        cj = cronjob()
        meta = cj.metadata
        owner = ObjectRef(cj.api, meta.namespace, meta.name, meta.uid)

        assert declare(creation(cj), owner, "cronjob")["metadata"]["ownerReferences"] == [
            {
                "apiVersion": "batch.tutorial.kubebuilder.io/v1",
                "kind": "CronJob",
                "name": "demo",
                "uid": "u",
                "controller": True,
            }
        ]

    def test_jobs_that_are_there_are_never_declared_again(self):
        there = [job(1), job(2, "Complete"), job(3, "Failed"), job(4, going=True)]
        desired = composed(cronjob(recorded(4)), at(4.5), *there)

        assert started(desired) == []
        assert kept(desired) == [each.name for each in there]


@dataclass(frozen=True)
class Pass:
    """What one pass starts and keeps; minutes stand for Jobs."""

    reason: str
    cronjob: CronJob
    minute: float
    jobs: tuple[Job, ...] = ()
    starts: float | None = None
    keeps: tuple[float, ...] = ()
    tells: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.reason


def forbid(**more: Any) -> CronJob:
    return cronjob(concurrencyPolicy="Forbid", **more)


def replace(**more: Any) -> CronJob:
    return cronjob(concurrencyPolicy="Replace", **more)


RUNS = job(1)
DONE, BROKE = job(1, "Complete"), job(1, "Failed")
ENDED_LATE = ("MissedStart",)
PASSES = (
    Pass("nothing is due yet", cronjob(), 0.9),
    Pass("due at the second", cronjob(), 1, starts=1),
    Pass("of several missed the latest alone is made", cronjob(), 5.5, starts=5),
    Pass("what is on record is not made again", cronjob(recorded(1)), 1.5),
    Pass("nor what a job was made for", cronjob(), 1.5, (RUNS,), keeps=(1,)),
    Pass("the record holds though the job is gone", cronjob(recorded(3)), 3.9),
    Pass("the next one after the record", cronjob(recorded(3)), 4, starts=4),
    Pass("a record older than the resource", cronjob(recorded(-500)), 5.5, starts=5),
    Pass("a record of another clock's next minute holds", cronjob(recorded(5)), 4),
    Pass("a record further ahead is none", cronjob(recorded(9)), 4, tells=("RecordAhead",)),
    Pass("no creation time: nothing was missed", cronjob(created=None), 7),
    Pass("a deadline of nothing", cronjob(startingDeadlineSeconds=0), 1),
    Pass("in time", cronjob(startingDeadlineSeconds=30), 1.49, starts=1),
    Pass("late by the second", cronjob(startingDeadlineSeconds=30), 1.5, tells=ENDED_LATE),
    Pass("too late", cronjob(startingDeadlineSeconds=30), 1.75, tells=ENDED_LATE),
    Pass("the latest in time", cronjob(startingDeadlineSeconds=30), 500.1, starts=500),
    Pass("suspended", cronjob(suspend=True), 5),
    Pass("suspended, late", cronjob(suspend=True, startingDeadlineSeconds=1), 5.5),
    Pass("suspended, and one runs", forbid(suspend=True), 5, (RUNS,), keeps=(1,)),
    Pass("suspended: nothing is replaced", replace(suspend=True), 5, (RUNS,), keeps=(1,)),
    Pass("resumed: the latest start", cronjob(recorded(1), suspend=False), 9, starts=9),
    Pass("allowed beside another", cronjob(), 2, (RUNS,), starts=2, keeps=(1,)),
    Pass("forbidden beside another", forbid(), 2, (RUNS,), keeps=(1,), tells=("JobAlreadyActive",)),
    Pass("forbidden beside one that is going", forbid(), 2, (job(1, going=True),), keeps=(1,),
         tells=("JobAlreadyActive",)),
    Pass("not forbidden beside what succeeded", forbid(), 2, (DONE,), starts=2, keeps=(1,)),
    Pass("not forbidden beside what failed", forbid(), 2, (BROKE,), starts=2, keeps=(1,)),
    Pass("forbidden and late", forbid(startingDeadlineSeconds=5), 2.5, (RUNS,), keeps=(1,),
         tells=ENDED_LATE),
    Pass("nothing due, nothing forbidden", forbid(), 1.5, (RUNS,), keeps=(1,)),
    Pass("replacing begins with deleting", replace(), 3, (job(1), job(2)), keeps=()),
    Pass("replaced ones going", replace(), 2, (job(1, going=True),), starts=2, keeps=(1,)),
    Pass("all but one going", replace(), 3, (job(1, going=True), job(2)), keeps=(1,)),
    Pass("nothing left to replace", replace(status=recorded(1)), 2, starts=2),
    Pass("what has ended is not replaced", replace(), 3, (DONE, job(2, "Failed")), starts=3,
         keeps=(1, 2)),
    Pass("nothing due, nothing replaced", replace(), 1.5, (RUNS,), keeps=(1,)),
    Pass("too late to replace", replace(startingDeadlineSeconds=5), 2.5, (RUNS,), keeps=(1,),
         tells=ENDED_LATE),
)  # fmt: skip


class TestPasses:
    @pytest.mark.parametrize("case", PASSES, ids=str)
    def test_a_pass_starts_and_keeps(self, case):
        desired = composed(case.cronjob, at(case.minute), *case.jobs)

        assert started(desired) == ([] if case.starts is None else [job_name(case.starts)])
        assert kept(desired) == [job_name(minute) for minute in case.keeps]
        assert [reason for _, reason in told(desired)] == list(case.tells)

    def test_a_job_that_this_process_made_is_not_made_again_though_it_is_gone(self):
        made = frozenset({("Job", job_name(1))})
        desired = composed(cronjob(), at(1.5), made=made)

        assert started(desired) == []
        assert status(desired)["lastScheduleTime"] == wire(at(1))


class TestWaking:
    @pytest.mark.parametrize("minute", [0, 0.5, 1, 1.999])
    def test_it_looks_again_at_the_very_next_start(self, minute):
        desired = composed(cronjob(), at(minute))

        assert at(minute) + desired.requeue_after == at(int(minute) + 1)

    @pytest.mark.parametrize(
        "cj",
        [
            cronjob(suspend=True),
            cronjob(schedule="junk"),
            cronjob(schedule="0 0 30 2 *"),
            cronjob(startingDeadlineSeconds=0),
        ],
        ids=["suspended", "unparsable", "never", "never in time"],
    )
    def test_without_a_next_start_it_waits_for_a_change(self, cj):
        assert composed(cj, at(0)).requeue_after is None

    def test_a_start_that_waits_or_was_late_does_not_keep_it_busy(self):
        blocked = composed(forbid(), at(2.25), job(1))
        late = composed(cronjob(startingDeadlineSeconds=1), at(2.25))

        assert blocked.requeue_after == late.requeue_after == timedelta(seconds=45)


class TestManyMissed:
    """However many starts were missed, the newest is made; the rest are counted and told of."""

    def test_the_newest_of_more_than_a_hundred_is_made(self):
        desired = composed(cronjob(), at(101))

        assert started(desired) == [job_name(101)]
        assert says(desired) == "True/Scheduled"
        assert says(desired, "Stalled") == ""
        assert status(desired)["missed"] == 101
        assert status(desired)["nextScheduleTime"] == wire(at(102))

    def test_once_it_is_made_the_rest_are_counted_and_told_of_once(self):
        made = composed(cronjob(), at(101.1), job(101))

        assert status(made)["missed"] == 100
        assert told(made) == [("Warning", "TooManyMissedTimes")]
        assert remarks(made)[0].note == (
            "more than 100 starts since 2026-01-01T12:00:00Z were missed: hedgerow makes up for"
            " the newest only. Set or decrease .spec.startingDeadlineSeconds, or check the clock"
        )
        on_record = composed(cronjob(recorded(101, missed=100)), at(101.2), job(101))
        assert (status(on_record)["missed"], told(on_record)) == (100, [])
        following = composed(cronjob(recorded(101, missed=100)), at(102.1), job(101), job(102))
        assert (status(following)["missed"], told(following)) == (0, [])

    def test_it_is_told_of_though_the_next_start_came_before_the_status_was_written(self):
        desired = composed(cronjob(), at(103.5), job(101), job(102), job(103))
        gone = composed(cronjob(), at(103.5), made=frozenset({("Job", job_name(103))}))

        assert status(desired)["missed"] == 100
        assert told(desired) == told(gone) == [("Warning", "TooManyMissedTimes")]

    def test_where_another_manager_holds_the_record_jobs_tell_what_came_before(self):
        field = {"object": "CronJob/demo", "path": ".status.lastScheduleTime", "manager": "main"}
        held = cronjob(recorded(0, contested=[field]))
        desired = composed(held, at(500.5), job(498), job(499), job(500))

        assert (status(desired)["missed"], told(desired)) == (0, [])

    def test_a_hundred_are_nothing_to_warn_of(self):
        assert told(composed(cronjob(), at(100))) == []
        assert told(composed(cronjob(), at(100.1), job(100))) == []

    @pytest.mark.parametrize("deadline", [1, 60, 6000])
    def test_what_the_deadline_drops_is_nothing_to_warn_of(self, deadline):
        cj = cronjob(startingDeadlineSeconds=deadline)

        assert started(composed(cj, at(5000))) == [job_name(5000)]
        assert told(composed(cj, at(5000))) == told(composed(cj, at(5000), job(5000))) == []
        assert status(composed(cj, at(5000), job(5000)))["missed"] == 4999

    def test_more_than_a_hundred_within_the_deadline_are(self):
        cj = cronjob(startingDeadlineSeconds=6060)

        assert told(composed(cj, at(5000))) == [("Warning", "TooManyMissedTimes")]
        assert told(composed(cj, at(5000), job(5000))) == [("Warning", "TooManyMissedTimes")]

    def test_a_job_that_hung_for_more_than_a_hundred_starts_is_followed_by_the_newest(self):
        hung = composed(forbid(status=recorded(1)), at(150.5), job(1))
        over = composed(forbid(status=recorded(1)), at(150.5), job(1, "Complete"))

        assert started(hung) == []
        assert told(hung) == [("Warning", "TooManyMissedTimes"), ("Normal", "JobAlreadyActive")]
        assert started(over) == [job_name(150)]

    def test_the_note_is_the_same_while_it_lasts_so_that_there_is_one_event(self):
        notes = {
            remarks(composed(forbid(status=recorded(1)), at(minute), job(1)))[0].note
            for minute in (150, 160, 170)
        }
        made = composed(forbid(status=recorded(1)), at(170), job(1, "Complete"), job(170))

        assert {remarks(made)[0].note} == notes

    def test_an_edit_of_the_schedule_makes_the_newest_start_of_the_new_one(self):
        daily = cronjob(recorded(0), schedule="* * * * *")

        assert started(composed(daily, at(9 * 60))) == [job_name(9 * 60)]

    def test_what_was_missed_before_is_not_told_of_while_suspended(self):
        desired = composed(cronjob(suspend=True), at(999))

        assert says(desired) == "True/Suspended"
        assert told(desired) == []

    def test_jobs_are_kept_and_outdated_ones_pruned_all_the_same(self):
        ended = [job(minute, "Complete", began=minute) for minute in range(1, 6)]
        desired = composed(cronjob(recorded(5)), at(999), *ended, job(0.5))

        assert kept(desired) == sorted(job_name(minute) for minute in (0.5, 3, 4, 5))

    def test_a_start_ahead_of_a_correction_is_not_counted_as_missed(self):
        desired = composed(cronjob(recorded(10_000)), at(500.5), job(1, "Complete"))

        assert status(desired)["missed"] == 0


@dataclass(frozen=True)
class Held:
    """What is said of a CronJob whose Jobs of these minutes have not ended."""

    reason: str
    cronjob: CronJob
    minute: float
    jobs: tuple[float, ...]
    says: str
    counts: int = 0
    starts: bool = False

    def __str__(self) -> str:
        return self.reason


ON_TIME = "True/Scheduled"
IN_ROW = "False/JobAlreadyActive"
LIMITED = "False/ActiveLimitReached"
ROWS = (
    Held("one waits", forbid(status=recorded(1)), 2, (1,), ON_TIME),
    Held("two were missed", forbid(status=recorded(1)), 3.9, (1,), ON_TIME),
    Held("three in a row", forbid(status=recorded(1)), 4, (1,), IN_ROW, 3),
    Held("and more", forbid(status=recorded(1)), 20, (1,), IN_ROW, 19),
    Held("between the deadline and the next start",
         forbid(status=recorded(1), startingDeadlineSeconds=5), 4.5, (1,), IN_ROW, 3),
    Held("since the creation", forbid(), 5, (0.5,), IN_ROW, 5),
    Held("it is being deleted and stays", forbid(status=recorded(1)), 9, (1,), IN_ROW, 8),
    Held("the Job has ended", forbid(status=recorded(1)), 9, (), ON_TIME, starts=True),
    Held("suspended", forbid(status=recorded(1), suspend=True), 9, (1,), "True/Suspended"),
    Held("allowed", cronjob(recorded(1)), 9, (1,), ON_TIME, starts=True),
    Held("replaced", replace(status=recorded(1)), 9, (1,), ON_TIME),
    Held("the operator was down, and the deadline passed",
         cronjob(recorded(1), startingDeadlineSeconds=5), 9.5, (), ON_TIME),
    Held("the limit", cronjob(recorded(1), activeLimit=1), 2, (1,), LIMITED, 1),
    Held("the limit, between the deadline and the next start",
         cronjob(recorded(1), activeLimit=1, startingDeadlineSeconds=5), 4.5, (1,), LIMITED, 3),
    Held("a deadline of nothing", forbid(status=recorded(1), startingDeadlineSeconds=0), 9, (1,),
         "False/NeverInTime"),
)  # fmt: skip


class TestMissedInARow:
    """A start may wait for a Job; that none is made any more is another matter."""

    @pytest.mark.parametrize("case", ROWS, ids=str)
    def test_ready_and_the_metric_say_so(self, case):
        jobs = [job(minute, going="deleted" in case.reason) for minute in case.jobs]
        desired = composed(case.cronjob, at(case.minute), *jobs)

        assert (says(desired), bool(started(desired))) == (case.says, case.starts)
        assert missed_in_a_row(desired.status) == case.counts
        if case.says == IN_ROW:
            assert message(desired) == (
                f"{case.counts} starts in a row were missed: Job {jobs[0].name} has not ended, and"
                " with concurrencyPolicy Forbid none is started beside it"
            )

    def test_several_jobs_are_counted(self):
        desired = composed(forbid(status=recorded(2)), at(9), job(1), job(2))

        assert f"Job {job_name(1)} has not ended (and 1 more), and" in message(desired)

    def test_it_is_ready_again_with_the_next_start(self):
        desired = composed(forbid(status=recorded(1)), at(9.1), job(1, "Complete"), job(9))

        assert says(desired) == ON_TIME
        assert missed_in_a_row(desired.status) == 0


class TestNeverInTime:
    """With a deadline of 0 nothing starts: one condition says so, and nothing else does."""

    @pytest.mark.parametrize("minute", [0, 0.5, 1, 500])
    def test_it_is_said_once(self, minute):
        desired = composed(cronjob(startingDeadlineSeconds=0), at(minute))

        assert says(desired, "Stalled") == "True/NeverInTime"
        assert told(desired) == []
        assert status(desired) == {"activeCount": 0}
