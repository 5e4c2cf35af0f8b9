"""CronJob: what tells of a start, what does not, and how many Jobs may run at once."""

from __future__ import annotations

from typing import Any

import pytest

from controllers.crons import (
    Row,
    at,
    composed,
    cronjob,
    job,
    job_name,
    made_by,
    message,
    recorded,
    row,
    status,
    wire,
)
from hedgerow.contract import Keep
from hedgerow.controllers.cronjob.starts import SCHEDULED_AT
from hedgerow_schemas.job import Job
from support.objects.parts import Part

YEAR = 365 * 24 * 60
FAR = 9 * YEAR


def by_hand(name: str, scheduled_at: str) -> Job:
    """A Job that somebody made, with a copied annotation."""
    metadata = {"name": name, "uid": name, "annotations": {SCHEDULED_AT: scheduled_at}}
    return Job({"metadata": metadata, "status": {"conditions": [DONE]}})


DONE = {"type": "Complete", "status": "True"}
MILLISECONDS = by_hand("demo-1795222400123", "2026-01-01T11:00:00Z")
YEARLY = {"schedule": "0 0 1 1 *"}
ON_TIME = "True/Scheduled"
GOES_ON = {"starts": 3, "last": None, "next": 4, "ready": ON_TIME}
# What lies after now is no record of a start: a Job that is dated ahead holds none back, is named,
# and is pruned like any other. An annotation is no start: whoever may create Jobs writes what they
# like there.
AHEAD = (
    row("a Job of a year ahead", cronjob(), 3.5, job(FAR, "Complete"), ahead="True/JobAhead",
        why_ahead=Part(f"Job {job_name(FAR)} is dated "), **GOES_ON),
    row("a Job of milliseconds", cronjob(), 3.5, MILLISECONDS, ahead="True/JobAhead",
        why_ahead=Part("Job demo-1795222400123 is dated "), **GOES_ON),
    row("of several one is named", cronjob(), 3, *(job(FAR + minute) for minute in range(50)),
        why_ahead=Part(job_name(FAR), "(and 49 more)")),
    row("once it is gone nothing is said of it", cronjob(), 3, ahead=""),
    row("it is told though the schedule cannot be read", cronjob(schedule="junk"), 3, job(FAR),
        ahead="True/JobAhead", stalled="True/UnparseableSchedule"),
    row("it is pruned", cronjob(successfulJobsHistoryLimit=0), 0.5, job(FAR, "Complete"), keeps=()),
    *(
        row(f"it is looked at again when its time has come: {more}", cronjob(**YEARLY | more), 3,
            job(10), job(FAR), waits=420)
        for more in ({}, {"suspend": True}, {"schedule": "junk"})
    ),
    row("a Job of the next minute is none yet", cronjob(), 3.5, job(4, "Complete"),
        starts=3, keeps=(4,), ahead=""),
    row("it is once its time has come", cronjob(), 4, job(4, "Complete"), starts=None, last=4),
    *(
        row(f"an annotation is no start: {text!r}", cronjob(), 3, by_hand("rerun", text), starts=3,
            ahead="")
        for text in (wire(at(3)), wire(at(FAR)), "9999-12-31T23:59:59-01:00", "")
    ),
)  # fmt: skip
HELD = recorded(YEAR, nextScheduleTime=wire(at(4)))
END_OF_TIME = {"lastScheduleTime": "9999-12-31T23:59:59Z"}
# A pass under a clock that was ahead leaves a record that the next one corrects.
RECORD_AHEAD = (
    row("starts go on from now, an Event names the time", cronjob(recorded(YEAR)), 3.5,
        starts=None, last=3, next=4, ready=ON_TIME, warns=("RecordAhead",),
        notes=(Part(wire(at(YEAR))),)),
    row("none until then is made twice", cronjob(recorded(3)), 4, starts=4),
    row("the end of time is no schedule without starts", cronjob(END_OF_TIME), 3.5, ready=ON_TIME),
    row("the Jobs that the wrong clock made are named", cronjob(recorded(YEAR)), 3.5, job(YEAR),
        job(2, "Complete"), why_ahead=Part(job_name(YEAR)), last=3),
    # Where another manager keeps the record, it cannot be corrected: what is announced next is what
    # may start next.
    row("a record that is kept, before the next start", cronjob(HELD), 3.9, starts=None),
    row("a record that is kept, at the next start", cronjob(HELD), 4, starts=4),
    row("a record that is kept, after it", cronjob(HELD), 4.1, job(4), starts=None),
    row("a schedule that cannot be read leaves the record as it is",
        cronjob(recorded(YEAR), schedule="junk"), 3, last=YEAR),
    row("without creation time it recovers too", cronjob(recorded(YEAR), created=None), 3.5,
        last=None, next=4),
    row("what this process made under a wrong clock is no record", cronjob(), 3, made=(YEAR,),
        starts=3),
)  # fmt: skip
WRONG = (2.6, 150, YEAR)
# A record tells whose clock is wrong: it is none if it is ahead of both.
CLOCKS = (
    *(
        row(f"behind by {skew}: a record that has come by the server's clock is kept",
            cronjob(recorded(5)), server - skew, server=server, starts=None, last=5, next=6,
            ready="False/ClockBehind", tells=("ClockBehind",), why=Part(wire(at(5))))
        for skew in WRONG
        for server in (5.1, 5.9)
    ),
    row("behind, a Job that has come by the server's clock is a start", cronjob(), 3.5,
        job(5, "Complete"), server=6, starts=None, last=5, ahead=""),
    row("behind, what this process made is a start", cronjob(), 3.5, made=(5,), server=6,
        starts=None),
    row("behind, before our clock has come to the record", cronjob(recorded(5)), 5.9, server=8.6,
        starts=None),
    row("behind, once it has", cronjob(recorded(5)), 6, server=8.7, starts=6),
    row("right again", cronjob(recorded(5)), 8.7, server=8.7, starts=8),
    *(
        row(f"by up to a minute clocks may differ: {off}", cronjob(recorded(4)), 5,
            server=5 + off, starts=5, ready=ON_TIME)
        for off in (-0.99, -0.01, 0, 0.01, 0.99)
    ),
    # Any start that one of the clocks has come to may have been made.
    *(
        row(f"a record ahead of both is wrong: {now} by ours", cronjob(recorded(2 * YEAR)), now,
            server=3.5, starts=None, tells=("RecordAhead", *more), last=max(now, 3.5) // 1)
        for skew in WRONG
        for now, more in ((3.5, ()), (3.5 - skew, ("ClockBehind",)), (3.5 + skew, ()))
    ),
    # Nothing tells whose clock is wrong: no start is on record that one has not come to.
    *(
        row(f"ahead by {skew}, starts are made by our clock", cronjob(recorded(5)), 6 + skew,
            server=6, starts=(6 + skew) // 1, ready=ON_TIME)
        for skew in WRONG
    ),
    row("while suspended nothing is told", cronjob(recorded(5), suspend=True), 3, server=5.5,
        ready="True/Suspended", tells=()),
)  # fmt: skip
HOURLY = {"schedule": "0 * * * *", "concurrencyPolicy": "Forbid"}
FIVE = {"schedule": "*/5 * * * *", "concurrencyPolicy": "Forbid"}
# A Job made by hand at a time that is no start of the schedule takes the place of none.
BY_HAND = (
    *(
        row(f"a start that waits is not lost to one that is {how}, {ends or 'while it waits'}",
            cronjob(recorded(0), **HOURLY), 66, job(0, ends), job(65, how), starts=starts)
        for how in ("Complete", "Failed")
        for ends, starts in (("", None), ("Complete", 60))
    ),
    row("one of a start to come does not lose the one that waits", cronjob(recorded(0), **FIVE), 7,
        job(0, "Complete"), job(10, "Complete"), starts=5),
    row("it is no record and is pruned like any other",
        cronjob(recorded(0), successfulJobsHistoryLimit=0, **HOURLY), 30, job(5, "Complete"),
        keeps=(), last=0),
    row("one of the very start is that start", cronjob(**HOURLY), 60.5, job(60, "Complete"),
        starts=None),
    row("what the controller made counts though the schedule is another by now",
        cronjob(recorded(0), **HOURLY), 66, made_by("hedgerow-cronjob", job(65, "Complete")),
        starts=None, last=65),
)  # fmt: skip
THREE = (job(1), job(2), job(3))
LIMITED = "False/ActiveLimitReached"
FULL = "3 Jobs have not ended, as many as spec.activeLimit allows: starts wait until a Job ends"


def limited(count: int = 3, last: float = 3, **spec: Any) -> Any:
    return cronjob(recorded(last), activeLimit=count, **spec)


def running(count: int) -> list[Job]:
    return [job(minute) for minute in range(1, count + 1)]


# No more Jobs run at once than `activeLimit` allows.
LIMITS = (
    row("a start beyond it waits and is told", limited(), 4, *THREE, starts=None, ready=LIMITED,
        why=FULL, warns=("ActiveLimitReached",), missed=1),
    row("the newest is made once a Job has ended", limited(), 7.5, job(1, "Complete"), *THREE[1:],
        starts=7),
    row("it waits no longer than its deadline", limited(startingDeadlineSeconds=30), 4.5, *THREE,
        warns=("MissedStart",), ready=ON_TIME),
    row("without a start that is due nothing is held back", limited(), 3.5, *THREE, ready=ON_TIME),
    row("while suspended nothing is", limited(suspend=True), 9, *THREE, ready="True/Suspended"),
    row("a hundred may run unless told otherwise", cronjob(recorded(100)), 101, *running(99),
        starts=101),
    row("and no more", cronjob(recorded(100)), 101, *running(100), starts=None),
    row("one is one Job", limited(1, 1), 2, job(1), why=Part("1 Job has not ended, ")),
    row("what is replaced goes first", limited(1, 1, concurrencyPolicy="Replace"), 2, job(1),
        keeps=()),
    row("it counts until it is gone", limited(1, 1, concurrencyPolicy="Replace"), 2,
        job(1, going=True), starts=None),
    row("once it is gone", limited(1, 1, concurrencyPolicy="Replace"), 2, starts=2),
)  # fmt: skip


@pytest.mark.parametrize("one", [*AHEAD, *RECORD_AHEAD, *BY_HAND, *LIMITS], ids=str)
def test_a_pass_comes_to(one: Row):
    one.check()


class TestClocks:
    @pytest.mark.parametrize("one", CLOCKS, ids=str)
    def test_a_pass_comes_to(self, one: Row):
        one.check()


class TestTold:
    def test_of_a_job_beyond_all_time_it_is_looked_at_again_too(self):
        beyond = by_hand(f"demo-{10**12}", "")

        assert composed(cronjob(**YEARLY), at(3), beyond).requeue_after

    def test_of_many_jobs_dated_ahead_no_more_is_said(self):
        there = [job(FAR + minute) for minute in range(50)]

        assert len(message(composed(cronjob(), at(3), *there), "DatedAhead")) < 250

    def test_a_clock_that_is_behind_is_told_alike_however_long_it_lasts(self):
        one, other = (
            composed(cronjob(recorded(500)), at(now), server=at(501 + now / 9)) for now in (3, 400)
        )

        assert (one.status, one.events) == (other.status, other.events)

    def test_a_limit_is_told_alike_however_long_it_lasts(self):
        notes = {composed(limited(), at(minute), *THREE).events[-1] for minute in range(4, 60)}

        assert len(notes) == 1


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
