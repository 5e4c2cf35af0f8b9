"""Unfolded: the help of commands, in which no command is broken into lines, however narrow it is.

A list item that begins with a command in backticks is an example. Examples come last, each on a
line of its own, so that whoever copies one can paste it. Other commands in backticks are short
ones within a sentence.
"""

from __future__ import annotations

import re
from inspect import cleandoc
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Final

from typer.core import TyperCommand, TyperGroup

if TYPE_CHECKING:
    from collections.abc import Iterator

_EXAMPLE: Final = re.compile(r"^- `([^`]*+)`(.*+(?:\n  .*+)*+)\n*+", re.MULTILINE)
_COMMAND: Final = re.compile("`[^`]*`")
_GLUE: Final = "\N{NO-BREAK SPACE}"
"""Stands for the blanks of a command while a text is folded; `wrap` breaks at others alone."""
_OPTION: Final = 24
"""The columns of an option and its value; a longer one has its text below it."""


class UnfoldedCommand(TyperCommand):
    """A command whose help folds no command."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help."""
        formatter.write("\n".join(_lines(self, ctx, formatter.width)))


class UnfoldedGroup(TyperGroup):
    """A group whose help folds no command."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help."""
        formatter.write("\n".join(_lines(self, ctx, formatter.width)))


def folded(text: str, width: int, first: str = "", below: str = "") -> list[str]:
    """Return a text in lines of a width that begin so; no word and no command is broken.

    Commands are in backticks.
    """
    lines = wrap(
        _COMMAND.sub(lambda match: match[0].replace(" ", _GLUE), " ".join(text.split())),
        width,
        initial_indent=first,
        subsequent_indent=below,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace(_GLUE, " ") for line in lines]


def parted(text: str) -> tuple[str, list[tuple[str, str]]]:
    """Return a help text without its examples, and these: each a command, and words about it."""
    examples: list[tuple[str, str]] = []

    def left(item: re.Match[str]) -> str:
        code, words = (" ".join(part.split()) for part in item.groups())
        if " " not in code:
            return item[0]
        examples.append((code, words))
        return ""

    return _EXAMPLE.sub(left, cleandoc(text)).rstrip(), examples


def _lines(command: Any, ctx: Any, width: int) -> Iterator[str]:
    usage = f"Usage: {ctx.command_path} {' '.join(command.collect_usage_pieces(ctx))}"
    yield from folded(usage, width, below=" " * 7)
    text, examples = parted(command.help or "")
    yield from _texts(text, width)
    for title, rows in _panels(command, ctx).items():
        yield from ("", f"{title}:")
        for name, about in rows:
            start, indent = f"  {name:{_OPTION}}  ", " " * (_OPTION + 4)
            if len(start) > len(indent):
                yield f"  {name}"
                start = indent
            yield from folded(about, width, start, indent)
    yield from ("", "Examples:") if examples else ()
    for line, words in examples:
        yield f"  {line}"
        yield from folded(words, width, " " * 6, " " * 6)
    yield from _texts(command.epilog or "", width)


def _texts(text: str, width: int) -> Iterator[str]:
    """Yield the paragraphs and list items of a text."""
    for paragraph in filter(None, text.split("\n\n")):
        yield ""
        for block in re.split(r"\n(?=- )", paragraph):
            yield from folded(block, width, below="  " * block.startswith("- "))


def _panels(command: Any, ctx: Any) -> dict[str, list[tuple[str, str]]]:
    """Return the names of arguments, options and commands, each with its text, by their panels."""
    panels: dict[str, list[tuple[str, str]]] = {}
    for param in sorted(command.get_params(ctx), key=lambda value: value.param_type_name):
        if (record := param.get_help_record(ctx)) is None:
            continue
        name, about = record
        if param.param_type_name == "argument":
            name = param.metavar or name
        panel = param.rich_help_panel or f"{param.param_type_name.capitalize()}s"
        panels.setdefault(panel, []).append((name, about))
    for name in command.list_commands(ctx) if isinstance(command, TyperGroup) else ():
        below: Any = command.get_command(ctx, name)
        if not below.hidden:
            panel = below.rich_help_panel or "Commands"
            panels.setdefault(panel, []).append((name, below.get_short_help_str(limit=200)))
    return panels
