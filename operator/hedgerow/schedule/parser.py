"""Parser: a schedule's text, read in the same way as by robfig/cron v3.0.1 `ParseStandard`."""

from __future__ import annotations

import re
from datetime import UTC
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from hedgerow.schedule.durations import nanoseconds
from hedgerow.schedule.errors import ScheduleError
from hedgerow.schedule.fields import ORDER, CronFields
from hedgerow.schedule.schedule import Calendar, Every, Schedule
from hedgerow.schedule.zones import ZONE_FIELD, to_seconds
from hedgerow.schedule.zones import zone as load

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime, tzinfo

LIMIT: Final = 1024
"""The most characters of an expression; twice as many as when every value is written out."""

_SPACE: Final = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(
    map(chr, range(0x2000, 0x200B))
)
"""The characters of Go's unicode.IsSpace; str.split() also splits at others."""
_WORDS: Final = re.compile(f"[^{_SPACE}]+")
_MACROS: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_EVERY: Final = "@every "
_SECOND: Final = 10**9


def parse(expression: str, zone: tzinfo = UTC, anchor: datetime | None = None) -> Schedule:
    """Return the schedule of an expression; its fields are in `zone` unless it names its own.

    With an anchor, `@every d` has starts at the anchor, rounded down to the second, and at every
    multiple of d from it. Without one, the next start is d after the given instant, as in robfig.
    Raises ScheduleError, and ValueError for an anchor without a zone.

    `TZ=` without a name is UTC, as in Go. `TZ=Local`, which in Go means the zone of the caller's
    time, is refused. So is a prefix without a schedule after it, at which robfig panics.
    """
    if len(expression) > LIMIT:
        raise ScheduleError("schedule", expression, f"it is longer than {LIMIT} characters")
    anchored = None if anchor is None else to_seconds(anchor)
    text, place = _unprefixed(expression)
    where, prefixed = (zone, False) if place is None else (place, True)
    if text.startswith(_EVERY):
        distance = max(_distance(text.removeprefix(_EVERY)) // _SECOND, 1)
        return Every(expression, where, prefixed, distance, anchored)
    return Calendar(expression, where, prefixed, _fields(text))


def _distance(duration: str) -> int:
    """Return the nanoseconds of `@every`; negative ones are refused (robfig: every second)."""
    length = nanoseconds(duration)
    if length < 0:
        raise ScheduleError("@every", duration, "it is negative; write for instance 1h30m")
    return length


def errors(expression: str) -> Iterator[ScheduleError]:
    """Yield every error of an expression: one in its zone does not hide one in the rest."""
    try:
        parse(expression)
    except ScheduleError as error:
        yield error
        if error.field == ZONE_FIELD:
            yield from errors(expression.partition(" ")[2].strip(_SPACE))


def _unprefixed(expression: str) -> tuple[str, tzinfo | None]:
    """Return an expression without its zone prefix, and the zone or None."""
    if not expression.startswith(("TZ=", "CRON_TZ=")):
        return expression, None
    prefix, blank, rest = expression.partition(" ")
    if not blank:
        raise ScheduleError("schedule", expression, "no schedule follows the time zone")
    name = prefix.partition("=")[2]
    return rest.strip(_SPACE), load(name) if name else UTC


@lru_cache(maxsize=64)  # with every minute as a start, one takes 120 kB
def _fields(text: str) -> CronFields:
    """Return the fields of an expression; they remember what is derived from them.

    Many resources have one schedule, and each is read again in every pass.
    """
    if text.startswith("@"):
        if text not in _MACROS:
            known = ", ".join((*_MACROS, "@every 1h30m"))
            raise ScheduleError("schedule", text, f"there is no such name; there are {known}")
        text = _MACROS[text]
    words = _WORDS.findall(text)
    if len(words) != len(ORDER):
        names = ", ".join(field.name for field in ORDER)
        more = len(words) > len(ORDER)
        hint = ": none for seconds or years, as in Kubernetes; @every 30s is each half minute"
        reason = f"it takes {len(ORDER)} fields ({names}), not {len(words)}{hint if more else ''}"
        raise ScheduleError("schedule", text, reason)
    return CronFields(*(field.parse(word) for field, word in zip(ORDER, words, strict=True)))
