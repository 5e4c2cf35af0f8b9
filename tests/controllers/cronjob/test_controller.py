"""CronJob: what one pass makes of the Jobs there are, and what it tells."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from controllers.crons import (
    NOON,
    TEMPLATE,
    Object,
    Row,
    at,
    composed,
    cronjob,
    job,
    job_name,
    kept,
    recorded,
    remarks,
    row,
    started,
)
from hedgerow.contract import Create
from hedgerow.objects import ObjectRef
from hedgerow.plan.writes import declare
from hedgerow_schemas.cronjob import CronJob
from hedgerow_schemas.job import Job
from support.objects.parts import Part


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


def passed(
    name: str,
    cj: CronJob,
    minute: float,
    *jobs: Job,
    starts: float | None = None,
    keeps: tuple[float, ...] = (),
    tells: tuple[str, ...] = (),
) -> Row:
    """Return a row of what one pass starts, keeps and tells; it does nothing else."""
    return row(name, cj, minute, *jobs, starts=starts, keeps=keeps, tells=tells)


def forbid(**more: Any) -> CronJob:
    return cronjob(concurrencyPolicy="Forbid", **more)


def replace(**more: Any) -> CronJob:
    return cronjob(concurrencyPolicy="Replace", **more)


RUNS = job(1)
DONE, BROKE = job(1, "Complete"), job(1, "Failed")
ENDED_LATE = ("MissedStart",)
PASSES = (
    passed("nothing is due yet", cronjob(), 0.9),
    passed("due at the second", cronjob(), 1, starts=1),
    passed("of several missed the latest alone is made", cronjob(), 5.5, starts=5),
    passed("what is on record is not made again", cronjob(recorded(1)), 1.5),
    passed("nor what a job was made for", cronjob(), 1.5, RUNS, keeps=(1,)),
    passed("the record holds though the job is gone", cronjob(recorded(3)), 3.9),
    passed("the next one after the record", cronjob(recorded(3)), 4, starts=4),
    passed("a record older than the resource", cronjob(recorded(-500)), 5.5, starts=5),
    passed("a record of another clock's next minute holds", cronjob(recorded(5)), 4),
    passed("a record further ahead is none", cronjob(recorded(9)), 4, tells=("RecordAhead",)),
    passed("no creation time: nothing was missed", cronjob(created=None), 7),
    passed("a deadline of nothing", cronjob(startingDeadlineSeconds=0), 1),
    passed("in time", cronjob(startingDeadlineSeconds=30), 1.49, starts=1),
    passed("late by the second", cronjob(startingDeadlineSeconds=30), 1.5, tells=ENDED_LATE),
    passed("too late", cronjob(startingDeadlineSeconds=30), 1.75, tells=ENDED_LATE),
    passed("the latest in time", cronjob(startingDeadlineSeconds=30), 500.1, starts=500),
    passed("suspended", cronjob(suspend=True), 5),
    passed("suspended, late", cronjob(suspend=True, startingDeadlineSeconds=1), 5.5),
    passed("suspended, and one runs", forbid(suspend=True), 5, RUNS, keeps=(1,)),
    passed("suspended: nothing is replaced", replace(suspend=True), 5, RUNS, keeps=(1,)),
    passed("resumed: the latest start", cronjob(recorded(1), suspend=False), 9, starts=9),
    passed("allowed beside another", cronjob(), 2, RUNS, starts=2, keeps=(1,)),
    passed("forbidden beside another", forbid(), 2, RUNS, keeps=(1,), tells=("JobAlreadyActive",)),
    passed("forbidden beside one that is going", forbid(), 2, job(1, going=True), keeps=(1,),
           tells=("JobAlreadyActive",)),
    passed("not forbidden beside what succeeded", forbid(), 2, DONE, starts=2, keeps=(1,)),
    passed("not forbidden beside what failed", forbid(), 2, BROKE, starts=2, keeps=(1,)),
    passed("forbidden and late", forbid(startingDeadlineSeconds=5), 2.5, RUNS, keeps=(1,),
           tells=ENDED_LATE),
    passed("nothing due, nothing forbidden", forbid(), 1.5, RUNS, keeps=(1,)),
    passed("replacing begins with deleting", replace(), 3, job(1), job(2), keeps=()),
    passed("replaced ones going", replace(), 2, job(1, going=True), starts=2, keeps=(1,)),
    passed("all but one going", replace(), 3, job(1, going=True), job(2), keeps=(1,)),
    passed("nothing left to replace", replace(status=recorded(1)), 2, starts=2),
    passed("what has ended is not replaced", replace(), 3, DONE, job(2, "Failed"), starts=3,
           keeps=(1, 2)),
    passed("nothing due, nothing replaced", replace(), 1.5, RUNS, keeps=(1,)),
    passed("too late to replace", replace(startingDeadlineSeconds=5), 2.5, RUNS, keeps=(1,),
           tells=ENDED_LATE),
)  # fmt: skip


WAKING = (
    row("what this process made is not made again though it is gone", cronjob(), 1.5, made=(1,),
        starts=None, last=1),
    *(
        row(f"it looks again at the very next start: {minute}", cronjob(), minute,
            waits=60 - 60 * (minute % 1))
        for minute in (0, 0.5, 1, 1.75)
    ),
    *(
        row(f"without a next start it waits for a change: {spec}", cronjob(**spec), 0, waits=None)
        for spec in (
            {"suspend": True},
            {"schedule": "junk"},
            {"schedule": "0 0 30 2 *"},
            {"startingDeadlineSeconds": 0},
        )
    ),
    row("a start that waits does not keep it busy", forbid(), 2.25, job(1), waits=45),
    row("a start that was late does not", cronjob(startingDeadlineSeconds=1), 2.25, waits=45),
)  # fmt: skip


class TestPasses:
    @pytest.mark.parametrize("one", [*PASSES, *WAKING], ids=str)
    def test_a_pass_comes_to(self, one):
        one.check()


MANY = (
    "more than 100 starts since 2026-01-01T12:00:00Z were missed: hedgerow makes up for the newest"
    " only. Set or decrease .spec.startingDeadlineSeconds, or check the clock"
)
TOO_MANY = ("TooManyMissedTimes",)
HUNG = forbid(status=recorded(1))
KEEPS_RECORD = {"object": "CronJob/demo", "path": ".status.lastScheduleTime", "manager": "main"}
ON_RECORD = cronjob(recorded(101, missed=100))
ENDED = [job(minute, "Complete", began=minute) for minute in range(1, 6)]
MISSED = (
    row("the newest of more than a hundred is made", cronjob(), 101, starts=101,
        ready="True/Scheduled", stalled="", missed=101, next=102),
    row("once it is made the rest are counted and told of", cronjob(), 101.1, job(101), missed=100,
        warns=TOO_MANY, notes=(MANY,)),
    row("once", ON_RECORD, 101.2, job(101), missed=100, tells=()),
    row("until the next start", ON_RECORD, 102.1, job(101), job(102), missed=0, tells=()),
    row("though the next start came before the status was written", cronjob(), 103.5, job(101),
        job(102), job(103), missed=100, warns=TOO_MANY),
    row("though its Job is gone", cronjob(), 103.5, made=(103,), warns=TOO_MANY),
    row("where another manager holds the record Jobs tell what came before",
        cronjob(recorded(0, contested=[KEEPS_RECORD])), 500.5, job(498), job(499), job(500),
        missed=0, tells=()),
    row("a hundred are nothing to warn of", cronjob(), 100, tells=()),
    row("nor once the newest is made", cronjob(), 100.1, job(100), tells=()),
    *(
        one
        for deadline in (1, 60, 6000)
        for cj in [cronjob(startingDeadlineSeconds=deadline)]
        for one in (
            row(f"nor what a deadline of {deadline} drops", cj, 5000, starts=5000, tells=()),
            row(f"and then, {deadline}", cj, 5000, job(5000), tells=(), missed=4999),
        )
    ),
    *(
        row(f"more than a hundred within the deadline are, {len(jobs)} made",
            cronjob(startingDeadlineSeconds=6060), 5000, *jobs, warns=TOO_MANY)
        for jobs in ((), (job(5000),))
    ),
    row("a Job that hung for more than a hundred starts", HUNG, 150.5, job(1), starts=None,
        warns=(*TOO_MANY, "Normal JobAlreadyActive")),
    row("is followed by the newest", HUNG, 150.5, job(1, "Complete"), starts=150),
    row("an edit of the schedule makes the newest start of the new one", cronjob(recorded(0)),
        9 * 60, starts=9 * 60),
    row("what was missed before is not told of while suspended", cronjob(suspend=True), 999,
        ready="True/Suspended", tells=()),
    row("Jobs are kept and outdated ones pruned all the same", cronjob(recorded(5)), 999, *ENDED,
        job(0.5), keeps=(0.5, 3, 4, 5)),
    row("a start ahead of a correction is not counted", cronjob(recorded(10_000)), 500.5,
        job(1, "Complete"), missed=0),
)  # fmt: skip


class TestManyMissed:
    """However many starts were missed, the newest is made; the rest are counted and told of."""

    @pytest.mark.parametrize("one", MISSED, ids=str)
    def test_a_pass_comes_to(self, one):
        one.check()

    def test_the_note_is_the_same_while_it_lasts_so_that_there_is_one_event(self):
        notes = {remarks(composed(HUNG, at(minute), job(1)))[0].note for minute in (150, 160, 170)}
        made = composed(HUNG, at(170), job(1, "Complete"), job(170))

        assert {remarks(made)[0].note} == notes


ON_TIME = "True/Scheduled"
IN_ROW = "False/JobAlreadyActive"
LIMITED = "False/ActiveLimitReached"


def in_row(count: int, others: str = "") -> Object:
    """Return what is said of starts that are missed because the Job of minute 1 has not ended."""
    words = f"{count} starts in a row were missed: Job {job_name(1)} has not ended{others}, and"
    words += " with concurrencyPolicy Forbid none is started beside it"
    return {"ready": IN_ROW, "in_a_row": count, "starts": None, "why": words}


def deadline(seconds: int) -> CronJob:
    return forbid(status=recorded(1), startingDeadlineSeconds=seconds)


ONE = cronjob(recorded(1), activeLimit=1)
WAITS = {"ready": ON_TIME, "in_a_row": 0, "starts": None}
GOES_ON = {"ready": ON_TIME, "in_a_row": 0}
# A start may wait for a Job; that none is made any more is another matter.
ROWS = (
    row("one waits", HUNG, 2, job(1), **WAITS),
    row("two were missed", HUNG, 3.9, job(1), **WAITS),
    row("three in a row", HUNG, 4, job(1), **in_row(3)),
    row("and more", HUNG, 20, job(1), **in_row(19)),
    row("between the deadline and the next start", deadline(5), 4.5, job(1), **in_row(3)),
    row("since the creation", forbid(), 5, job(0.5), ready=IN_ROW, in_a_row=5, starts=None,
        why=Part(f"5 starts in a row were missed: Job {job_name(0.5)} has not ended, and")),
    row("it is being deleted and stays", HUNG, 9, job(1, going=True), **in_row(8)),
    row("the Job has ended", HUNG, 9, **GOES_ON, starts=9),
    row("suspended", forbid(status=recorded(1), suspend=True), 9, job(1), ready="True/Suspended",
        in_a_row=0, starts=None),
    row("allowed", cronjob(recorded(1)), 9, job(1), **GOES_ON, starts=9),
    row("replaced", replace(status=recorded(1)), 9, job(1), **WAITS),
    row("the operator was down, and the deadline passed",
        cronjob(recorded(1), startingDeadlineSeconds=5), 9.5, **WAITS),
    row("the limit", ONE, 2, job(1), ready=LIMITED, in_a_row=1, starts=None),
    row("the limit, between the deadline and the next start",
        cronjob(recorded(1), activeLimit=1, startingDeadlineSeconds=5), 4.5, job(1),
        ready=LIMITED, in_a_row=3, starts=None),
    row("a deadline of nothing", deadline(0), 9, job(1), ready="False/NeverInTime", in_a_row=0,
        starts=None),
    row("several Jobs are counted", forbid(status=recorded(2)), 9, job(1), job(2),
        **in_row(7, " (and 1 more)")),
    row("it is ready again with the next start", HUNG, 9.1, job(1, "Complete"), job(9), **WAITS),
    # With a deadline of 0 nothing starts: one condition says so, and nothing else does.
    *(
        row(f"never in time: {minute}", cronjob(startingDeadlineSeconds=0), minute, tells=(),
            stalled="True/NeverInTime", status={"activeCount": 0})
        for minute in (0, 0.5, 1, 500)
    ),
)  # fmt: skip


class TestMissedInARow:
    @pytest.mark.parametrize("one", ROWS, ids=str)
    def test_a_pass_comes_to(self, one):
        one.check()
