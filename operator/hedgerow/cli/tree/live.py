"""Tree live: trees as they change, redrawn in place on a terminal, else printed line by line."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Protocol

from rich.live import Live
from rich.text import Text

from hedgerow.cli.following import follow, redraw
from hedgerow.cli.output import echo, echo_data, echo_lines
from hedgerow.cli.program import program_name, say
from hedgerow.cli.tree.diff import tree_changes
from hedgerow.cli.tree.listing import listed, part
from hedgerow.cli.tree.terminal import lines, sections
from hedgerow.cli.widths import ENDLESS, page_terminal
from hedgerow.runtime.clock import SystemClock
from hedgerow.terminal import Terminal
from hedgerow.texts import printable

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping, Sequence

    from hedgerow.cli.tree.look import WatchedTrees
    from hedgerow.cli.tree.resources import TreeNode
    from hedgerow.runtime.clock import Clock

FOR_PROGRAMS: Final = frozenset({"json", "yaml"})


class Drawing(Protocol):
    """How trees are shown; `ticks`: draw again as time passes, even without a change."""

    ticks: bool

    def draw(self, trees: Sequence[TreeNode], unread: Mapping[str, str]) -> None:
        """Show the current trees."""
        ...


async def watch(watched: WatchedTrees, drawing: Drawing) -> int:
    """Draw what was read, and every change, until a signal; return the signal's number, or 0."""

    def draw() -> None:
        drawing.draw(watched.trees(), watched.unread())

    return await follow(watched, draw, ticks=drawing.ticks)


@contextmanager
def drawing(output: str, clock: Clock | None = None) -> Generator[Drawing]:
    """Yield the way to show changes: JSON or YAML, one redrawn picture, or appended lines."""
    clock = clock or SystemClock()
    console = Terminal()
    if output in FOR_PROGRAMS:
        yield Streamed(output)
    elif sys.stdout.isatty() and not console.is_dumb_terminal:
        with Live(console=console, auto_refresh=False) as live:
            yield Redrawn(live, clock)
    else:
        yield Appended(clock)


class Redrawn:
    """One picture on a terminal."""

    ticks = True

    def __init__(self, live: Live, clock: Clock) -> None:
        self._live = live
        self._clock = clock

    def draw(self, trees: Sequence[TreeNode], unread: Mapping[str, str]) -> None:
        """Draw the picture again."""
        width = self._live.console.width
        picture = [*pictured(trees, self._clock, width), *map(Text, left_out(unread))]
        redraw(self._live, picture, "enlarge the window, or name one resource")


class Appended:
    """The whole tree once, then a line for each change."""

    ticks = False

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last: Sequence[TreeNode] | None = None
        self._unread: Mapping[str, str] = {}

    def draw(self, trees: Sequence[TreeNode], unread: Mapping[str, str]) -> None:
        """Print what is new since the last time."""
        if self._last is None:
            for line in pictured(trees, self._clock, ENDLESS):
                echo(line.plain)
        else:
            at = f"{self._clock.now():%Y-%m-%dT%H:%M:%SZ}"
            for new in tree_changes(self._last, trees, program_name()):
                echo(printable(f"{at} {new.namespace} {new.object}: {new.words}"))
        for line in left_out({k: why for k, why in unread.items() if k not in self._unread}):
            say(line)
        self._last, self._unread = trees, unread


class Streamed:
    """All trees as one line of JSON, or one document of YAML, after each change."""

    ticks = False

    def __init__(self, output: str = "json") -> None:
        self._output = output
        self._last = ""

    def draw(self, trees: Sequence[TreeNode], unread: Mapping[str, str]) -> None:
        """Print them unless they are as they were."""
        new = part(listed(trees, unread), self._output)
        if new != self._last:
            echo_lines(new, nl=False)
        self._last = new


def print_once(trees: Sequence[TreeNode], unread: Mapping[str, str], output: str) -> None:
    """Print trees in the requested format; lines are not cut if there is no terminal.

    Kinds that could not be read are reported on standard error.
    """
    if output in FOR_PROGRAMS:
        echo_data(listed(trees, unread), output)
        return
    console = page_terminal()
    for line in pictured(trees, SystemClock(), console.width) if trees else ():
        console.print(line, soft_wrap=True)
    if not trees:
        say(f"there are no resources of {program_name()} here")
    for line in left_out(unread):
        say(line)


def pictured(trees: Sequence[TreeNode], clock: Clock, width: int) -> Iterator[Text]:
    """Yield the lines of a picture."""
    yield from lines(sections(trees, clock.now()), width) if trees else [Text("nothing is left")]


def left_out(unread: Mapping[str, str]) -> list[str]:
    """Return a line for each kind that is missing or may be out of date."""
    return [printable(f"{kind} {why}") for kind, why in unread.items()]
