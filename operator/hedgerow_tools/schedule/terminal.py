"""Schedule on a terminal: starts and windows as tables, with what there is to know below them."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from rich.table import Table

from hedgerow_tools.render.times import length, local, utc
from hedgerow_tools.render.widths import page_terminal
from hedgerow_tools.schedule.coming import SKIPPED_SHOWN, Starts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from hedgerow_tools.schedule.coming import Start, Window, Windows

    Rows = tuple[Sequence[str], list[tuple[str, ...]]]
    """The titles of the columns, and the rows."""

ROOM_FOR_UTC: Final = 100
"""The least columns of a terminal on which times are shown in UTC as well."""


def show(results: Iterable[Starts | Windows], now: datetime) -> None:
    """Print a table for each, with its notes."""
    console = page_terminal()
    for number, result in enumerate(results):
        if number:
            console.print()
        if heading := _heading(result):
            console.print(heading, soft_wrap=True)
        titles, rows = _starts(result) if isinstance(result, Starts) else _windows(result, now)
        if rows:
            console.print(_table(titles, rows, has_utc=console.width >= ROOM_FOR_UTC))
        for note in result.notes:
            console.print(note, soft_wrap=True)


def _heading(result: Starts | Windows) -> str:
    if isinstance(result, Starts):
        return f"{result.object}: {result.schedule!r} in {result.zone}" if result.object else ""
    target = f"{result.sets.object}: {result.sets.field}"
    return f"{result.object}: windows in {result.zone}, which set {target}"


def _starts(coming: Starts) -> Rows:
    rows = [
        (local(run.local), utc(run.utc), length(timedelta(seconds=run.in_seconds)), _daylight(run))
        for run in coming.starts
    ]
    titles = (f"local ({coming.zone})", "UTC", "in", "daylight saving")
    is_noted = any(row[3] for row in rows)
    return titles[: 3 + is_noted], [row[: 3 + is_noted] for row in rows]


def _daylight(start: Start) -> str:
    """Return in words what daylight saving does to a start."""
    notes = [f"{start.repeated} {start.local:%H:%M} of two"] if start.repeated else []
    if skipped := start.skipped_before:
        same_day = all(time.date() == start.local.date() for time in skipped)
        shown = "%H:%M" if same_day else "%Y-%m-%d %H:%M"
        times = [format(time, shown) for time in skipped[:SKIPPED_SHOWN]]
        more = " and more" if len(skipped) > SKIPPED_SHOWN else ""
        notes.append(f"skipped before it: {', '.join(times)}{more}")
    return "; ".join(notes)


def _windows(coming: Windows, now: datetime) -> Rows:
    titles = (f"from ({coming.zone})", "UTC", "what", "sets")
    return titles, [tuple(_window(phase, now)) for phase in coming.phases]


def _window(window: Window, now: datetime) -> Iterator[str]:
    since = window.since
    yield local(since) if since else "-"
    yield utc(since) if since else "-"
    is_now = (since is None or since <= now) and (window.until is None or now < window.until)
    yield f"{'window' if window.in_force else 'no window'}{' (now)' if is_now else ''}"
    yield f"{window.replicas}, as before" if window.former else str(window.replicas)


def _table(titles: Sequence[str], rows: Iterable[Sequence[str]], *, has_utc: bool) -> Table:
    shown = [number for number, title in enumerate(titles) if has_utc or title != "UTC"]
    table = Table(box=None, pad_edge=False)
    for number in shown:
        is_whole = titles[number] != "daylight saving"
        table.add_column(titles[number], no_wrap=is_whole, overflow="fold")
    for row in rows:
        table.add_row(*(row[number] for number in shown))
    return table
