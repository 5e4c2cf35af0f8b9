"""Daylight saving: the times of a schedule that a zone skips, and those that it shows twice."""

from __future__ import annotations

from datetime import timedelta
from itertools import islice
from typing import TYPE_CHECKING, Literal

from hedgerow.schedule.days import DAY
from hedgerow.schedule.schedule import Calendar
from hedgerow.schedule.zones import EPOCH, stretches, to_seconds

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from hedgerow.schedule import Schedule


def repeated(local: datetime) -> Literal["first", "second"] | None:
    """Return whether the clock shows this local time for the first or the second time of two."""
    if local.replace(fold=1).utcoffset() == local.replace(fold=0).utcoffset():
        return None
    return "second" if local.fold else "first"


def skipped(
    schedule: Schedule, since: datetime, until: datetime, limit: int
) -> tuple[datetime, ...]:
    """Return the wall-clock times that match and that the zone skips between two instants.

    At such a change of its offset they are never shown, so that there is no start. Returns at most
    `limit` times in order, without a zone; none of `@every`, to which local time does not matter.
    """
    if not isinstance(schedule, Calendar):
        return ()
    times = _left_out(schedule, to_seconds(since), to_seconds(until))
    begin = EPOCH.replace(tzinfo=None)
    return tuple(begin + timedelta(seconds=local) for local in islice(times, limit))


def _left_out(schedule: Calendar, since: int, until: int) -> Iterator[int]:
    """Yield the times in seconds since 1970 local time."""
    reached = None
    for _, low, high in stretches(schedule.zone, since, until + 1):
        if reached is not None and low > reached:
            for day, first, beyond in schedule.fields.between(reached, low):
                yield from (day * DAY + slot for slot in schedule.fields.slots[first:beyond])
        reached = high
