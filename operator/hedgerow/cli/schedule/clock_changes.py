"""Clock changes: what daylight saving does to a schedule's starts."""

from __future__ import annotations

from datetime import UTC
from typing import TYPE_CHECKING, Final

from hedgerow.cli.schedule.fates import Fate, Happens

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from hedgerow.controllers.cronjob.schedule import Schedule

MOST: Final = 60
"""Times of one change that are listed; there may be a day of minutes."""

_NAMED: Final = 3


def wall(schedule: Schedule, start: datetime) -> datetime:
    """Return what the clocks show at an instant in the schedule's zone, without a zone itself."""
    return start.astimezone(schedule.zone).replace(tzinfo=None, fold=0)


def skipped(
    schedule: Schedule, begin: datetime, starts: Iterable[datetime], until: datetime
) -> Iterator[Fate]:
    """Yield what is left out between the starts after `begin`, which are given in order.

    What is left out after the last of them is told until an instant.
    """
    last = begin
    for start in starts:
        yield from _left_out(schedule, last, start, start)
        last = start
    following = schedule.after(last)
    if following:
        yield from _left_out(schedule, last, following, until)


def _left_out(
    schedule: Schedule, last: datetime, start: datetime, until: datetime
) -> Iterator[Fate]:
    times = schedule.skipped(last, start, MOST)
    met = tuple(time for time in times if _instant(schedule, time) <= until)
    if met:
        at = max(_instant(schedule, met[0]), last)
        yield Fate(at, met[0], Happens.SKIPPED, _why(schedule, met), skipped=met)


def _why(schedule: Schedule, times: tuple[datetime, ...]) -> str:
    first, at = times[0], _instant(schedule, times[0])
    if wall(schedule, at) == first:
        return "the clocks change that day, and the schedule passes over it, as robfig/cron does"
    days = {time.date() for time in times}
    shown = [f"{time:%H:%M}" if len(days) == 1 else f"{time}" for time in times[:_NAMED]]
    more = f" and {len(times) - _NAMED} more" if len(times) > _NAMED else ""
    return f"the clocks skip {', '.join(shown)}{more}"


def _instant(schedule: Schedule, time: datetime) -> datetime:
    """Return the instant of a wall-clock time; of one that does not exist, one before the gap ends.

    It is that of the offset after the change (PEP 495), so it is not later than any that follow.
    """
    return time.replace(tzinfo=schedule.zone, fold=1).astimezone(UTC)
