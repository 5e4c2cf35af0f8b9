"""Tree terminal: trees as lines of columns, no wider than the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.text import Text

from hedgerow.cli.widths import shortened_apart, wrapped

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from hedgerow.cli.notes import Note
    from hedgerow.cli.tree.page import Row, Section
    from hedgerow.cli.tree.readiness import Verdict

_MARKS: Final[Mapping[Verdict | None, tuple[str, str]]] = {
    "Current": ("✓ ", "green"),
    "InProgress": ("~ ", "yellow"),
    "Failed": ("✗ ", "bold red"),
    "Terminating": ("- ", "yellow"),
    "NotFound": ("? ", "bold red"),
    "Unknown": ("? ", "yellow"),
    None: ("", "dim"),
}
_HEADERS: Final = ("OBJECT", "READINESS", "CHANGED BY", "AGO")
_GAP: Final = 2
_SENTENCE: Final = 32
"""The least columns of a readiness before other columns shrink; longer texts are wrapped."""
_LEAST: Final = ((1, _SENTENCE), (2, 12), (1, 26), (0, 20), (1, 16))
"""Column numbers with their least width, in the order in which they shrink."""
_SPARE: Final = (3, 2)
"""Column numbers in the order in which they are left out if there is no room."""
_LAST: Final = ((1, 10), (0, 8))
"""The remaining column numbers with their least width on any terminal."""
_NAME: Final = 4
"""The least columns of a name, however deep its object is."""
_NOTE: Final = 12
"""The least columns of a note on any terminal."""


def lines(sections: Iterable[Section], width: int) -> Iterator[Text]:
    """Yield the lines of sections, in a width of so many columns."""
    for number, section in enumerate(sections):
        if number:
            yield Text()
        yield from wrapped(
            Text.assemble((section.title, "bold"), "  ", (section.facts, "dim")), width
        )
        yield Text()
        yield from _table(section.rows, width)


def _table(rows: Sequence[Row], width: int) -> Iterator[Text]:
    columns = _Columns(rows, width)
    yield columns.line(*(Text(header, "bold dim") for header in _HEADERS))
    for row in rows:
        yield from columns.row(row)


class _Columns:
    """Columns as wide as these rows need, or as the terminal allows."""

    def __init__(self, rows: Sequence[Row], width: int) -> None:
        self._width = width
        self._short = False
        self._widths = self._natural(rows)
        # First wrap texts, which loses nothing; then shorten names that repeat their owners' names.
        self._shrink(1, _SENTENCE)
        if self._excess() > 0:
            self._short = True
            self._widths = self._natural(rows)
        for column, least in _LEAST:
            self._shrink(column, least)
        for column in _SPARE:
            if self._excess() > 0:
                self._widths[column] = 0
        for column, least in _LAST:
            self._shrink(column, least)
        told = [row for row in rows if row.verdict]
        self._names = shortened_apart(map(self._room, told))
        self._managers = shortened_apart((row.changed, self._widths[2]) for row in told)

    def _shrink(self, column: int, least: int) -> None:
        """Shrink a column by the excess, but not below `least`."""
        wide = self._widths[column]
        self._widths[column] = min(wide, max(least, wide - max(self._excess(), 0)))

    def _natural(self, rows: Sequence[Row]) -> list[int]:
        cells = [
            (Text(row.guide + self._called(row)), _words(row), Text(row.changed), Text(row.ago))
            for row in rows
            if row.verdict
        ]
        return [
            max((len(header), *(cell[column].cell_len for cell in cells)))
            for column, header in enumerate(_HEADERS)
        ]

    def _excess(self) -> int:
        shown = [width for width in self._widths if width]
        return sum(shown) + _GAP * (len(shown) - 1) - self._width

    def row(self, row: Row) -> Iterator[Text]:
        """Yield the lines of a row: its columns, the rest of its readiness, its notes."""
        if row.verdict is None:
            yield Text.assemble((row.guide, "dim"), (row.name, "dim"))
            return
        words = _wrapped(_words(row), self._widths[1], hanging=_GAP)
        changed = Text(self._managers[row.changed, self._widths[2]])
        cells = (self._name(row), words[0], changed, Text(row.ago, "dim"))
        yield self.line(*cells)
        for more in words[1:]:
            below = Text(row.below[: self._widths[0]], "dim")
            yield self.line(below, Text.assemble("  ", more), Text(), Text())
        for note in row.notes:
            yield from self._note(row, note)

    def line(self, *cells: Text) -> Text:
        """Return a line of cells, each in its column; a name that stays whole may be wider."""
        whole = Text()
        for cell, width in zip(cells, self._widths, strict=True):
            if not width:
                continue
            whole.append_text(cell).append(" " * (max(width - cell.cell_len, 0) + _GAP))
        whole.rstrip()
        return whole

    def _note(self, row: Row, note: Note) -> Iterator[Text]:
        if note.is_command:
            yield from self._command(row, note.text)
            return
        mark, style = ("✗ ", "red") if note.alarm else ("  ", "dim")
        room = max(self._width - len(row.below) - len(mark), _NOTE)
        for number, part in enumerate(_wrapped(Text(note.text, style), room)):
            first = Text("  " if number else mark, style)
            yield Text.assemble((row.below, "dim"), first, part)

    def _command(self, row: Row, command: str) -> Iterator[Text]:
        """Yield a command on one line, whatever its width: a broken one cannot be pasted."""
        told = Text.assemble((f"{row.below}  what to do:", "dim"))
        whole = Text.assemble(told, (f" {command}", "dim"))
        yield from [whole] if whole.cell_len <= self._width else [told, Text(command, "dim")]

    def _called(self, row: Row) -> str:
        return row.short if self._short else row.name

    def _room(self, row: Row) -> tuple[str, int]:
        """Return a row's name, and the columns that its guide leaves for the name."""
        return self._called(row), max(self._widths[0] - len(row.guide), _NAME)

    def _name(self, row: Row) -> Text:
        kind, slash, rest = self._names[self._room(row)].partition("/")
        return Text.assemble((row.guide, "dim"), (kind + slash, "dim"), (rest, "bold"))


def _words(row: Row) -> Text:
    mark, style = _MARKS[row.verdict]
    return Text(mark + row.words, style)


def _wrapped(text: Text, width: int, *, hanging: int = 0) -> list[Text]:
    """Return a text as lines; lines after the first will be indented, so all are narrower."""
    if text.cell_len <= width:
        return [text]
    return wrapped(text, width - hanging)
