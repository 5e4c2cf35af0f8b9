"""Agenda: which scheduled start is due now, how many were missed, and when the next one comes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, timedelta
from typing import TYPE_CHECKING

from hedgerow.core import cron

if TYPE_CHECKING:
    from datetime import datetime

MOST_MISSED = 100
LONGEST_LOOK_BACK = timedelta(days=5 * 366)
TOO_MANY = (
    f"Too many missed start times (> {MOST_MISSED})."
    " Set or decrease .spec.startingDeadlineSeconds or check clock skew."
)


@dataclass(frozen=True, slots=True)
class Agenda:
    """One look at a schedule.

    `due` is the newest start that may still be made, `late` the newest one whose deadline has
    passed if none is due, `upcoming` the next one to come. `missed` counts the starts since the
    last one that was made, whatever their deadline; `too_many` of them are within it.
    """

    due: datetime | None
    late: datetime | None
    upcoming: datetime | None
    missed: int
    too_many: bool


def agenda(schedule: cron.Schedule, since: datetime, deadline: int | None, now: datetime) -> Agenda:
    """Look at the starts after `since` (the last one made, or the creation) until `now`.

    Of several missed starts only the newest is made. More than a hundred within the deadline (in
    seconds) are an error, not work to catch up with: a clock is wrong, or nothing ran for long.
    Nothing is counted that is older than five years, whatever a status claims.
    """
    since = max(since, now - LONGEST_LOOK_BACK)
    missed = within = schedule.missed(since, now)
    if deadline is not None and deadline < (now - since).total_seconds():
        within = schedule.missed(now - timedelta(seconds=deadline), now)
    too_many = within.count > MOST_MISSED
    return Agenda(
        due=None if too_many else within.latest,
        late=None if within.latest else missed.latest,
        upcoming=schedule.after(max(since, now)),
        missed=missed.count,
        too_many=too_many,
    )


def timetable(expression: str, zone: str | None, anchor: datetime | None) -> cron.Schedule:
    """Read a schedule in the zone of that name, UTC without one; `@every` counts from `anchor`.

    Raises ScheduleError; a zone that is given twice, by name and by prefix, is an error too.
    """
    schedule = cron.parse(expression, cron.zone(zone) if zone else UTC, anchor)
    if zone and schedule.zone_prefixed:
        raise cron.ScheduleError("timeZone", zone, "the schedule names a zone of its own")
    return schedule
