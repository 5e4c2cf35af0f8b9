"""Widths: how wide a line may be, texts that are cut or broken to fit, and notes."""

from __future__ import annotations

import os
import re
import sys
from collections import defaultdict
from dataclasses import dataclass
from itertools import accumulate, chain, takewhile
from typing import TYPE_CHECKING, Final

from rich.cells import cell_len, chop_cells, set_cell_size
from rich.text import Text

from hedgerow.terminal import Terminal

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence


@dataclass(frozen=True, slots=True)
class Note:
    """A sentence; `alarm`: somebody should act on it.

    A command is never broken into lines, and never cut, so that it can be pasted.
    """

    text: str
    alarm: bool = False
    is_command: bool = False


ENDLESS: Final = 10_000
"""Columns without a terminal: lines for programs must not be cut."""
GAP: Final = 2
"""The blanks between two columns."""
_WORD: Final = re.compile(r"\S+\s*|\s+")
"""A word with the blanks after it."""
_PIECE: Final = re.compile(r"[./\[]?[^./\[]+|[./\[]")
"""What a long word is broken into: the steps of a field path, the parts of an image's name."""


def is_limited() -> bool:
    """Return whether there is a terminal, or COLUMNS is set."""
    return sys.stdout.isatty() or bool(os.environ.get("COLUMNS"))


def shortened(text: str, cells: int) -> str:
    """Return a text cut to so many columns; a text that was cut ends in an ellipsis."""
    return text if cell_len(text) <= cells else set_cell_size(text, max(cells - 1, 0)) + "…"


def shortened_apart(texts: Iterable[tuple[str, int]]) -> dict[tuple[str, int], str]:
    """Return texts, each cut to its number of columns, such that different texts stay different.

    Texts that begin alike are cut where they begin to differ. The few that no cut tells apart are
    not cut.
    """
    short = {key: shortened(*key) for key in texts}
    for alike in _alike(short):
        short |= _cut_at_difference(alike)
    for alike in _alike(short):
        short |= {key: key[0] for key in alike}
    return short


def _alike(short: Mapping[tuple[str, int], str]) -> Iterator[list[tuple[str, int]]]:
    """Yield the texts that are cut to the same, if these are not all one text."""
    groups: defaultdict[str, list[tuple[str, int]]] = defaultdict(list)
    for key, text in short.items():
        groups[text].append(key)
    yield from [keys for keys in groups.values() if len({text for text, _ in keys}) > 1]


def _cut_at_difference(keys: list[tuple[str, int]]) -> dict[tuple[str, int], str]:
    first, last = min(keys)[0], max(keys)[0]
    pairs = zip(first, last, strict=False)
    start = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    short = {(text, cells): _without_middle(text, cells, start) for text, cells in keys}
    for alike in _alike(short):
        if len(alike) < len(keys):
            short |= _cut_at_difference(alike)
    return short


def _without_middle(text: str, cells: int, start: int) -> str:
    """Return the beginning of a text, and what follows from `start`, or its end if that is less."""
    head = set_cell_size(text, cells // 3) + "…"
    left = cells - cell_len(head)
    if left <= 0:
        return head
    end = set_cell_size(text[::-1], left)[::-1].lstrip()
    return head + (end if len(text) - start <= len(end) else shortened(text[start:], left))


def wrapped(text: Text, width: int) -> list[Text]:
    """Return a text as the lines of `broken`, without the blanks at their ends."""
    lines = list(text.divide([*accumulate(map(len, broken(text.plain, width)))][:-1]))
    for line in lines:
        line.rstrip()
    return lines


def hanging(text: Text, width: int, indent: int) -> list[Text]:
    """Return a text as lines; those after the first will be indented, so all are narrower."""
    return [text] if text.cell_len <= width else wrapped(text, width - indent)


def natural(rows: Iterable[Sequence[Text]]) -> list[int]:
    """Return how wide each column has to be for its cells, of which the headers are some."""
    return [max(cell.cell_len for cell in column) for column in zip(*rows, strict=True)]


def excess(widths: Iterable[int], width: int) -> int:
    """Return by how much a table is too wide; it is negative if there is room."""
    shown = [each for each in widths if each]
    return sum(shown) + GAP * (len(shown) - 1) - width


def shrink(widths: list[int], column: int, least: int, width: int) -> None:
    """Shrink a column until the table fits, but not below `least`."""
    wide = widths[column]
    widths[column] = min(wide, max(least, wide - max(excess(widths, width), 0)))


def leave_out(widths: list[int], columns: Iterable[int], width: int) -> None:
    """Leave out columns, one after the other, until the table fits."""
    for column in columns:
        if excess(widths, width) > 0:
            widths[column] = 0


def table_line(cells: Iterable[Text], widths: Iterable[int]) -> Text:
    """Return a line of cells, each in its column; a column without a width is left out.

    A cell that has to stay whole may be wider than its column.
    """
    whole = Text()
    for cell, width in zip(cells, widths, strict=False):
        if width:
            whole.append_text(cell).append(" " * (max(width - cell.cell_len, 0) + GAP))
    whole.rstrip()
    return whole


def page_terminal() -> Terminal:
    """Return a terminal for pages: without one their lines are for programs, and never cut."""
    return Terminal(width=None if is_limited() else ENDLESS)


def broken(text: str, width: int) -> list[str]:
    """Return the parts of a text, one for each line; joined, they are the text.

    It is broken after blanks. A word longer than a line is broken before a `.`, `[` or `/` if
    possible. A command in backticks is never broken, even if it is longer than a line.
    """
    lines = [""]
    for piece in chain.from_iterable(_pieces(word, width) for word in _words(text)):
        if lines[-1] and cell_len(lines[-1]) + cell_len(piece.rstrip()) > width:
            lines.append("")
        lines[-1] += piece
    return lines


def _words(text: str) -> Iterator[str]:
    """Yield the words of a text with the blanks after them; a command in backticks is one word."""
    *parts, rest = text.split("`")
    joined = (re.sub(r"\s", "_", part) if number % 2 else part for number, part in enumerate(parts))
    for word in _WORD.finditer("`".join((*joined, rest))):
        yield text[word.start() : word.end()]


def _pieces(word: str, width: int) -> Iterator[str]:
    if cell_len(word.rstrip()) <= width or "`" in word:
        yield word
        return
    for piece in _PIECE.findall(word):
        yield from [piece] if cell_len(piece.rstrip()) <= width else chop_cells(piece, width)
