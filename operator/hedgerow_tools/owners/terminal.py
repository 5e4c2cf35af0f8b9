"""Owners on a terminal: the tree of fields on the left, who holds them on the right."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.text import Text

from hedgerow_tools.owners.report import (
    CONTESTED,
    UNOWNED,
    absent,
    declared,
    facts,
    holding,
    title,
    value_of,
    visible,
)
from hedgerow_tools.render.tables import guides, table_lines
from hedgerow_tools.render.widths import page_terminal, wrapped

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from rich.console import Console

    from hedgerow_tools.owners.view import OwnedField, OwnersView
    from hedgerow_tools.render.widths import Note

    Held = tuple[Text, Text, Text]

_COLOURS: Final = (
    "cyan", "green", "yellow", "magenta", "blue", "bright_cyan", "bright_green",
)  # fmt: skip
_HEADERS: Final = ("FIELD", "MANAGER", "OPERATION", "AGE")


def show(
    view: OwnersView, notes: Iterable[Note], now: datetime, console: Console | None = None
) -> None:
    """Print a view with its notes; lines fit the terminal's width, if there is a terminal."""
    out = console or page_terminal()
    head = Text.assemble((title(view), "bold"), "  ", (facts(view), "dim"))
    _print(out, wrapped(head, out.width))
    if rows := visible(view.fields):
        _print(out, [Text(), *_table(rows, view, now, out)])
    if gone := absent(view):
        head = Text("Not in the object:", "bold")
        _print(out, [Text(), head, *_table(gone, view, now, out)])
    for number, note in enumerate(notes):
        _print(out, [*([] if number else [Text()]), *_note(note, out.width)])


def _note(note: Note, width: int) -> Iterable[Text]:
    return [Text(note.text)] if note.is_command else wrapped(Text(note.text), width)


def _print(out: Console, lines: Iterable[Text]) -> None:
    for line in lines:
        out.print(line, soft_wrap=True)


def _table(
    rows: Sequence[OwnedField], view: OwnersView, now: datetime, out: Console
) -> Iterator[Text]:
    colours = dict(zip(view.managers, _COLOURS * len(view.managers), strict=False))
    drawn = zip(rows, guides([row.depth for row in rows]), strict=True)
    cells = [
        line
        for row, (guide, below) in drawn
        for line in _row(row, view, (guide, below), list(_holders(row, colours, now)))
    ]
    return table_lines(_HEADERS, cells, out, cut=(0, 1))


def _row(
    field: OwnedField,
    view: OwnersView,
    guide: tuple[str, str],
    holders: list[tuple[Text, Text, Text]],
) -> Iterator[tuple[Text, ...]]:
    """Yield the lines of a place: one for each holder; the first line has the field."""
    yield _field(field, value_of(field, view), guide[0]), *(holders[0] if holders else _cells(""))
    for number, held in enumerate(holders[1:], 2):
        is_last = number == len(holders)
        mark = f"declared: {value}" if is_last and (value := declared(field, view)) else ""
        yield Text.assemble((guide[1], "dim"), (mark, "red")), *held


def _field(field: OwnedField, value: str | None, guide: str) -> Text:
    style = "bold red" if field.contested else "bold" if value is None else ""
    text = Text.assemble((guide, "dim"), (field.name, style))
    if value is None:
        return text
    return text.append(": ", "dim").append(value, "dim" if field.state == UNOWNED else "")


def _holders(field: OwnedField, colours: Mapping[str, str], now: datetime) -> Iterator[Held]:
    for holder in field.managers:
        manager, operation, age = holding(holder, now)
        yield Text(manager, colours.get(holder.manager, "")), Text(operation), Text(age)
    if field.state == UNOWNED:
        yield _cells(UNOWNED, "dim italic")
    if field.contested:
        yield _cells(f"✗ {CONTESTED}", "bold red")


def _cells(words: str, style: str = "") -> Held:
    return Text(words, style), Text(), Text()
