"""Backlog: the starts that passed without a Job, and whether there are too many to go unsaid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hedgerow.core.agenda import MOST_MISSED, in_time, passed_over

if TYPE_CHECKING:
    from datetime import datetime

    from hedgerow.core.agenda import Agenda
    from hedgerow.core.cron import Schedule
    from hedgerow.core.starts import Record
    from hedgerow_schemas.cronjob import CronJob


@dataclass(frozen=True, slots=True)
class Backlog:
    """The latest starts in a row without a Job: how many, and since when.

    `too_many` tells that more than a hundred of them were within the deadline.
    """

    missed: int
    since: datetime
    too_many: bool


def backlog(
    cj: CronJob,
    schedule: Schedule,
    record: Record,
    plan: Agenda,
    *,
    since: datetime,
    now: datetime,
) -> Backlog:
    """Return the backlog of a CronJob; `since` is the last start made, or the creation.

    A start that was made after others had passed is made instead of them. The status is told of
    these along with it, and remembers them until the next start.
    """
    passed, too_many = 0, False
    if record.before and record.last and not record.refused:
        made = len(record.fresh)
        earliest = in_time(record.before, cj.spec.starting_deadline_seconds, now)
        passed = 1 + passed_over(schedule, record.before, record.last) - made
        within = passed
        if earliest > record.before:
            within = 1 + passed_over(schedule, earliest, record.last) - made
        too_many = within >= MOST_MISSED
    if too_many and record.before:
        since = record.before
    remembered = 0 if record.fresh else cj.status.missed or 0
    return Backlog(
        missed=plan.missed or max(passed, remembered, 0),
        since=since,
        too_many=too_many or plan.too_many,
    )
