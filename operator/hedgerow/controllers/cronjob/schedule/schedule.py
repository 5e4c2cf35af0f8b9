"""Schedule: the starts of an expression, before or after a given instant.

All arithmetic is on instants. Arguments are datetimes with any zone; results are in UTC, so that
they can be compared whatever daylight saving does.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

from hedgerow.controllers.cronjob.schedule import zones
from hedgerow.controllers.cronjob.schedule.days import DAY, civil, number
from hedgerow.controllers.cronjob.schedule.search import YEARS, next_start

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime, tzinfo

    from hedgerow.controllers.cronjob.schedule.fields import CronFields


_LOOKS_BACK = (1, 8, 64, YEARS * 366)
"""Days in which to look for the latest start: mostly there is one in the last day or week."""
_NEAR = 2 * DAY
"""How near to a change of the offset a search depends on where it begins."""


@dataclass(frozen=True, slots=True)
class Missed:
    """How many starts there were, and the latest one, in UTC."""

    count: int
    latest: datetime | None


@dataclass(frozen=True)
class Schedule(ABC):
    """The starts of an expression in a zone."""

    expression: str
    """The expression as it was given."""
    zone: tzinfo
    """The zone of its fields: that of the prefix if there is one, else the given one."""
    zone_prefixed: bool
    """Whether the expression itself names its zone, by `TZ=` or `CRON_TZ=`."""

    def after(self, instant: datetime) -> datetime | None:
        """Return the first start later than an instant, in UTC; None means never.

        Never means: no start until the end of the fifth year after the instant's year. Raises
        ValueError for an instant without a zone.
        """
        found = self.next(zones.to_seconds(instant))
        return None if found is None else zones.to_datetime(found)

    def before(self, instant: datetime) -> datetime | None:
        """Return the latest start that is not later than an instant, in UTC; None means never.

        Never means: no start in the five years before. Around a change of the zone's offset, robfig
        may leave a start out if it searches from before the change, and find it if it searches from
        after it. The starts here are those that follow from each other (see `following`). Raises
        ValueError for an instant without a zone.
        """
        until = zones.to_seconds(instant)
        for days in _LOOKS_BACK:
            since = until - days * DAY
            while zones.offset(self.zone, since - _NEAR) != zones.offset(self.zone, since + _NEAR):
                since -= _NEAR
            _, latest = self.count(since, until)
            if latest is not None:
                return zones.to_datetime(latest)
        return None

    def following(self, instant: datetime) -> datetime | None:
        """Return the first start after an instant in the row that `before` is from; None for never.

        `after` searches from the instant itself; this searches from the start before it, as the
        CronJob controller does, so that every start is followed by the same one. Raises ValueError
        for an instant without a zone.
        """
        return self.after(self.before(instant) or instant)

    def has(self, instant: datetime) -> bool:
        """Return whether there is a start in the second of an instant.

        Raises ValueError for an instant without a zone.
        """
        return self.starts_at(zones.to_seconds(instant))

    def missed(self, since: datetime, until: datetime) -> Missed:
        """Return the number of starts in (since, until], and the latest.

        The result is that of repeated calls of `after`, without visiting every start. Raises
        ValueError for an instant without a zone.
        """
        found, latest = self.count(zones.to_seconds(since), zones.to_seconds(until))
        return Missed(found, None if latest is None else zones.to_datetime(latest))

    def skipped(self, since: datetime, until: datetime, limit: int = 10) -> tuple[datetime, ...]:
        """Return matching wall-clock times between two instants that had no start, in order.

        `until` must be the first start after `since`. Then the times were skipped because the
        zone's offset changed; mostly they did not exist. Returns at most `limit` times, without a
        zone. Raises ValueError for an instant without a zone.
        """
        found = self.left_out(zones.to_seconds(since), zones.to_seconds(until))
        return tuple(map(zones.to_wall, islice(found, limit)))

    @abstractmethod
    def left_out(self, since: int, until: int) -> Iterator[int]:
        """Return the result of `skipped`, in seconds since 1970 local time."""

    @abstractmethod
    def next(self, instant: int) -> int | None:
        """Return the first start later than an instant; both are seconds since 1970."""

    @abstractmethod
    def starts_at(self, instant: int) -> bool:
        """Return whether there is a start at an instant, in seconds since 1970."""

    @abstractmethod
    def count(self, since: int, until: int) -> tuple[int, int | None]:
        """Return the number of starts in (since, until] and the latest, in seconds since 1970."""


@dataclass(frozen=True)
class Every(Schedule):
    """Starts at a constant distance, whatever daylight saving does.

    With an anchor they are at the anchor and at every multiple of the distance before and after it.
    Without one the next start is always a whole distance away, as in robfig.
    """

    distance: int
    """Seconds, at least 1."""
    anchor: int | None

    def starts_at(self, instant: int) -> bool:
        """Return whether there is a start at an instant, in seconds since 1970."""
        return self.next(instant - 1) == instant

    def next(self, instant: int) -> int:
        """Return the first start later than an instant; both are seconds since 1970."""
        gone = 0 if self.anchor is None else (instant - self.anchor) % self.distance
        return instant - gone + self.distance

    def count(self, since: int, until: int) -> tuple[int, int | None]:
        """Return the number of starts in (since, until] and the latest, in seconds since 1970."""
        first = self.next(since)
        if first > until:
            return 0, None
        further = (until - first) // self.distance
        return further + 1, first + further * self.distance

    def left_out(self, since: int, until: int) -> Iterator[int]:  # noqa: ARG002 - see Calendar
        """Return nothing: local time does not matter here."""
        return iter(())


@dataclass(frozen=True)
class Calendar(Schedule):
    """Starts by local time and date in the zone."""

    fields: CronFields = field(repr=False)

    def starts_at(self, instant: int) -> bool:
        """Return whether there is a start at an instant, in seconds since 1970.

        Starts that the fields do not match exist only around a change of the offset. Only there
        is a search made, because a search may go through years.
        """
        ahead = zones.offset(self.zone, instant)
        if self.fields.admit(instant + ahead):
            return True
        around = (instant - 2 * DAY, instant + 2 * DAY)
        changes = any(zones.offset(self.zone, near) != ahead for near in around)
        return changes and self.next(instant - 1) == instant

    def next(self, instant: int) -> int | None:
        """Return the first start later than an instant; both are seconds since 1970."""
        return next_start(self.fields, self.zone, instant)

    def count(self, since: int, until: int) -> tuple[int, int | None]:
        """Return the number of starts in (since, until] and the latest, in seconds since 1970.

        Only the first start after a change of the offset is searched for. From there to the next
        change every time that the fields match is a start; these are counted by the day.
        """
        total, latest, start = 0, None, self.next(since)
        while start is not None and start <= until:
            further, latest = self._count_from(start, until)
            total += 1 + further
            start = self.next(latest)
        return total, latest

    def _count_from(self, start: int, until: int) -> tuple[int, int]:
        """Return the number of starts after `start` with the same offset, and the latest one.

        It stops after five years: a start later than that does not count (see `after`).
        """
        ahead = zones.offset(self.zone, start)
        local = start + ahead
        if not self.fields.admit(local):
            return 0, start  # robfig's steps end there although the fields do not match
        year, _, _ = civil(local // DAY)
        end = min(until + 1, number(year + YEARS + 1, 1, 1) * DAY - ahead)
        change = zones.next_change(self.zone, start, end + DAY)
        # If clocks go back, robfig may read a midnight before the change as the one after it.
        repeated = max(ahead - zones.offset(self.zone, change), 0)
        end = min(end, change - repeated) + ahead
        further, last, slots = 0, local, self.fields.slots
        for day, first, beyond in self.fields.between(local, end):
            further += beyond - first
            last = day * DAY + slots[beyond - 1]
        return further, last - ahead

    def left_out(self, since: int, until: int) -> Iterator[int]:
        """Yield the result of `skipped`, in seconds since 1970 local time."""
        low = max(since + zones.offset(self.zone, since), zones.FIRST)
        high = min(until + zones.offset(self.zone, until), zones.LAST)
        for day, first, beyond in self.fields.between(low, high):
            for slot in self.fields.slots[first:beyond]:
                yield day * DAY + slot
