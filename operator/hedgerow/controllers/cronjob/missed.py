"""Missed starts: which start is due, how many were missed, and when the next one comes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from hedgerow.controllers.cronjob.starts import LONGEST_LOOK_BACK

if TYPE_CHECKING:
    from datetime import datetime

    from hedgerow.controllers.cronjob.starts import StartRecord
    from hedgerow.schedule import Schedule
    from hedgerow_schemas.cronjob import CronJob


MOST_MISSED: Final = 100
"""The most starts missed in a row that cause no warning."""
_SECOND: Final = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class MissedStarts:
    """The starts of a schedule, seen from now.

    `due` is the newest start that may still be made. `late` is the newest one whose deadline has
    passed, if none is due. `upcoming` is the next start. `missed` counts the starts since the last
    one that was made, whatever their deadline. `too_many`: more than a hundred of them are within
    the deadline.
    """

    due: datetime | None
    late: datetime | None
    upcoming: datetime | None
    missed: int
    too_many: bool


def missed_starts(
    schedule: Schedule, since: datetime, deadline: int | None, now: datetime
) -> MissedStarts:
    """Return the starts after `since` (the last one made, or the creation) until `now`.

    Of several missed starts only the newest one within the deadline (in seconds) is due. More than
    a hundred within it are `too_many`: the user gets a warning. Starts older than five years are
    not counted, whatever the status says.
    """
    since = max(since, now - LONGEST_LOOK_BACK)
    missed = within = schedule.missed(since, now)
    earliest = in_time(since, deadline, now)
    if earliest > since:
        within = schedule.missed(earliest, now)
    return MissedStarts(
        due=within.latest,
        late=None if within.latest else missed.latest,
        upcoming=schedule.after(max(since, now)),
        missed=missed.count,
        too_many=within.count > MOST_MISSED,
    )


def in_time(since: datetime, deadline: int | None, now: datetime) -> datetime:
    """Return the instant after which a start is still in time, no earlier than `since`."""
    if deadline is None or deadline >= (now - since).total_seconds():
        return since
    return now - timedelta(seconds=deadline)


def passed_over(schedule: Schedule, since: datetime, start: datetime) -> int:
    """Return the number of starts after `since` and before `start`, which replaced them."""
    earliest = max(since, start - LONGEST_LOOK_BACK)
    return schedule.missed(earliest, start - _SECOND).count


@dataclass(frozen=True, slots=True)
class MissedCount:
    """The latest starts in a row without a Job: how many, and since when.

    `too_many`: more than a hundred of them were within the deadline.
    """

    missed: int
    since: datetime
    too_many: bool


def missed_count(
    cj: CronJob,
    schedule: Schedule,
    record: StartRecord,
    starts: MissedStarts,
    *,
    since: datetime,
    now: datetime,
) -> MissedCount:
    """Return the backlog of a CronJob; `since` is the last start made, or the creation.

    One start is made in the place of all that were missed. The status then counts the missed ones,
    and keeps the number until the next start.
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
        since = record.before if too_many else since
    remembered = 0 if record.fresh else cj.status.missed or 0
    return MissedCount(
        missed=starts.missed or max(passed, remembered, 0),
        since=since,
        too_many=too_many or starts.too_many,
    )
