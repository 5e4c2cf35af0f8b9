"""Durations: what Go's time.ParseDuration reads, such as `1h30m`, `.5s` or `-2us`."""

from __future__ import annotations

import re
from typing import Final

from hedgerow.schedule.errors import ScheduleError

_UNITS: Final = {
    "ns": 1,
    "us": 10**3,
    "\u00b5s": 10**3,  # the micro sign
    "\u03bcs": 10**3,  # the Greek letter
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_PART: Final = re.compile(r"([0-9]*)(?:\.([0-9]*))?([^.0-9]*)")
_LIMIT: Final = 2**63
"""A duration's nanoseconds fit into a signed 64-bit integer: about 292 years."""
_DIGITS: Final = len(str(_LIMIT)) + 1


def nanoseconds(text: str) -> int:
    """Return a duration in nanoseconds. Raises ScheduleError.

    The rules, rounding and limits are those of Go 1.26, time/format.go, `ParseDuration`.
    """
    negative = text.startswith("-")
    rest = text[1:] if text.startswith(("+", "-")) else text
    if rest == "0":
        return 0
    if not rest:
        raise _refused(text, "there is none; write for instance 1h30m")
    total, place = 0, 0
    while place < len(rest):
        part = _PART.match(rest, place)
        assert part is not None  # noqa: S101 - every one of its pieces may be empty
        total += _part(text, part)
        if total > _LIMIT:
            raise _refused(text, "it is too long")
        place = part.end()
    if total == _LIMIT and not negative:
        raise _refused(text, "it is too long")
    return -total if negative else total


def _part(text: str, part: re.Match[str]) -> int:
    whole, fraction, unit = part.groups("")
    if not whole and not fraction:
        raise _refused(text, f"a number is missing before {part[0]!r:.20}")
    if not unit:
        raise _refused(text, f"a unit is missing after {part[0]!r:.20}; there are h, m, s, ms")
    if unit not in _UNITS:
        day = "; a day is 24h" if unit == "d" else ""
        raise _refused(text, f"{unit!r:.20} is no unit; there are h, m, s, ms, us, ns{day}")
    size = _UNITS[unit]
    digits = whole.lstrip("0")
    count = int(digits[:_DIGITS] or 0)  # as many as suffice to be too many
    return count * size + _fraction(fraction, size)


def _fraction(digits: str, size: int) -> int:
    """Return the nanoseconds of a fraction, with the same floating-point rounding as Go."""
    value, scale = 0, 1.0
    for digit in digits:
        if value > (_LIMIT - 1) // 10:  # Go may stop one digit earlier: less than a nanosecond
            break
        value = value * 10 + int(digit)
        scale *= 10
    return int(value * (size / scale))


def _refused(text: str, reason: str) -> ScheduleError:
    return ScheduleError("@every", text, reason)
