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
"""The most times of one clock change that are listed; there may be one for each minute."""

_NAMED: Final = 3


def wall(schedule: Schedule, start: datetime) -> datetime:
    """Return the local time of an instant in the schedule's zone, as a datetime without zone."""
    return start.astimezone(schedule.zone).replace(tzinfo=None, fold=0)


def skipped(
    schedule: Schedule, begin: datetime, starts: Iterable[datetime], until: datetime
) -> Iterator[Fate]:
    """Yield the skipped times between the starts after `begin`, which are in order.

    After the last start, skipped times are included until `until`.
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
    """Return the instant of a local time; for one that does not exist, before the gap ends.

    It uses the offset after the change (PEP 495), so it is not later than any following start.
    """
    return time.replace(tzinfo=schedule.zone, fold=1).astimezone(UTC)
