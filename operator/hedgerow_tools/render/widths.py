"""Widths: how wide a line may be, texts that are cut or broken to fit, and notes."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Final

from rich.cells import cell_len, chop_cells, set_cell_size

from hedgerow.cli.terminal import Terminal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.text import Text


@dataclass(frozen=True, slots=True)
class Note:
    """A sentence; `alarm`: somebody should act on it.

    A command is never broken into lines, and never cut, so that it can be pasted.
    """

    text: str
    alarm: bool = False
    is_command: bool = False


PIPED: Final = 160
"""Columns without a terminal: there a table is cut as well, as JSON is for programs."""
_WORD: Final = re.compile(r"\S+\s*|\s+")
"""A word with the blanks after it."""
_PIECE: Final = re.compile(r"[./\[]?[^./\[]+|[./\[]")
"""What a long word is broken into: the steps of a field path, the parts of an image's name."""


def shortened(text: str, cells: int) -> str:
    """Return a text cut to so many columns; a text that was cut ends in an ellipsis."""
    return text if cell_len(text) <= cells else set_cell_size(text, max(cells - 1, 0)) + "…"


def wrapped(text: Text, width: int) -> list[Text]:
    """Return a text as the lines of `broken`, without the blanks at their ends."""
    lines = list(text.divide([*accumulate(map(len, broken(text.plain, width)))][:-1]))
    for line in lines:
        line.rstrip()
    return lines


def hanging(text: Text, width: int, indent: int) -> list[Text]:
    """Return a text as lines; those after the first will be indented, so all are narrower."""
    return [text] if text.cell_len <= width else wrapped(text, width - indent)


def page_terminal() -> Terminal:
    """Return a terminal for pages; without one, and without COLUMNS, they are wide."""
    is_limited = sys.stdout.isatty() or bool(os.environ.get("COLUMNS"))
    return Terminal(width=None if is_limited else PIPED)


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
