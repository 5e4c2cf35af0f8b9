"""Shards terminal: who serves what, as a table no wider than the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.text import Text

from hedgerow.cli.owners.report import age
from hedgerow.cli.widths import (
    leave_out,
    natural,
    shortened_apart,
    shrink,
    table_line,
    wrapped,
)
from hedgerow.shards.slices import Slices
from hedgerow.texts import numbered, printable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from hedgerow.cli.shards.report import Gap, Replica, ShardsReport, State

_HEADERS: Final = (
    "REPLICA", "STATE", "SLICES", "NAMESPACES", "RESOURCES", "PASSES/S", "LAG", "SINCE",
)  # fmt: skip
_STATES: Final[dict[State, tuple[str, str]]] = {
    "serves": ("✓ ", "green"),
    "joins": ("~ ", "yellow"),
    "fills its caches": ("~ ", "yellow"),
    "leaves": ("- ", "yellow"),
    "silent": ("✗ ", "bold red"),
    "unreadable": ("? ", "bold red"),
}
_NAME: Final = 12
"""The least columns of a replica's name."""
_SPARE: Final = (7, 6, 5, 4, 3)
"""Columns that are left out if there is no room, in this order."""


def lines(report: ShardsReport, now: datetime, width: int) -> Iterator[Text]:
    """Yield the lines of a report."""
    rows = [_row(each, now) for each in report.replicas]
    headers = [Text(header, "bold dim") for header in _HEADERS]
    widths = natural([headers, *rows])
    shrink(widths, 0, _NAME, width)
    leave_out(widths, _SPARE, width)
    names = shortened_apart((row[0].plain, widths[0]) for row in rows)
    yield table_line(headers, widths)
    for name, *rest in rows:
        shown = Text(names[name.plain, widths[0]], "bold")
        yield table_line((shown, *rest), widths)
    if report.more:
        yield Text(f"… {report.more} more", "dim")
    yield Text()
    for text in sentences(report, now):
        yield from wrapped(text, max(width, _NAME))


def _row(each: Replica, now: datetime) -> tuple[Text, ...]:
    mark, style = _STATES[each.state]
    since = f" for {age(each.renewed, now)}" if each.state == "silent" else ""
    return (
        Text(printable(each.name)),
        Text(f"{mark}{each.state}{since}", style),
        Text(amount(each.slices)),
        Text(str(each.namespaces)),
        Text(str(each.resources)),
        Text(f"{each.passes:.1f}"),
        Text(f"{each.lag:.1f}s"),
        Text(age(each.since, now), "dim"),
    )


def words(report: ShardsReport) -> dict[str, str]:
    """Return what each replica does, by its name, and last what nobody does."""
    found = {
        printable(each.name): f"{each.state}, {amount(each.slices)}" for each in report.replicas
    }
    lacking = Slices.of(each for gap in report.gaps for each in gap.slices.ranges)
    return found | {"unserved": amount(lacking)}


def amount(slices: Slices) -> str:
    """Return how many slices these are, and which part of all namespaces is to be expected."""
    return f"{len(slices.ranges)} ({slices.share:.0%})"


def sentences(report: ShardsReport, now: datetime) -> Iterator[Text]:
    """Yield what is to be said below the table."""
    for gap in report.gaps:
        yield Text(unserved(gap, now), "red")
    assigned = report.assignment
    if assigned is None:
        yield Text("nobody has said yet who serves what", "red")
    else:
        author = f", by {printable(assigned.author)}" if assigned.author else ""
        told = f"assignment {assigned.epoch}, made {age(assigned.since, now)} ago{author}"
        yield Text(told, "dim")
    if report.leader:
        yield Text(f"{printable(report.leader)} leads", "dim")
    else:
        yield Text("nobody leads: what a replica loses is handed on by nobody", "red")


def unserved(gap: Gap, now: datetime) -> str:
    """Return the sentence on what nobody serves."""
    most = "" if gap.former else "at most "
    since = f" for {most}{age(gap.since, now)}" if gap.since else ""
    former = f"; {printable(gap.former)} did" if gap.former else ""
    slices = numbered(len(gap.slices.ranges), "slice")
    return f"✗ nobody serves {slices} ({gap.slices.share:.0%}){since}{former}"
