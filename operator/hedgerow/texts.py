"""Texts: those of others as they may be shown: cut, and with nothing that a terminal obeys.

Numbers of things in words, and commands as a shell takes them.
"""

from __future__ import annotations

import re
from shlex import quote
from typing import Final

from hedgerow.encoding import to_ascii

LONGEST: Final = 500
"""The most characters of a value in one line of a page."""
_DELETE: Final = "\x7f"
"""JSON leaves it as it is."""
_STRETCH: Final = re.compile(r"[^\n\t]+")


def numbered(count: int, singular: str, plural: str = "") -> str:
    """Return a number of things in words: `1 child`, `2 children`."""
    return f"{count} {singular if count == 1 else plural or singular + 's'}"


def command_line(program: str, *words: str) -> str:
    """Return a command that can be pasted into a shell: `program` as it is typed, then its words.

    Each word is quoted where the shell would read it otherwise: names that others gave may have
    blanks, quotes and `$`. Wherever a command is printed it stays on one line, however long.
    """
    return " ".join((program, *map(quote, words)))


def within(namespace: str) -> tuple[str, ...]:
    """Return the words of a command that lead into a namespace; none without one."""
    return ("-n", namespace) if namespace else ()


def cut(text: str, limit: int) -> str:
    """Return a text, cut to a limit; a text that was cut ends in an ellipsis."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def printable(text: str, longest: int = LONGEST) -> str:
    """Return a text that is safe for terminals and XML, cut to at most `longest` characters."""
    return cut(escaped(cut(text, longest)), longest)


def escaped(text: str) -> str:
    """Return a text in one line; each character that is not printable is escaped as in JSON.

    These are control characters, line separators, marks that turn the direction of reading, and
    blanks other than the usual one. In a JSON document the escapes mean the same characters.
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else _escape(char) for char in text)


def escaped_lines(text: str) -> str:
    """Return a text escaped in the same way, except for the ends of its lines, and tabs."""
    return _STRETCH.sub(lambda stretch: escaped(stretch[0]), text)


def _escape(char: str) -> str:
    return r"\u007f" if char == _DELETE else to_ascii(char)[1:-1]
