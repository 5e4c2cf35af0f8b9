"""Foreign Jobs: one that somebody else made decides nothing, whatever marks of ours it has.

Whoever may create Jobs may write every name, label, annotation and owner reference. By these alone
a Job is one of the CronJob's children; who made it is told by its managed fields.
"""

from __future__ import annotations

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
from hedgerow.contract import Observed
from hedgerow.controllers.cronjob.controller import compose
from hedgerow_schemas.job import Job

EVIL = "evil"


def made_by(manager: str, found: Job, **meta: Any) -> Job:
    """The same Job, as a field manager created it."""
    entries = [{"manager": manager, "operation": "Update", "fieldsV1": {"f:spec": {}}}]
    return Job(
        {**found.raw, "metadata": {**found.raw["metadata"], "managedFields": entries, **meta}}
    )


def ours(found: Job) -> Job:
    return made_by("hedgerow-cronjob", found)


def foreign(minute: float, how: str = "", **more: Any) -> Job:
    """A Job of somebody else, dated by name or annotation to a minute."""
    return made_by(EVIL, job(minute, how, **more), uid=f"theirs-{minute:g}")


MARKS = {
    "the annotation of the start": {"name": "theirs"},
    "the annotation of a later one": {"name": "theirs", "minute": 99.0},
}


class TestStarts:
    @pytest.mark.parametrize("how", ["", "Complete", "Failed"])
    @pytest.mark.parametrize("marks", MARKS.values(), ids=MARKS)
    @pytest.mark.parametrize("policy", ["Allow", "Forbid", "Replace"])
    def test_none_is_held_back_or_taken_as_made_and_the_job_stays(
        self, policy: str, marks: dict[str, Any], how: str
    ):
        there = foreign(marks.get("minute", 3), how, name=marks["name"])
        desired = composed(cronjob(recorded(2), concurrencyPolicy=policy), at(3), there)

        assert started(desired) == [job_name(3)]
        assert kept(desired) == ["theirs"]
        assert "active" not in status(desired)
        assert told(desired) == []
        assert says(desired, "DatedAhead") == ""

    def test_it_does_not_count_among_those_that_may_run(self):
        there = [foreign(minute, name=f"theirs-{minute}") for minute in range(9)]

        assert started(composed(cronjob(recorded(2), activeLimit=1), at(3), *there))

    def test_one_of_the_very_name_is_no_start_and_is_told(self):
        desired = composed(cronjob(recorded(2)), at(3), foreign(3, "Complete"))

        assert (started(desired), kept(desired)) == ([], [job_name(3)])
        assert status(desired)["lastScheduleTime"] == wire(at(2))
        assert says(desired, "Stalled") == "True/NameTaken"
        assert job_name(3) in message(desired)
        assert started(composed(cronjob(recorded(2)), at(4), foreign(3, "Complete"))) == [
            job_name(4)
        ]

    def test_another_of_the_name_of_one_that_ran_does_not_count_as_running(self):
        """It has no owner reference, and only its name is that which the status lists."""
        active = [{"name": job_name(2), "uid": "uid-2"}]
        cj = cronjob(recorded(2, active=active), concurrencyPolicy="Forbid")
        for stray, held in ((job(2), True), (made_by(EVIL, job(2), uid="another"), False)):
            desired = compose(cj, Observed(at(3), strays=(stray,)))
            assert started(desired) == ([] if held else [job_name(3)])
            assert bool(says(desired, "JobAstray")) is held


class TestHistory:
    def test_none_of_ours_goes_because_of_them(self):
        ended = [ours(job(minute, "Failed", began=minute)) for minute in (1, 2)]
        theirs = [foreign(3 + n, "Failed", began=3 + n, name=f"theirs-{n}") for n in range(5)]
        cj = cronjob(recorded(2), failedJobsHistoryLimit=2)

        assert kept(composed(cj, at(2.5), *ended, *theirs)) == sorted(
            one.name for one in (*ended, *theirs)
        )

    def test_no_success_is_recorded_of_them(self):
        first = wire(at(1))
        cj = cronjob(recorded(1, lastSuccessfulTime=first))
        theirs = foreign(1, "Complete", began=1, ended=1.5, name="theirs")

        assert status(composed(cj, at(1.9), theirs))["lastSuccessfulTime"] == first


class TestOurs:
    """What counts as ours."""

    @pytest.mark.parametrize("policy", ["Forbid", "Replace"])
    def test_one_that_the_status_lists_does_though_somebody_replaced_its_managed_fields(
        self, policy: str
    ):
        active = [{"name": job_name(2), "uid": "uid-2"}]
        cj = cronjob(recorded(2, active=active), concurrencyPolicy=policy)

        assert started(composed(cj, at(3), made_by(EVIL, job(2)))) == []

    def test_one_whose_record_was_lost_does(self):
        assert started(composed(cronjob(recorded(2)), at(3), ours(job(3)))) == []
