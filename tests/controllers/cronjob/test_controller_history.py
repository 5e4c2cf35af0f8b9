"""CronJob: which Jobs are kept, how long their guards last, and what the status tells."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.crons import (
    Row,
    at,
    composed,
    cronjob,
    job,
    job_name,
    kept,
    recorded,
    row,
    wire,
)
from hedgerow_schemas.job import Job
from support.objects.parts import Part


def ended(*minutes: float, how: str = "Complete", **more: Any) -> tuple[Job, ...]:
    return tuple(job(minute, how, began=minute, **more) for minute in minutes)


NONE_KEPT = cronjob(recorded(9), successfulJobsHistoryLimit=0, failedJobsHistoryLimit=0)
UNRECORDED = cronjob(recorded(1), successfulJobsHistoryLimit=0, failedJobsHistoryLimit=0)
SUCCESS_ON_RECORD = cronjob(
    recorded(9, lastSuccessfulTime=wire(at(2))), successfulJobsHistoryLimit=0
)
USUAL = cronjob(recorded(9))
# Ended Jobs beyond the limits go, the oldest first (test_history has the order).
PASTS = (
    row("three that succeeded and one that failed by default", USUAL, 9.5, *ended(1, 2, 3, 4),
        *ended(5, 6, how="Failed"), keeps=(2, 3, 4, 6)),
    row("no history at all", NONE_KEPT, 9.5, *ended(1, 2), *ended(3, how="Failed"), keeps=()),
    row("what runs is no history", NONE_KEPT, 9.5, job(1), *ended(2), keeps=(1,)),
    row("the newest start until it is on record", UNRECORDED, 9.5, *ended(1, 2, 3), keeps=(3,)),
    row("older ones go though they are not on record", UNRECORDED, 9.5, *ended(2, 3), keeps=(3,)),
    row("once it is on record the newest may go", UNRECORDED, 9.5, *ended(1), keeps=()),
    row("the newest success until it is on record", NONE_KEPT, 9.5, *ended(1, ended=4),
        *ended(2, ended=3), keeps=(1,)),
    row("once the success is on record it may go", SUCCESS_ON_RECORD, 9.5, *ended(1, ended=2),
        keeps=()),
    row("a Job of no start at all", NONE_KEPT, 9.5, job(1, "Failed", name="x"), keeps=()),
    row("though the schedule cannot be read", cronjob(recorded(4), schedule="junk"), 5,
        *ended(1, 2, 3, 4), job(5), keeps=(2, 3, 4, 5), active=1),
)  # fmt: skip
RUNNING = [
    {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "namespace": "ns",
        "name": job_name(minute),
        "uid": f"uid-{minute}",
    }
    for minute in (1, 2, 5)
]
OF_ALL = (job(2), job(1), job(3, "Complete"), job(4, "Failed"), job(5, going=True))
SUCCESS = {"lastSuccessfulTime": wire(at(9))}
ZONE = (
    'Unknown time zone "europe/berlin": the IANA database has none of this name; it has'
    " Europe/Berlin"
)
BOTH_BAD = Part("minute '61': 61 is above 59", "the IANA database has none of this name")
MISSED = "the start of 2026-01-01T12:07:00Z was missed: its deadline has passed"
WAITS = f"the start of 2026-01-01T12:02:00Z waits: {job_name(1)} has not ended"
STATUSES = (
    row("of nothing it tells the next start", cronjob(), 0,
        status={"activeCount": 0, "nextScheduleTime": wire(at(1)), "missed": 0}),
    row("what runs is referred to by name", cronjob(), 5, *OF_ALL, active=3, lists=RUNNING),
    *(
        row(f"the last start never goes back: {before}, {there}",
            cronjob({} if before is None else recorded(before)), 5.5,
            *(job(minute, "Complete") for minute in there), last=last)
        for before, there, last in (
            (None, (), None), (None, (3,), 3), (3, (), 3), (3, (1, 2), 3), (3, (5, 4), 5),
        )
    ),
    row("a start that is only being made is not told yet", cronjob(recorded(1)), 2, starts=2,
        last=1, missed=1),
    row("the last success is the latest of those there", cronjob(), 5, job(1, "Complete", ended=2),
        job(3, "Failed", ended=4), succeeded=2),
    row("it never goes back", cronjob(SUCCESS), 5, job(1, "Complete", ended=2), succeeded=9),
    row("one without a time is none", cronjob(), 5, job(1, "Complete"), succeeded=None),
    row("what was missed is counted since the last start made", cronjob(recorded(2)), 7.5,
        missed=5),
    row("so is what was late", cronjob(recorded(2), startingDeadlineSeconds=1), 7.5, missed=5,
        warns=("MissedStart",), notes=(MISSED,)),
    row("a start that waits is told with what it waits for", cronjob(concurrencyPolicy="Forbid"), 2,
        job(1), warns=("Normal JobAlreadyActive",), notes=(WAITS,)),
    *(
        row(f"without starts none is next and none is missed: {spec}",
            cronjob(recorded(1), **spec), 5,
            status={"activeCount": 0, "lastScheduleTime": wire(at(1))})
        for spec in ({"suspend": True}, {"schedule": "junk"}, {"startingDeadlineSeconds": 0})
    ),
)  # fmt: skip
UNREAD, UNKNOWN = "UnparseableSchedule", "UnknownTimeZone"
READY = (
    row("as it should be", cronjob(), 0, ready="True/Scheduled", stalled=""),
    row("suspended", cronjob(suspend=True), 0, ready="True/Suspended", stalled=""),
    *(
        row(f"no start is made: {spec}", cronjob(**spec), 0, ready=f"False/{why}",
            stalled=f"True/{why}")
        for spec, why in (
            ({"schedule": "0 0 30 2 *"}, "NeverAgain"),
            ({"schedule": "every minute"}, UNREAD),
            ({"schedule": ""}, UNREAD),
            ({"schedule": "0 0 * * 7"}, UNREAD),
            ({"timeZone": "Mars/Olympus"}, UNKNOWN),
        )
    ),
    row("a schedule that cannot be read is quoted as the original does",
        cronjob(schedule="61 * * * *"), 5,
        why=Part('Unparseable schedule "61 * * * *": ', "minute")),
    row("a zone that is none is told without a word about the schedule",
        cronjob(timeZone="europe/berlin"), 5, why=ZONE),
    *(
        row(f"a bad schedule and a bad zone are both told: {spec}", cronjob(**spec), 5,
            ready=f"False/{UNREAD}", why=BOTH_BAD)
        for spec in (
            {"schedule": "61 * * * *", "timeZone": "Mars"},
            {"schedule": "CRON_TZ=Mars 61 * * * *"},
        )
    ),
    row("a zone given twice is told as that", cronjob(schedule="TZ=UTC @daily", timeZone="UTC"), 5,
        stalled=f"True/{UNREAD}", why=Part("the schedule names a zone of its own")),
)  # fmt: skip


@pytest.mark.parametrize("one", [*PASTS, *STATUSES, *READY], ids=str)
def test_a_pass_comes_to(one: Row):
    one.check()


@given(
    st.lists(
        st.tuples(st.integers(1, 9), st.sampled_from(["", "Complete", "Failed"])),
        unique_by=lambda drawn: drawn[0],
    ),
    st.none() | st.integers(0, 9),
    st.integers(0, 2),
)
def test_what_the_status_does_not_tell_of_is_there_to_tell(drawn, last, limit):
    jobs = [job(minute, how) for minute, how in drawn]
    before = {} if last is None else recorded(last)
    cj = cronjob(before, successfulJobsHistoryLimit=limit, failedJobsHistoryLimit=limit)
    desired = composed(cj, at(9.5), *jobs)

    newest = max((minute for minute, _ in drawn), default=0)
    if newest > (last or 0):
        assert job_name(newest) in kept(desired)
