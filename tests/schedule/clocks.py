"""Clocks: the starts of a schedule, found by looking at a zone's clocks at each instant.

It shares no code with what is tested: the fields are read here, and the clocks are `zoneinfo`'s.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache
from importlib.resources import files
from io import BytesIO
from itertools import pairwise
from zoneinfo import ZoneInfo

NAMES = files("tzdata").joinpath("zones").read_text("ascii").split()
MACROS = {
    "@daily": "0 0 * * *",
    "@hourly": "0 * * * *",
    "@weekly": "0 0 * * 0",
}
BOUNDS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))
MINUTE = 60
LOOK = 6 * 3600
WEEK = 7 * 86_400


@cache
def zone_of(name: str) -> ZoneInfo:
    """Return a zone with the data of the package, as hedgerow has them."""
    return ZoneInfo.from_file(BytesIO(_data(name)), key=name)


def distinct() -> list[str]:
    """Return the first name of each zone: two of five names are links."""
    first: dict[bytes, str] = {}
    for name in NAMES:
        first.setdefault(_data(name), name)
    return list(first.values())


def _data(name: str) -> bytes:
    return files("tzdata").joinpath("zoneinfo", *name.split("/")).read_bytes()


def field_values(text: str, least: int, largest: int) -> set[int]:
    """Return the numbers of one field: `*`, numbers, ranges and steps, with commas between them."""
    found: set[int] = set()
    for item in text.split(","):
        span, _, step = item.partition("/")
        low, hyphen, high = span.partition("-")
        if span == "*":
            begin, end = least, largest
        else:
            begin = int(low)
            end = int(high) if hyphen else (largest if step else begin)
        found |= set(range(begin, end + 1, int(step or 1)))
    return found


@cache
def matching(expression: str) -> tuple[tuple[set[int], ...], bool]:
    """Return the numbers of the five fields, and whether a day must match both day fields."""
    texts = MACROS.get(expression, expression).split()
    values = tuple(field_values(text, *bound) for text, bound in zip(texts, BOUNDS, strict=True))
    return values, "*" in (texts[2], texts[4])


def admits(expression: str, wall: datetime) -> bool:
    """Return whether a wall-clock time is a start."""
    (minutes, hours, days, months, weekdays), both = matching(expression)
    by_day, by_weekday = wall.day in days, wall.isoweekday() % 7 in weekdays
    return (
        wall.second == 0
        and wall.minute in minutes
        and wall.hour in hours
        and wall.month in months
        and (by_day and by_weekday if both else by_day or by_weekday)
    )


def walls(place: str, since: int, until: int) -> list[tuple[int, datetime]]:
    """Return each instant in (since, until] at which the clocks show a full minute, and that.

    Instants are seconds since 1970. It goes by the minute, and where the offset changes within the
    next minute, by the second.
    """
    zone, found, instant = zone_of(place), list[tuple[int, datetime]](), since + 1
    while instant <= until:
        wall = datetime.fromtimestamp(instant, UTC).astimezone(zone)
        if wall.second == 0:
            found.append((instant, wall))
        after = datetime.fromtimestamp(instant + MINUTE, UTC).astimezone(zone)
        instant += 1 if after.utcoffset() != wall.utcoffset() else MINUTE - wall.second
    return found


def shown_by(expression: str, place: str, since: int, until: int) -> list[int]:
    """Return the starts in (since, until]: whenever the clocks show what the fields name."""
    return [instant for instant, wall in walls(place, since, until) if admits(expression, wall)]


def offset(place: str, instant: int) -> int:
    """Return the offset from UTC at an instant, in seconds."""
    shown = datetime.fromtimestamp(instant, UTC).astimezone(zone_of(place)).utcoffset()
    return (shown or timedelta()) // timedelta(seconds=1)


def changes(place: str, begin: int, end: int) -> list[tuple[int, int, int]]:
    """Return the changes of the offset in [begin, end): roughly when, from what, and to what.

    When is at most `LOOK` late. A change that is taken back within a week is not found.
    """
    found: list[tuple[int, int, int]] = []
    for week in range(begin, end, WEEK):
        until = min(week + WEEK, end - 1)
        if offset(place, week) == offset(place, until):
            continue
        offsets = [(at, offset(place, at)) for at in range(week, until + 1, LOOK)]
        found += [(at, old, new) for (_, old), (at, new) in pairwise(offsets) if old != new]
    return found
