"""Times: how instants and durations are read from the command line, and how they are shown."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from datetime import timedelta, tzinfo

EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
LATEST = datetime(9000, 1, 1, tzinfo=UTC)


def moment(option: str, text: str, zone: tzinfo) -> datetime:
    """Return an RFC 3339 time or a date, in `zone` if it has no offset. Raises BadParameter."""
    try:
        instant = datetime.fromisoformat(text.upper())
    except ValueError:
        raise typer.BadParameter(
            f"{option} takes a time such as 2026-03-08T02:30:00Z or a date, not {text!r:.60}"
        ) from None
    instant = instant if instant.tzinfo else instant.replace(tzinfo=zone)
    if not EARLIEST <= instant <= LATEST:
        raise typer.BadParameter(f"{option}: {text} is not between 1970 and 9000")
    return instant


def local(instant: datetime) -> str:
    """Return a time as `Sun 2026-03-29 03:30:00 CEST +02:00`; some zones have only an offset."""
    offset = instant.isoformat()[19:]
    name = instant.tzname() or ""
    return f"{instant:%a %Y-%m-%d %H:%M:%S} {f'{name} ' if name.isalpha() else ''}{offset}"


def utc(instant: datetime) -> str:
    """Return a time as manifests and the API write it: `2026-03-29T01:30:00Z`."""
    return instant.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="seconds") + "Z"


def length(distance: timedelta) -> str:
    """Return a duration as `2d 3h 4m 5s`, rounded down to the second, without zeros."""
    hours, seconds = divmod(distance.seconds, 3600)
    parts = {"d": distance.days, "h": hours, "m": seconds // 60, "s": seconds % 60}
    return " ".join(f"{number}{unit}" for unit, number in parts.items() if number) or "0s"


def age(since: str, now: datetime) -> str:
    """Return the time since an RFC 3339 instant as kubectl does: 5m30s, 3h, 3d.

    The steps are those of `HumanDuration` in k8s.io/apimachinery/pkg/util/duration.
    """
    try:
        seconds = int((now - datetime.fromisoformat(since)).total_seconds())
    except (TypeError, ValueError):  # no time, or one without zone
        return "?"
    if seconds < 0:  # clocks differ a little
        return "0s" if seconds >= -2 else "?"  # noqa: PLR2004 - the same tolerance as kubectl's
    for limit, unit, lesser in _STEPS:
        if seconds < limit:
            count, rest = divmod(seconds, _SECONDS[unit])
            more = rest // _SECONDS[lesser] if lesser else 0
            return f"{count}{unit}" + (f"{more}{lesser}" if more else "")
    return f"{seconds // _SECONDS['y']}y"


_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "y": 31_536_000}
_STEPS = (
    (2 * 60, "s", ""), (10 * 60, "m", "s"), (3 * 3600, "m", ""), (8 * 3600, "h", "m"),
    (48 * 3600, "h", ""), (8 * 86_400, "d", "h"), (2 * 31_536_000, "d", ""),
    (8 * 31_536_000, "y", "d"),
)  # fmt: skip
