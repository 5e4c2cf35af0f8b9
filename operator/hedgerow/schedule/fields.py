"""Fields: the five fields of a schedule, each as the set of values that it matches.

A set is an integer with bit n for value n. It has the star bit where robfig/cron v3.0.1 sets it
(parser.go, `getField` and `getRange`).
"""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

from hedgerow.schedule.days import DAY, civil, weekday
from hedgerow.schedule.errors import ScheduleError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

STAR: Final = 1 << 63
"""Set by `*` and `?`. If either day field has it, a day must match both fields, else only one."""

_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_LARGEST: Final = 2**63 - 1
_BETWEEN: Final = 2
_MONTHS: Final = "jan feb mar apr may jun jul aug sep oct nov dec"
_LENGTHS: Final = (0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
"""The most days of each month, counted from 1."""
_WEEKDAYS: Final = "sun mon tue wed thu fri sat"
_HERE: Final = "this dialect is that of robfig/cron, as in Kubernetes"
_UNLESS: Final = "have the Job end at once unless it is the one meant"
_ELSEWHERE: Final = (
    (
        re.compile(r"[^#]*#.*", re.IGNORECASE).fullmatch,
        f"# is of Quartz; {_HERE}: say 1-7 for the day of month, and {_UNLESS}",
    ),
    (
        re.compile(r"l", re.IGNORECASE).fullmatch,
        f"L is of Quartz; {_HERE}: say 28-31 for the day of month, and {_UNLESS}",
    ),
    (
        re.compile(r"([0-9]|sun|mon|tue|wed|thu|fri|sat)l", re.IGNORECASE).fullmatch,
        f"L is of Quartz; {_HERE}: say 22-31 for the day of month, and {_UNLESS}",
    ),
    (
        re.compile(r"([0-9]+|l)w", re.IGNORECASE).fullmatch,
        f"W is of Quartz; {_HERE}: name the days, and {_UNLESS}",
    ),
    (re.compile(r"h(\(.*\))?", re.IGNORECASE).fullmatch, f"H is of Jenkins; {_HERE}: say a number"),
)
"""Syntax of other dialects, and how to write the same in this one."""


@dataclass(frozen=True)
class Field:
    """One of the five fields: its name, its least and largest value, and names for values."""

    name: str
    least: int
    largest: int
    names: Mapping[str, int]

    @property
    def every(self) -> int:
        """The set of `*`."""
        return bits(self.least, self.largest) | STAR

    def parse(self, text: str) -> int:
        """Return the set of a list of ranges; empty items are skipped, as in robfig.

        A list of only commas is an empty set, which never matches. Raises ScheduleError.
        """
        bits = 0
        for item in text.split(","):
            bits |= self._range(item) if item else 0
        return bits

    def _range(self, text: str) -> int:
        span, *steps = text.split("/")
        low, *high = span.split("-")
        if low in {"*", "?"}:
            start, end, star = self.least, self.largest, STAR  # text after a hyphen is ignored
        else:
            start, end, star = *self._bounds(text, low, high), 0
        if not steps:
            step = 1
        elif len(steps) == 1:
            step = self._integer(steps[0], text)
            end = end if high else self.largest
            star = star if step <= 1 else 0
        else:
            raise self._refused(text, "has more than one slash")
        self._check(text, start, end, step)
        return bits(start, end, step) | star

    def _bounds(self, text: str, low: str, high: list[str]) -> tuple[int, int]:
        if len(high) >= _BETWEEN:
            raise self._refused(text, "has more than one hyphen")
        start = self._value(low, text)
        return start, self._value(high[0], text) if high else start

    def _check(self, text: str, start: int, end: int, step: int) -> None:
        if start < self.least:
            raise self._refused(text, f"{start} is below {self.least}")
        if end > self.largest:
            sunday = self is DAY_OF_WEEK and end == self.largest + 1
            hint = f"; Sunday is 0{self._round(text, start, 0)}" if sunday else ""
            raise self._refused(text, f"{end} is above {self.largest}{hint}")
        if start > end:
            reason = f"the range begins at {start} and ends before, at {end}"
            raise self._refused(text, f"{reason}{self._round(text, start, end)}")
        if step == 0:
            raise self._refused(text, "the step is 0")

    def _round(self, text: str, start: int, end: int) -> str:
        """Return how to write a range that wraps around; empty if the range has a step."""
        if "-" not in text or "/" in text or start > self.largest:
            return ""
        named = {number: name for name, number in self.names.items()} if text[0].isalpha() else {}

        def span(low: int, high: int) -> str:
            ends = dict.fromkeys(named.get(number, str(number)) for number in (low, high))
            return "-".join(ends)

        parts = f"{span(start, self.largest)},{span(self.least, end)}"
        return f"; a range does not go round: say {parts}"

    def _value(self, text: str, item: str) -> int:
        # In lower case, this letter is a plain "i" in Go, but two characters in Python.
        named = self.names.get(text.replace("\u0130", "i").lower())
        return self._integer(text, item) if named is None else named

    def _integer(self, text: str, item: str) -> int:
        """Return an integer as Go's strconv.Atoi reads it: ASCII digits with a sign, 64 bits."""
        if not text:
            between = f"{self.least}-{self.largest}, */5 or {self.least}"
            raise self._refused(item, f"a value is missing; write for instance {between}")
        if not _INTEGER.fullmatch(text):
            raise self._refused(item, self._not_a_number(text, item))
        number = int(text)
        if number > _LARGEST:
            raise self._refused(item, "the number is too large")
        if number < 0:
            raise self._refused(item, "the number is negative")
        return number

    def _not_a_number(self, text: str, item: str) -> str:
        for is_meant, hint in _ELSEWHERE:
            if is_meant(text) or is_meant(item):
                return hint
        names = f" or one of {', '.join(self.names)}" if self.names else ""
        return f"{text!r:.40} is not a number{names}"

    def _refused(self, item: str, reason: str) -> ScheduleError:
        return ScheduleError(self.name, item, reason)


def _named(names: str, first: int) -> dict[str, int]:
    return {name: number for number, name in enumerate(names.split(), first)}


MINUTE: Final = Field("minute", 0, 59, {})
HOUR: Final = Field("hour", 0, 23, {})
DAY_OF_MONTH: Final = Field("day of month", 1, 31, {})
MONTH: Final = Field("month", 1, 12, _named(_MONTHS, 1))
DAY_OF_WEEK: Final = Field("day of week", 0, 6, _named(_WEEKDAYS, 0))
ORDER: Final = (MINUTE, HOUR, DAY_OF_MONTH, MONTH, DAY_OF_WEEK)


@dataclass(frozen=True)
class CronFields:
    """The five sets of a schedule."""

    minutes: int
    hours: int
    days: int
    months: int
    weekdays: int

    def admit(self, local: int) -> bool:
        """Return whether a wall-clock time, in seconds since 1970 local time, is a start."""
        day, second = divmod(local, DAY)
        return self.admit_date(day) and second in self._slots

    def admit_date(self, day: int) -> bool:
        """Return whether a day, counted from 1970-01-01, matches."""
        return bool(self.months >> civil(day)[1] & 1) and self.admit_day(day)

    def admit_day(self, day: int) -> bool:
        """Return whether a day, counted from 1970-01-01, matches, whatever its month."""
        by_day = self.days >> civil(day)[2] & 1
        by_weekday = self.weekdays >> weekday(day) & 1
        if (self.days | self.weekdays) & STAR:
            return bool(by_day and by_weekday)
        return bool(by_day or by_weekday)

    def between(self, low: int, high: int) -> Iterator[tuple[int, int, int]]:
        """Yield each day that has starts in [low, high), local time, and their slice of `slots`."""
        last = high // DAY
        for day in range(low // DAY, last + 1):
            if self.admit_date(day):
                first = bisect_left(self.slots, low % DAY) if day == low // DAY else 0
                beyond = bisect_left(self.slots, high % DAY) if day == last else len(self.slots)
                if beyond > first:
                    yield day, first, beyond

    @cached_property
    def occurs(self) -> bool:
        """Whether there is any start: 30 February, for instance, does not exist."""
        months = [month for month in range(1, len(_LENGTHS)) if self.months >> month & 1]
        by_day = any(self.days & bits(1, _LENGTHS[month]) for month in months)
        by_weekday = bool(months and self.weekdays & DAY_OF_WEEK.every & ~STAR)
        both = (self.days | self.weekdays) & STAR
        days = by_day and by_weekday if both else by_day or by_weekday
        return days and bool(self.slots)

    @cached_property
    def slots(self) -> tuple[int, ...]:
        """The seconds since midnight at which an ordinary day has starts, in order."""
        return tuple(
            3600 * hour + 60 * minute
            for hour in range(24)
            if self.hours >> hour & 1
            for minute in range(60)
            if self.minutes >> minute & 1
        )

    @cached_property
    def _slots(self) -> frozenset[int]:
        return frozenset(self.slots)


def bits(start: int, end: int, step: int = 1) -> int:
    """Return the set of every step-th value from start to end, both inclusive."""
    return sum(1 << value for value in range(start, end + 1, step))
