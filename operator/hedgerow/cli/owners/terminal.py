"""Owners on a terminal: the tree of fields on the left, who holds them on the right."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from hedgerow.cli.owners.report import CONTESTED, UNOWNED
from hedgerow.cli.widths import ENDLESS, is_limited
from hedgerow.terminal import Terminal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rich.console import Console

    from hedgerow.cli.owners.report import Holding, Page, Row

_COLOURS = ("cyan", "green", "yellow", "magenta", "blue", "bright_cyan", "bright_green")
_HEADERS = ("FIELD", "MANAGER", "OPERATION", "AGE")
_GAP = 2
_FIELD = 36
"""The least columns of the fields on a terminal with 80 columns."""
_PIPED = 80
"""The most columns that cells are padded to without a terminal; a longer one is not cut."""
_MANAGER = 25
"""Columns; `kubectl-client-side-apply` fits."""
_SHORTEST = 12
"""The least columns of a manager on any terminal."""


def show(page: Page, console: Console | None = None) -> None:
    """Print a page; lines are cut to the terminal's width, if there is a terminal."""
    out = console or Terminal(width=None if is_limited() else ENDLESS)
    colours = dict(zip(page.managers, _COLOURS * len(page.managers), strict=False))
    out.print(Text.assemble((page.title, "bold"), "  ", (page.facts, "dim")), soft_wrap=True)
    if page.rows:
        out.print()
        _print(out, page.rows, colours)
    if page.absent:
        out.print()
        out.print(Text("Not in the object:", "bold"))
        _print(out, page.absent, colours)
    for number, note in enumerate(page.notes):
        out.print(*([] if number else [""]), Text(note), sep="\n", soft_wrap=True)


def _print(out: Console, rows: Iterable[Row], colours: Mapping[str, str]) -> None:
    if out.width < ENDLESS:
        out.print(_table(rows, colours, out.width))
        return
    lines = [tuple(map(Text, _HEADERS)), *(line for row in rows for line in _lines(row, colours))]
    widths = [
        min(max(cell.cell_len for cell in column), _PIPED) for column in zip(*lines, strict=True)
    ]
    for line in lines:
        whole = Text()
        for cell, width in zip(line, widths, strict=True):
            whole.append_text(cell).append(" " * (max(width - cell.cell_len, 0) + _GAP))
        whole.rstrip()
        out.print(whole, soft_wrap=True)


def _table(rows: Iterable[Row], colours: Mapping[str, str], width: int) -> Table:
    lines = [line for row in rows for line in _lines(row, colours)]
    table = Table(box=None, padding=(0, _GAP, 0, 0), pad_edge=False, header_style="bold dim")
    for name, columns in zip(_HEADERS, _widths(lines, width), strict=True):
        table.add_column(name, width=columns, no_wrap=True, overflow="ellipsis")
    for line in lines:
        table.add_row(*line)
    return table


def _widths(lines: Iterable[tuple[Text, ...]], width: int) -> tuple[int, ...]:
    """Return the columns' widths; if these are too wide, managers are cut first, then fields."""
    cells = zip(*lines, strict=True)
    field, manager, *rest = (
        max(len(name), *(cell.cell_len for cell in column))
        for name, column in zip(_HEADERS, cells, strict=True)
    )
    left = width - sum(rest) - _GAP * len(rest) - _GAP
    wide = min(manager, max(_SHORTEST, min(_MANAGER, left - _FIELD)))
    return min(field, max(left - wide, 1)), wide, *rest


def _lines(row: Row, colours: Mapping[str, str]) -> Iterable[tuple[Text, ...]]:
    """Yield a row's lines: one for each holder; the first line has the field."""
    name = _field(row)
    cells = [_held(one, colours) for one in row.holdings]
    if row.unowned:
        cells.append((Text(UNOWNED, "dim italic"), Text(), Text()))
    if row.contested:
        cells.append((Text(f"✗ {CONTESTED}", "bold red"), Text(), Text()))
    last = len(cells) - 1
    for number, held in enumerate(cells or [(Text(), Text(), Text())]):
        below = _declared(row) if number == last else Text(row.below, "dim")
        yield (below if number else name, *held)


def _field(row: Row) -> Text:
    style = "bold red" if row.contested else "bold" if row.value is None else ""
    text = Text.assemble((row.guide, "dim"), (row.name, style))
    if row.value is None:
        return text
    return text.append(": ", "dim").append(row.value, "dim" if row.unowned else "")


def _declared(row: Row) -> Text:
    told = f"declared: {row.declared}" if row.declared else ""
    return Text.assemble((row.below, "dim"), (told, "red"))


def _held(holding: Holding, colours: Mapping[str, str]) -> tuple[Text, Text, Text]:
    colour = colours.get(holding.manager, "")
    return Text(holding.manager, colour), Text(holding.operation), Text(holding.age)
