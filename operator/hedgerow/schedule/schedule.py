"""Schedule: the starts of an expression, before or after a given instant.

There is a start at every instant at which the clocks of the zone show a minute that the fields
match, and at no other, so that the answers do not depend on where a search begins.

All arithmetic is on instants. Arguments are datetimes with any zone; results are in UTC, so that
they can be compared whatever daylight saving does.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from hedgerow.schedule import zones
from hedgerow.schedule.days import DAY, civil, number

if TYPE_CHECKING:
    from datetime import datetime, tzinfo

    from hedgerow.schedule.fields import CronFields


YEARS: Final = 5
"""How many years ahead to search."""
_LOOKS_BACK = (1, 8, 64, YEARS * 366)
"""Days in which to look for the latest start: mostly there is one in the last day or week."""


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
        start = self.next(zones.to_seconds(instant))
        return None if start is None else zones.to_datetime(start)

    def before(self, instant: datetime) -> datetime | None:
        """Return the latest start that is not later than an instant, in UTC; None means never.

        Never means: no start in the five years before. Raises ValueError for an instant without a
        zone.
        """
        until = zones.to_seconds(instant)
        for days in _LOOKS_BACK:
            _, latest = self.count(until - days * DAY, until)
            if latest is not None:
                return zones.to_datetime(latest)
        return None

    def has(self, instant: datetime) -> bool:
        """Return whether there is a start in the second of an instant.

        Raises ValueError for an instant without a zone.
        """
        return self.starts_at(zones.to_seconds(instant))

    def missed(self, since: datetime, until: datetime) -> Missed:
        """Return the number of starts in (since, until], and the latest.

        They are counted without visiting each. Raises ValueError for an instant without a zone.
        """
        number, latest = self.count(zones.to_seconds(since), zones.to_seconds(until))
        return Missed(number, None if latest is None else zones.to_datetime(latest))

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


@dataclass(frozen=True)
class Calendar(Schedule):
    """Starts whenever the clocks of the zone show a minute that the fields match."""

    fields: CronFields = field(repr=False)

    def starts_at(self, instant: int) -> bool:
        """Return whether there is a start at an instant, in seconds since 1970."""
        return self.fields.admit(instant + zones.offset(self.zone, instant))

    def next(self, instant: int) -> int | None:
        """Return the first start later than an instant; both are seconds since 1970."""
        if not self.fields.occurs:
            return None  # otherwise it would look at every day of five years
        ahead = zones.offset(self.zone, instant + 1)
        year, _, _ = civil((instant + 1 + ahead) // DAY)
        limit = number(year + YEARS + 1, 1, 1) * DAY
        for shift, low, high in zones.stretches(self.zone, instant + 1, limit - ahead + DAY):
            for day, first, _ in self.fields.between(low, min(high, limit)):
                return day * DAY + self.fields.slots[first] - shift
        return None

    def count(self, since: int, until: int) -> tuple[int, int | None]:
        """Return the number of starts in (since, until] and the latest, in seconds since 1970.

        They are counted by the day.
        """
        total, latest, slots = 0, None, self.fields.slots
        if self.fields.occurs:
            for shift, low, high in zones.stretches(self.zone, since + 1, until + 1):
                for day, first, beyond in self.fields.between(low, high):
                    total += beyond - first
                    latest = day * DAY + slots[beyond - 1] - shift
        return total, latest
