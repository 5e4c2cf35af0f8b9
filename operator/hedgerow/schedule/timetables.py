"""Timetables: a schedule and its time zone, as a spec gives both, and the errors of each."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC
from typing import TYPE_CHECKING, Literal

from hedgerow.schedule.errors import ScheduleError
from hedgerow.schedule.parser import errors, parse
from hedgerow.schedule.zones import zone as load

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from hedgerow.schedule.schedule import Schedule


def timetable(expression: str, zone: str | None, anchor: datetime | None) -> Schedule:
    """Return the schedule in the named zone, or else UTC; `@every` counts from `anchor`.

    Raises ScheduleError, also if a zone is given twice, by name and by prefix.
    """
    schedule = parse(expression, load(zone) if zone else UTC, anchor)
    if zone and schedule.zone_prefixed:
        raise ScheduleError("timeZone", zone, "the schedule names a zone of its own")
    return schedule


@dataclass(frozen=True, slots=True)
class ScheduleProblem:
    """Why a timetable cannot be read: the field of the spec that has to change, and the error."""

    field: Literal["schedule", "timeZone"]
    error: ScheduleError


def schedule_problems(expression: str, zone: str | None) -> tuple[ScheduleProblem, ...]:
    """Return all errors of a schedule and its zone; empty if `timetable` can read them.

    Schedule and zone are checked separately, so that an error in one does not hide the other.
    """
    alone = [ScheduleProblem("schedule", error) for error in errors(expression)]
    alone += [ScheduleProblem("timeZone", error) for error in _zone_errors("@daily", zone)]
    return tuple(
        alone or (ScheduleProblem("timeZone", error) for error in _zone_errors(expression, zone))
    )


def _zone_errors(expression: str, zone: str | None) -> Iterator[ScheduleError]:
    try:
        timetable(expression, zone, None)
    except ScheduleError as error:
        yield error
