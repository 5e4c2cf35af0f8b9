"""Markdown: pieces of generated pages."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_ITEM = re.compile(r"(?:[-*]|\d+\.) +(?=\S)")
_CODE = re.compile(r"(`[^`]*`)")
_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*[a-z]")


def prose(text: str) -> str:
    """Return text of the code, which may hold Markdown, as Markdown that holds no HTML.

    Paragraphs and lists stay. Outside of code, an angle bracket or a star is meant as it is, and an
    option is code.
    """
    parts = _CODE.split(text.strip())
    return "".join(part if part.startswith("`") else _plain(part) for part in parts)


def _plain(text: str) -> str:
    escaped = text.replace("*", "\\*").replace("<", "&lt;")
    return _OPTION.sub(r"`\g<0>`", escaped)


def code(text: str) -> str:
    """Return text as inline code, whatever is in it."""
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def definitions(entries: Iterable[tuple[str, str]]) -> str:
    """Return terms with what each means: a list that fits a phone, as a wide table does not."""
    return "\n".join(f"{term}\n:   {_indented(text)}\n" for term, text in entries)


def _indented(text: str) -> str:
    return text.replace("\n", "\n    ").replace("    \n", "\n")


def unlisted(text: str) -> str:
    """Return a page that the search does not find: what it says is said elsewhere."""
    return f"---\nsearch:\n  exclude: true\n---\n{text}"


def first_sentence(text: str) -> str:
    """Return the first sentence below a page's title, without its links; it may be empty."""
    for paragraph in text.split("\n\n"):
        if re.match(r"[\w`*\"]", paragraph):
            plain = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", paragraph.strip())
            return re.split(r"(?<=[.:])\s", plain)[0].rstrip(":")
    return ""


def indented(text: str) -> str:
    """Return Markdown with what belongs to the items of a list four columns in.

    Git hosts want it below the text of the item, the generator four columns in. Nested lists with
    paragraphs of their own are not known here, and the documents have none.
    """
    width, fenced, lines = 0, False, list[str]()
    for line in text.split("\n"):
        fenced ^= line.startswith("```")
        if not fenced and (item := _ITEM.match(line)):
            width = len(item[0])
        elif width and line.startswith(" " * width):
            line = " " * 4 + line[width:]  # noqa: PLW2901 - the same line, moved
        elif line and not line.startswith(" "):
            width = 0
        lines.append(line)
    return "\n".join(lines)
