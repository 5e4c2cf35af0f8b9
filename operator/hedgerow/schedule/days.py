"""Days: dates counted from 1970-01-01, without the limits of datetime."""

from __future__ import annotations

from datetime import date
from typing import Final

DAY: Final = 86_400
CYCLE: Final = 146_097
"""Days in 400 years, after which the Gregorian calendar repeats, including weekdays."""

_START: Final = date(1970, 1, 1).toordinal()
_YEARS: Final = 400
_MONTHS: Final = 12


def civil(day: int) -> tuple[int, int, int]:
    """Return a day's year, month and day of the month."""
    cycles, rest = divmod(day, CYCLE)
    shifted = date.fromordinal(_START + rest)
    return shifted.year + _YEARS * cycles, shifted.month, shifted.day


def weekday(day: int) -> int:
    """Return a day's weekday; Sunday is 0."""
    return (day + 4) % 7


def number(year: int, month: int, day: int) -> int:
    """Return the number of a day; too large months or days carry over, as in Go's time.Date."""
    carried, month_before = divmod(month - 1, _MONTHS)
    cycles, rest = divmod(year + carried - 1970, _YEARS)
    first = date(1970 + rest, month_before + 1, 1).toordinal()
    return first - _START + CYCLE * cycles + day - 1
