"""Zones: IANA time zones by name, and the offset of any instant.

The data are those of the pinned `tzdata` package, never the machine's. A slim image has none, and
the operator and `hedgerow schedule` on somebody's laptop must agree.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Final
from zoneinfo import ZoneInfo

from hedgerow.schedule.days import CYCLE, DAY
from hedgerow.schedule.errors import ScheduleError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import tzinfo

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
ZONE_FIELD: Final = "time zone"
"""The name of a zone in errors."""
_NAME: Final = re.compile(r"[A-Za-z0-9_+-]{1,32}(?:/[A-Za-z0-9_+-]{1,32}){0,3}")
FIRST: Final = -62_135_596_800 + 2 * DAY
LAST: Final = 253_402_300_800 - 2 * DAY
"""Two days inside the limits of datetime, so that local times are within them in every zone."""
_STRIDE: Final = 3 * DAY
"""No zone has two changes within six days, so steps of this size miss none (test_zones.py)."""
_SECOND: Final = timedelta(seconds=1)


def zone(name: str) -> tzinfo:
    """Return a time zone by its IANA name, such as `Europe/Berlin`; datetime.UTC for UTC.

    Raises ScheduleError if there is no such zone. `Local` is not accepted: the machine's setting
    must not affect a schedule in a cluster.
    """
    if name in {"UTC", "Etc/UTC"}:
        return UTC
    if name == "Local":
        raise ScheduleError(ZONE_FIELD, name, "say which; the machine's own means nothing here")
    if not _NAME.fullmatch(name):
        raise ScheduleError(ZONE_FIELD, name, "this is no IANA name, such as Europe/Berlin")
    return _load(name)


@lru_cache(maxsize=1024)
def _load(name: str) -> ZoneInfo:
    try:
        with files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as source:
            return ZoneInfo.from_file(source, key=name)
    except (OSError, ValueError):
        known = _spelled().get(name.casefold())
        hint = f"; it has {known}" if known and known != name else ""
        reason = f"the IANA database has none of this name{hint}"
        raise ScheduleError(ZONE_FIELD, name, reason) from None


@lru_cache(maxsize=1)
def _spelled() -> dict[str, str]:
    """Return all zone names, keyed by their lower-case form."""
    names = files("tzdata").joinpath("zones").read_text("ascii").split()
    return {name.casefold(): name for name in names}


def offset(place: tzinfo, instant: int) -> int:
    """Return the offset from UTC in seconds, at an instant in seconds since 1970.

    Outside the limits of datetime it is that of the same day a multiple of 400 years nearer: the
    calendar repeats then, and a zone's first and last rules are taken to hold for ever.
    """
    if isinstance(place, timezone):
        delta = place.utcoffset(None)
    else:
        near = instant
        while not FIRST <= near <= LAST:
            near += CYCLE * DAY * (1 if near < FIRST else -1)
        delta = (EPOCH + timedelta(seconds=near)).astimezone(place).utcoffset()
    return (delta or timedelta()) // _SECOND


def next_change(place: tzinfo, instant: int, horizon: int) -> int:
    """Return the first second after an instant with another offset, or the horizon."""
    here = offset(place, instant)
    if isinstance(place, timezone):
        return horizon
    low, high = instant, instant
    while offset(place, high) == here:
        if high >= horizon:
            return horizon
        low, high = high, min(high + _STRIDE, horizon)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if offset(place, middle) == here else (low, middle)
    return high


def stretches(place: tzinfo, begin: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yield what the clocks show from `begin` until before `end`, in stretches of one offset.

    Each is its offset, the first local time, and the local time that it does not reach. Where the
    zone's offset changes, times are skipped or repeated between two stretches.
    """
    width = _STRIDE
    while begin < end:
        ahead = offset(place, begin)
        change = next_change(place, begin, min(begin + width, end))
        yield ahead, begin + ahead, change + ahead
        begin, width = change, 2 * width


def to_seconds(moment: datetime) -> int:
    """Return the whole seconds since 1970, rounded down. Raises ValueError without a zone."""
    if moment.utcoffset() is None:
        raise ValueError(f"{moment.isoformat()} has no time zone")
    return (moment - EPOCH) // _SECOND


def to_datetime(instant: int) -> datetime | None:
    """Return the instant in UTC, or None after the year 9999, where datetime ends."""
    try:
        return EPOCH + timedelta(seconds=instant)
    except OverflowError:
        return None
