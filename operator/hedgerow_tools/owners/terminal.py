"""Owners on a terminal: the tree of fields on the left, who holds them on the right."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from hedgerow_tools.owners.report import CONTESTED, UNOWNED
from hedgerow_tools.render.widths import (
    ENDLESS,
    GAP,
    natural,
    page_terminal,
    shortened,
    shortened_apart,
    table_line,
    wrapped,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rich.console import Console

    from hedgerow_tools.owners.report import Holding, OwnersPage, OwnersRow
    from hedgerow_tools.render.widths import Note

_COLOURS = ("cyan", "green", "yellow", "magenta", "blue", "bright_cyan", "bright_green")
_HEADERS = ("FIELD", "MANAGER", "OPERATION", "AGE")
_FIELD = 36
"""The least columns of the fields on a terminal with 80 columns."""
_NARROW = 24
"""The least columns of the fields before the age and the operation are left out."""
_NAME = 4
"""The least columns of a field's name, however deep it is."""
_PIPED = 80
"""The most columns that cells are padded to without a terminal; a longer one is not cut."""
_MANAGER = 25
"""Columns; `kubectl-client-side-apply` fits."""
_SHORTEST = 12
"""The least columns of a manager on any terminal."""


def show(page: OwnersPage, console: Console | None = None) -> None:
    """Print a page; lines fit the terminal's width, if there is a terminal."""
    out = console or page_terminal()
    colours = dict(zip(page.managers, _COLOURS * len(page.managers), strict=False))
    title = Text.assemble((page.title, "bold"), "  ", (page.facts, "dim"))
    _say(out, wrapped(title, out.width))
    if page.rows:
        _say(out, [Text(), *_table(page.rows, colours, out.width)])
    if page.absent:
        head = Text("Not in the object:", "bold")
        _say(out, [Text(), head, *_table(page.absent, colours, out.width)])
    for number, note in enumerate(page.notes):
        _say(out, [*([] if number else [Text()]), *_note(note, out.width)])


def _note(note: Note, width: int) -> Iterable[Text]:
    return [Text(note.text)] if note.is_command else wrapped(Text(note.text), width)


def _say(out: Console, lines: Iterable[Text]) -> None:
    for line in lines:
        out.print(line, soft_wrap=True)


def _table(rows: Sequence[OwnersRow], colours: Mapping[str, str], width: int) -> Iterator[Text]:
    columns = _Columns(rows, width)
    yield table_line((Text(header, "bold dim") for header in _HEADERS), columns.widths)
    for each in rows:
        for cells in columns.cells(each, colours):
            yield table_line(cells, columns.widths)


class _Columns:
    """Columns as wide as these rows need, or as the terminal allows."""

    def __init__(self, rows: Sequence[OwnersRow], width: int) -> None:
        self._is_limited = width < ENDLESS
        self._names: Mapping[tuple[str, int], str] = {}
        self._managers: Mapping[tuple[str, int], str] = {}
        lines = [line for row in rows for line in self.cells(row, {})]
        self.widths = natural([tuple(map(Text, _HEADERS)), *lines])
        if not self._is_limited:
            self.widths = [min(wide, _PIPED) for wide in self.widths]
            return
        self._fit(width)
        self._names = shortened_apart(map(self._room, rows))
        self._managers = shortened_apart(
            (one.manager, self.widths[1]) for row in rows for one in row.holdings
        )

    def _fit(self, width: int) -> None:
        """Cut the managers first, then the fields; if little is left, leave columns out."""
        field, manager, *rest = self.widths
        while True:
            left = width - sum(rest) - GAP * len(rest) - GAP
            wide = min(manager, max(_SHORTEST, min(_MANAGER, left - _FIELD)))
            if left - wide >= min(field, _NARROW) or not rest:
                break
            rest.pop()
        self.widths = [min(field, max(left - wide, 1)), wide, *rest]

    def cells(self, row: OwnersRow, colours: Mapping[str, str]) -> Iterable[tuple[Text, ...]]:
        """Yield the cells of a row: a line for each holder; the first line has the field."""
        cells = [self._held(one, colours) for one in row.holdings]
        if row.unowned:
            cells.append((Text(UNOWNED, "dim italic"), Text(), Text()))
        if row.contested:
            cells.append((Text(f"✗ {CONTESTED}", "bold red"), Text(), Text()))
        last = len(cells) - 1
        for number, held in enumerate(cells or [(Text(), Text(), Text())]):
            yield (self._below(row, is_last=number == last) if number else self._field(row), *held)

    def _room(self, row: OwnersRow) -> tuple[str, int]:
        """Return a field's name, and the columns that its guide leaves for the name."""
        return row.name, max(self.widths[0] - len(row.guide), _NAME)

    def _field(self, row: OwnersRow) -> Text:
        style = "bold red" if row.contested else "bold" if row.value is None else ""
        name = self._names[self._room(row)] if self._names else row.name
        text = Text.assemble((row.guide, "dim"), (name, style))
        if row.value is None or name != row.name:
            return text
        value = self._cut(row.value, used=text.cell_len + len(": "))
        return (
            text.append(": ", "dim").append(value, "dim" if row.unowned else "") if value else text
        )

    def _below(self, row: OwnersRow, *, is_last: bool) -> Text:
        told = f"declared: {row.declared}" if row.declared and is_last else ""
        told = self._cut(told, used=len(row.below))
        return Text.assemble((row.below if told else row.below.rstrip(), "dim"), (told, "red"))

    def _cut(self, text: str, used: int) -> str:
        """Return the part of a text for which a field's column has room; it may be empty."""
        if not self._names:
            return text
        room = self.widths[0] - used
        return shortened(text, room) if text and room > 0 else ""

    def _held(self, holding: Holding, colours: Mapping[str, str]) -> tuple[Text, Text, Text]:
        manager = holding.manager
        name = self._managers[manager, self.widths[1]] if self._managers else manager
        colour = colours.get(manager, "")
        return Text(name, colour), Text(holding.operation), Text(holding.age)
