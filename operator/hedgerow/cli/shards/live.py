"""Shards live: the table once, redrawn in place on a terminal, or a line for each change."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from rich.live import Live
from rich.text import Text

from hedgerow.cli.following import follow, redraw
from hedgerow.cli.output import echo, echo_data, echo_lines
from hedgerow.cli.program import say
from hedgerow.cli.shards.listing import listed
from hedgerow.cli.shards.terminal import lines, words
from hedgerow.cli.widths import page_terminal
from hedgerow.encoding import to_json
from hedgerow.runtime.clock import SystemClock
from hedgerow.terminal import Terminal
from hedgerow.texts import printable

if TYPE_CHECKING:
    from hedgerow.cli.shards.look import WatchedShards
    from hedgerow.runtime.clock import Clock


def print_once(watched: WatchedShards, output: str) -> None:
    """Print who serves what; lines are not cut if there is no terminal."""
    now = SystemClock().now()
    if output == "json":
        echo_data(listed(watched.report(now)))
        return
    console = page_terminal()
    for line in lines(watched.report(now), now, console.width):
        console.print(line, soft_wrap=True)


async def watch(watched: WatchedShards, output: str) -> int:
    """Show who serves what, and every change, until a signal; return the signal's number, or 0.

    A Lease that runs out is a change, too, and no object changes by that: hence the ticks.
    """
    console = Terminal()
    if output == "json" or not sys.stdout.isatty() or console.is_dumb_terminal:
        shown = ShardsJson(watched, SystemClock()) if output == "json" else ShardsLines(watched)
        return await follow(watched, shown.draw, ticks=True)
    with Live(console=console, auto_refresh=False) as live:
        return await follow(watched, ShardsPicture(watched, live).draw, ticks=True)


class ShardsPicture:
    """One picture on a terminal."""

    def __init__(self, watched: WatchedShards, live: Live, clock: Clock | None = None) -> None:
        self._watched, self._live, self._clock = watched, live, clock or SystemClock()

    def draw(self) -> None:
        """Draw the picture again."""
        now = self._clock.now()
        picture = [*lines(self._watched.report(now), now, self._live.console.width)]
        if self._watched.problem:
            picture.append(Text(out_of_date(self._watched)))
        redraw(self._live, picture, "enlarge the window")


class ShardsLines:
    """A line for each replica, and then one for each change."""

    def __init__(self, watched: WatchedShards, clock: Clock | None = None) -> None:
        self._watched, self._clock = watched, clock or SystemClock()
        self._last: dict[str, str] = {}
        self._problem = ""

    def draw(self) -> None:
        """Print what is new since the last time."""
        now = self._clock.now()
        new = words(self._watched.report(now))
        for name in {**self._last, **new}:
            if new.get(name) != self._last.get(name):
                echo(f"{now:%Y-%m-%dT%H:%M:%SZ} {name}: {new.get(name, 'gone')}")
        problem = self._watched.problem
        if problem and problem != self._problem:
            say(out_of_date(self._watched))
        self._last, self._problem = new, problem


class ShardsJson:
    """A line of JSON after each change."""

    def __init__(self, watched: WatchedShards, clock: Clock) -> None:
        self._watched, self._clock = watched, clock
        self._last = ""

    def draw(self) -> None:
        """Print it unless it is as it was."""
        new = to_json(listed(self._watched.report(self._clock.now()))).decode()
        if new != self._last:
            echo_lines(new)
        self._last = new


def out_of_date(watched: WatchedShards) -> str:
    """Return why what is shown may be out of date."""
    return printable(f"may be out of date: {watched.problem}")
