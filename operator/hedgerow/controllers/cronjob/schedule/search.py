"""Search: the next start after an instant, found in the steps of robfig/cron v3.0.1.

Step by step it is `SpecSchedule.Next` of that library, since what it does around a daylight saving
change is the outcome of its steps and of nothing simpler. Two of its mistakes are not repeated:
where a calendar day does not exist it never returns (here the search goes on a day later), and
where the clocks go back across midnight it may answer with an instant that is not later than the
one it was asked for (here, the next one that is).
Instants are whole seconds since 1970, in UTC.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hedgerow.controllers.cronjob.schedule.days import DAY, civil, number
from hedgerow.controllers.cronjob.schedule.zones import offset, to_instant, to_last_instant

if TYPE_CHECKING:
    from datetime import tzinfo

    from hedgerow.controllers.cronjob.schedule.fields import Fields

YEARS: Final = 5
"""How far it looks: a year later than this has no start."""

_HOUR: Final = 3600
_MINUTE: Final = 60
_NOON: Final = 12


def next_start(fields: Fields, zone: tzinfo, after: int) -> int | None:
    """Return the first start later than `after`, or None if there is none within five years."""
    found = _Search(fields, zone, after).run()
    if found is not None and found <= after:
        return _Search(fields, zone, after, forward=True).run()
    return found


class _Search:
    """One search: the instant it is at, moved forward until every field admits it."""

    def __init__(self, fields: Fields, zone: tzinfo, after: int, *, forward: bool = False) -> None:
        self._fields = fields
        self._zone = zone
        self._forward = forward
        self._read = to_last_instant if forward else to_instant
        self._moved = False
        self._go(after + 1)

    def run(self) -> int | None:
        if not self._fields.slots:
            return None  # the steps would take five years of minutes to say so
        limit = self._civil[0] + YEARS
        while self._civil[0] <= limit:
            if (
                self._find_month()
                and self._find_day()
                and self._find_hour()
                and self._find_minute()
                and self._find_second()
            ):
                return self._at
        return None

    def _go(self, instant: int) -> None:
        self._at = instant
        self._local = instant + offset(self._zone, instant)

    @property
    def _civil(self) -> tuple[int, int, int]:
        return civil(self._local // DAY)

    @property
    def _hour(self) -> int:
        return self._local % DAY // _HOUR

    @property
    def _minute(self) -> int:
        return self._local // _MINUTE % 60

    def _truncate(self, instant: int) -> None:
        """Begin at the start of the unit that does not match: only the first time that one does."""
        if not self._moved:
            self._moved = True
            self._go(instant)

    def _find_month(self) -> bool:
        while not self._fields.months >> self._civil[1] & 1:
            year, month, _ = self._civil
            self._truncate(self._read(self._zone, number(year, month, 1) * DAY))
            year, month, day = self._civil
            self._go(self._read(self._zone, number(year, month + 1, day) * DAY + self._local % DAY))
            if self._civil[1] == 1:
                return False
        return True

    def _find_day(self) -> bool:
        while not self._admits_day():
            self._truncate(self._read(self._zone, self._local // DAY * DAY))
            self._next_day()
            if self._civil[2] == 1:
                return False
        return True

    def _admits_day(self) -> bool:
        return self._fields.admit_day(self._local // DAY)

    def _next_day(self) -> None:
        before = self._at
        self._go(self._read(self._zone, self._local + DAY))
        if self._at <= before:
            self._go(before + DAY)  # the next day does not exist, as in Apia on 2011-12-30
        hour = self._hour
        if hour > _NOON:
            self._go(self._at + (24 - hour) * _HOUR)
        elif hour:
            self._go(self._at - hour * _HOUR)

    def _find_hour(self) -> bool:
        while not self._fields.hours >> self._hour & 1:
            start = self._local // _HOUR * _HOUR
            same = self._at - self._local % _HOUR
            self._truncate(same if self._forward else self._read(self._zone, start))
            self._go(self._at + _HOUR)
            if self._hour == 0:
                return False
        return True

    def _find_minute(self) -> bool:
        while not self._fields.minutes >> self._minute & 1:
            self._truncate(self._at // _MINUTE * _MINUTE)
            later = (self._fields.minutes | 1 << 60) >> self._minute + 1
            self._leap((later & -later).bit_length() * _MINUTE, _MINUTE)
            if self._minute == 0:
                return False
        return True

    def _find_second(self) -> bool:
        """Robfig's seconds field holds but 0 here."""
        if self._local % _MINUTE == 0:
            return True
        self._moved = True
        while self._local % _MINUTE:
            self._leap(-self._local % _MINUTE, 1)
        return False

    def _leap(self, ahead: int, step: int) -> None:
        """Go ahead at once; by a single step where the steps lead through a change."""
        same = offset(self._zone, self._at + ahead) == self._local - self._at
        self._go(self._at + (ahead if same else step))
