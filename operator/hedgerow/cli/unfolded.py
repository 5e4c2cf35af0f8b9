"""Unfolded: the help of commands, in which no command is broken into lines, however narrow it is.

A list item that begins with a command in backticks is an example. Examples come last, each on a
line of its own, so that whoever copies one can paste it. Other commands in backticks are short
ones within a sentence.
"""

from __future__ import annotations

import re
import sys
from contextlib import contextmanager, redirect_stdout
from inspect import cleandoc
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Final

from typer.core import TyperCommand, TyperGroup

from hedgerow.cli.output import echo

if TYPE_CHECKING:
    from collections.abc import Generator

_EXAMPLE: Final = re.compile(r"^- `([^`]*+)`(.*+(?:\n  .*+)*+)\n*+", re.MULTILINE)
_SHORT: Final = re.compile(r"`[^`]*`")
_GLUE: Final = "\ue000"
"""Stands for the blanks of a command while a page is laid out, which breaks lines at blanks."""
_MARGIN: Final = " " * 3
_WIDTH: Final = 80 - 2 * len(_MARGIN)


class UnfoldedCommand(TyperCommand):
    """A command whose help folds no command."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help."""
        with _laid_out(self):
            super().format_help(ctx, formatter)
        _print_examples(self)


class UnfoldedGroup(TyperGroup):
    """A group whose help folds no command."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help."""
        with _laid_out(self):
            super().format_help(ctx, formatter)
        _print_examples(self)


def parted(text: str) -> tuple[str, list[tuple[str, str]]]:
    """Return a help text without its examples, and these: each a command, and words about it."""
    examples: list[tuple[str, str]] = []

    def left(item: re.Match[str]) -> str:
        code, words = map(_line, item.groups())
        if " " not in code:
            return item[0]
        examples.append((code, words))
        return ""

    return _EXAMPLE.sub(left, cleandoc(text)).rstrip(), examples


@contextmanager
def _laid_out(command: Any) -> Generator[None]:
    """Leave the examples out of a command's help meanwhile, and have no other command broken."""
    utils = _rich_utils()
    parts = (command, *command.params)
    given = [(part, part.help) for part in parts if getattr(part, "help", None)]
    before = utils._print_options_panel  # noqa: SLF001 - typer offers no other way
    try:
        for part, text in given:
            part.help = _SHORT.sub(_glued, parted(text)[0] if part is command else text)
        utils._print_options_panel = _print_options  # noqa: SLF001
        with redirect_stdout(_Unglued(sys.stdout)):
            yield
    finally:
        utils._print_options_panel = before  # noqa: SLF001
        for part, text in given:
            part.help = text


_OPTION: Final = 24
"""The columns of an option and its value; a longer one has its text below it."""


def _print_options(*, name: str, params: Any, ctx: Any, markup_mode: Any, console: Any) -> None:
    """Print a panel of options in two columns, so that their texts have room."""
    from rich.console import Group  # noqa: PLC0415 - for the help alone
    from rich.panel import Panel  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    utils = _rich_utils()
    lines: list[Any] = []
    for param in params:
        what = Text.assemble((_called(param), "bold cyan"), (_value(param, ctx), "yellow"))
        about = utils._get_parameter_help(  # noqa: SLF001
            param=param, ctx=ctx, markup_mode=markup_mode
        )
        row = Table.grid(padding=(0, 2), expand=True)
        row.add_column(width=_OPTION)
        row.add_column(ratio=1)
        if what.cell_len > _OPTION:
            lines.append(what)
            what = Text()
        row.add_row(what, about)
        lines.append(row)
    if lines:
        style = utils.STYLE_OPTIONS_PANEL_BORDER
        console.print(Panel(Group(*lines), title=name, title_align="left", border_style=style))


def _rich_utils() -> Any:
    """Return typer's own layout, which is imported for the help alone."""
    from typer import rich_utils  # noqa: PLC0415

    return rich_utils


def _called(param: Any) -> str:
    """Return how a parameter is typed: `-o, --output`, or an argument's name."""
    if param.param_type_name == "argument":
        return param.metavar or param.name.upper()
    return ", ".join((*sorted(param.opts, key=len), *param.secondary_opts))


def _value(param: Any, ctx: Any) -> str:
    """Return the value that an option takes, after a blank; empty if it takes none."""
    value = param.display_type_rich(ctx=ctx) or ""
    is_flag = param.param_type_name == "argument" or value == "<bool>"
    return "" if is_flag or not value else f" {value}"


class _Unglued:
    """Standard output in which glue is a blank again."""

    def __init__(self, out: Any) -> None:
        self._out = out

    def write(self, text: str) -> int:
        return self._out.write(text.replace(_GLUE, " "))

    def flush(self) -> None:
        self._out.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._out, name)


def _print_examples(command: Any) -> None:
    examples = parted(command.help or "")[1]
    if examples:
        echo(" Examples:")
    for line, words in examples:
        echo(f"{_MARGIN}{line}")
        for text in wrap(words, _WIDTH, break_long_words=False, break_on_hyphens=False):
            echo(f"{_MARGIN * 2}{text}")


def _glued(match: re.Match[str]) -> str:
    return _line(match[0]).replace(" ", _GLUE)


def _line(text: str) -> str:
    """Return a text in one line, with single blanks."""
    return " ".join(text.split())
