"""Plan on a terminal: what would change on the left, who holds it now on the right."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from hedgerow.cli.plan.page import sections, summary, title
from hedgerow.cli.widths import is_limited, wrapped
from hedgerow.terminal import Terminal, one_line

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from rich.console import Console

    from hedgerow.cli.plan.forecast import Forecast
    from hedgerow.cli.plan.page import Section

_STYLES = {
    "added": "green", "changed": "yellow", "removed": "red", "alarm": "bold red",
    "plain": "", "faint": "dim",
}  # fmt: skip
_PIPED = 160
"""Columns if the output is not a terminal and COLUMNS is not set."""
_NARROW = 100
"""With fewer columns, the holder is printed below the field."""
_MARGIN = 4
_GAP = 2


def show(forecasts: Sequence[Forecast], now: datetime, console: Console | None = None) -> None:
    """Print forecasts; long lines are wrapped, never cut."""
    piped = None if is_limited() else _PIPED
    out = console or Terminal(width=piped)
    for forecast in forecasts:
        told = list(sections(forecast, now))
        heading = f"  controller {forecast.controller}, field manager {forecast.field_manager}"
        first = Text.assemble(one_line(title(forecast), "bold"), (heading, "dim"))
        for line in wrapped(first, out.width):
            _say(out, line)
        for section in told:
            out.print()
            _print(out, section)
        out.print(*([] if told else [Text("  nothing to do", "dim")]))
    last = Text.assemble((summary(forecasts), "bold"), ("; nothing was written", "dim"))
    for line in wrapped(last, out.width):
        _say(out, line)


def _print(out: Console, section: Section) -> None:
    _say(out, one_line(section.title, _STYLES[section.tone]))
    wide = out.width >= _NARROW and any(row.holder for row in section.rows)
    rows = [
        (one_line(row.text, _STYLES[row.tone]), one_line(row.holder, "cyan"))
        for row in section.rows
    ]
    right = max((holder.cell_len for _, holder in rows), default=0) + _GAP if wide else 0
    left = out.width - _MARGIN - right
    column = min(max((text.cell_len for text, holder in rows if holder), default=0), left)
    for row, (text, holder) in zip(section.rows, rows, strict=True):
        if row.command:
            _say(out, Text(" " * _MARGIN * 2).append(text))
            continue
        first, *more = _wrapped(text, left if holder else out.width - _MARGIN)
        if wide and holder:
            first.pad_right(column - first.cell_len)
            first.append(" " * _GAP).append(holder)
        below = [] if wide or not holder else _wrapped(holder, left - _MARGIN)
        for line in (first, *(_deeper(line) for line in (*more, *below))):
            _say(out, Text(" " * _MARGIN).append(line))


def _wrapped(text: Text, width: int) -> list[Text]:
    """Return a text broken into lines; after the first, lines are indented and so narrower."""
    return wrapped(text, width - _MARGIN) if text.cell_len > width else [text]


def _deeper(line: Text) -> Text:
    return Text(" " * _MARGIN).append(line)


def _say(out: Console, line: Text) -> None:
    out.print(line, soft_wrap=True)
