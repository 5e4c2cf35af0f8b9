"""Foreign Jobs: one that somebody else made decides nothing, whatever marks of ours it has.

Whoever may create Jobs may write every name, label, annotation and owner reference. By these alone
a Job is one of the CronJob's children; who made it is told by its managed fields.
"""

from __future__ import annotations

from typing import Any

import pytest

from controllers.crons import (
    Row,
    at,
    cronjob,
    job,
    job_name,
    made_by,
    recorded,
    remarks,
    row,
    says,
    started,
    wire,
)
from hedgerow.contract import Observed
from hedgerow.controllers.cronjob.controller import compose
from hedgerow_schemas.cronjob import CronJob
from hedgerow_schemas.job import Job
from support.objects.parts import Part

EVIL = "evil"


def ours(found: Job) -> Job:
    return made_by("hedgerow-cronjob", found)


def foreign(minute: float, how: str = "", **more: Any) -> Job:
    """A Job of somebody else, dated by name or annotation to a minute."""
    return made_by(EVIL, job(minute, how, **more), uid=f"theirs-{minute:g}")


def policy(name: str, last: float = 2, **status: Any) -> CronJob:
    return cronjob(recorded(last, **status), concurrencyPolicy=name)


LISTED = {"active": [{"name": job_name(2), "uid": "uid-2"}]}
TAKEN = foreign(3, "Complete")
HISTORY = cronjob(recorded(2), failedJobsHistoryLimit=2)
ROWS = (
    *(
        row(f"none is held back or taken as made and the Job stays: {name}, {how}, {minute}",
            policy(name), 3, foreign(minute, how, name="theirs"), starts=3, keeps=("theirs",),
            lists=None, tells=(), ahead="")
        for name in ("Allow", "Forbid", "Replace")
        for how in ("", "Complete", "Failed")
        for minute in (3, 99)
    ),
    row("it does not count among those that may run", cronjob(recorded(2), activeLimit=1), 3,
        *(foreign(minute, name=f"theirs-{minute}") for minute in range(9)), starts=3),
    row("one of the very name is no start and is told", cronjob(recorded(2)), 3, TAKEN,
        starts=None, keeps=(3,), last=2, stalled="True/NameTaken", why=Part(job_name(3))),
    row("the next start is made", cronjob(recorded(2)), 4, TAKEN, starts=4),
    row("none of ours goes because of them", HISTORY, 2.5,
        *(ours(job(minute, "Failed", began=minute)) for minute in (1, 2)),
        *(foreign(3, "Failed", began=3 + n, name=f"theirs-{n}") for n in range(5)),
        keeps=(1, 2, *(f"theirs-{n}" for n in range(5)))),
    row("no success is recorded of them", cronjob(recorded(1, lastSuccessfulTime=wire(at(1)))), 1.9,
        foreign(1, "Complete", began=1, ended=1.5, name="theirs"), succeeded=1),
    *(
        row(f"one that the status lists is ours, though its managed fields are not: {name}",
            policy(name, **LISTED), 3, made_by(EVIL, job(2)), starts=None)
        for name in ("Forbid", "Replace")
    ),
    row("one whose record was lost is ours", cronjob(recorded(2)), 3, ours(job(3)), starts=None),
)  # fmt: skip


@pytest.mark.parametrize("one", ROWS, ids=str)
def test_a_pass_comes_to(one: Row):
    one.check()


@pytest.mark.parametrize(
    ("stray", "held"), [(job(2), True), (made_by(EVIL, job(2), uid="another"), False)]
)
def test_another_of_the_name_of_one_that_ran_does_not_count_as_running(stray, held):
    """It has no owner reference, and only its name is that which the status lists."""
    desired = compose(policy("Forbid", **LISTED), Observed(at(3), strays=(stray,)))

    assert started(desired) == ([] if held else [job_name(3)])
    assert bool(says(desired, "JobAstray")) is held


@pytest.mark.parametrize(
    ("name", "minute", "ready"),
    [
        ("Replace", 4.9, "True/Scheduled"),
        ("Replace", 5, "False/JobAlreadyActive"),
        ("Forbid", 5, "False/JobAlreadyActive"),
        ("Allow", 5, "True/Scheduled"),
    ],
)
def test_one_that_lost_its_owner_reference_cannot_be_replaced(name, minute, ready):
    """It stays until somebody deletes it, and so no start is made."""
    desired = compose(policy(name, **LISTED), Observed(at(minute), strays=(job(2),)))

    assert bool(started(desired)) is (name == "Allow")
    assert says(desired, "Ready").startswith(ready)
    assert bool(remarks(desired)) is (name != "Allow")
