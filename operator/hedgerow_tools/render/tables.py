"""Tables: a header and one line for each row, as wide as the terminal has room, by rich."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from hedgerow.cli.output import echo
from hedgerow_tools.render.widths import page_terminal

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Sequence

    from rich.console import Console


def table_lines(
    titles: Sequence[str],
    rows: Iterable[Sequence[Text]],
    console: Console | None = None,
    *,
    cut: Container[int] = (0,),
) -> Iterator[Text]:
    """Yield the lines of a table: its header, and one for each row.

    Where there is no room for all, cells of the columns `cut` end in an ellipsis; then all do.
    """
    out = console or page_terminal()
    grid = Table(box=None, pad_edge=False, header_style="bold dim")
    for number, title in enumerate(titles):
        grid.add_column(title, no_wrap=number not in cut, overflow="ellipsis")
    for row in rows:
        for cell in row:
            cell.no_wrap, cell.overflow = True, "ellipsis"
        grid.add_row(*row)
    for segments in out.render_lines(grid, pad=False):
        line = Text.assemble(*((segment.text, segment.style or "") for segment in segments))
        line.rstrip()
        yield line


def print_table(
    titles: Sequence[str],
    rows: Iterable[Sequence[str]],
    console: Console | None = None,
    *,
    cut: Container[int] = (0,),
) -> None:
    """Print a table of plain texts."""
    for line in table_lines(titles, (list(map(Text, row)) for row in rows), console, cut=cut):
        echo(line.plain)


def guides(depths: Sequence[int]) -> list[tuple[str, str]]:
    """Return for each row of a tree what is drawn before it, and in lines below it."""
    drawn: list[tuple[str, str]] = []
    going_on: set[int] = set()
    for depth in reversed(depths):
        has_children, is_last = depth + 1 in going_on, depth not in going_on
        going_on = {level for level in going_on if level < depth}
        above = "".join("│ " if level in going_on else "  " for level in range(1, depth))
        guide = above + ("└ " if is_last else "├ ") if depth else ""
        after = above + ("  " if is_last else "│ ") if depth else ""
        drawn.append((guide, after + ("│ " if has_children else "  ")))
        going_on.add(depth)
    return drawn[::-1]
