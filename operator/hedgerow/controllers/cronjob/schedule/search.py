"""Search: the next start after an instant, found in the steps of robfig/cron v3.0.1.

It repeats each step of the library's `SpecSchedule.Next`, because its behaviour around a daylight
saving change follows from these steps and from no simpler rule. Two of its bugs are not repeated.
If a calendar day does not exist, the library never returns; here the search continues a day later.
If the clocks go back across midnight, the library may return an instant that is not later than the
given one; here the result is always later.
Instants are whole seconds since 1970, in UTC.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hedgerow.controllers.cronjob.schedule.days import DAY, civil, number
from hedgerow.controllers.cronjob.schedule.zones import offset, to_instant, to_last_instant

if TYPE_CHECKING:
    from datetime import tzinfo

    from hedgerow.controllers.cronjob.schedule.fields import CronFields

YEARS: Final = 5
"""How many years ahead to search."""

_HOUR: Final = 3600
_MINUTE: Final = 60
_NOON: Final = 12


def next_start(fields: CronFields, zone: tzinfo, after: int) -> int | None:
    """Return the first start later than `after`, or None if there is none within five years."""
    found = _Search(fields, zone, after).run()
    if found is not None and found <= after:
        return _Search(fields, zone, after, forward=True).run()
    return found


class _Search:
    """One search: an instant that moves forward until every field matches it."""

    def __init__(
        self, fields: CronFields, zone: tzinfo, after: int, *, forward: bool = False
    ) -> None:
        self._fields = fields
        self._zone = zone
        self._forward = forward
        self._read = to_last_instant if forward else to_instant
        self._moved = False
        self._go(after + 1)

    def run(self) -> int | None:
        if not self._fields.occurs:
            return None  # otherwise it would step through every day or minute of five years
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
        """Go to the start of the unit that does not match, but only the first time."""
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
        """Find second 0, the only value of robfig's seconds field here."""
        if self._local % _MINUTE == 0:
            return True
        self._moved = True
        while self._local % _MINUTE:
            self._leap(-self._local % _MINUTE, 1)
        return False

    def _leap(self, ahead: int, step: int) -> None:
        """Go `ahead` at once, or by a single `step` if the offset changes on the way."""
        same = offset(self._zone, self._at + ahead) == self._local - self._at
        self._go(self._at + (ahead if same else step))
