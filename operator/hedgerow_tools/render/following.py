"""Following: what a command shows, once or again with each change until a signal ends it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final, Protocol

import anyio
from rich.console import Group
from rich.live import Live
from rich.text import Text

from hedgerow.cli import exits
from hedgerow.cli.output import echo, echo_data
from hedgerow.cli.program import say
from hedgerow.cli.terminal import Terminal
from hedgerow.encoding import encode
from hedgerow_tools.interrupts import until_signal
from hedgerow_tools.render.widths import page_terminal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

GATHER: Final = 0.1
"""Seconds between two drawings, so that simultaneous changes are drawn together."""
TICK: Final = 1.0
"""Seconds after which ages are drawn again."""
NOTHING: Final = "nothing is left"
"""What is drawn if all objects are gone."""
FOR_PROGRAMS: Final = frozenset({"json", "yaml"})


class Followed(Protocol):
    """Objects of the cluster that are kept up to date."""

    async def follow(self) -> None:
        """Keep them up to date until cancelled."""
        ...

    async def changed(self) -> None:
        """Wait until something has changed since the last call."""
        ...


class LiveView(Protocol):
    """What a command shows of objects, as they are now."""

    remedy: str
    """What to do if there are more lines than the terminal has."""

    def data(self) -> Any:
        """Return it for programs."""
        ...

    def lines(self, width: int) -> Iterable[Text]:
        """Return it as lines of so many columns."""
        ...

    def problems(self) -> Sequence[str]:
        """Return a line for each reason why something is missing or may be out of date."""
        ...


def is_followed(output: str) -> bool:
    """Return whether a view can go on: as lines of JSON, or as a picture on a terminal."""
    if output in FOR_PROGRAMS:
        return output == "json"
    return sys.stdout.isatty() and not Terminal().is_dumb_terminal


def print_once(view: LiveView, output: str) -> None:
    """Print a view in the requested format; lines are not cut if there is no terminal.

    Problems are reported on standard error.
    """
    if output in FOR_PROGRAMS:
        echo_data(view.data(), output)
        return
    console = page_terminal()
    for line in view.lines(console.width):
        console.print(line, soft_wrap=True)
    for line in view.problems():
        say(line)


async def watch(watched: Followed, view: LiveView, output: str) -> int:
    """Show a view, and every change, until a signal; return the signal's number, or 0.

    For programs it is one line of JSON after each change, else one picture that is redrawn.
    """
    if output in FOR_PROGRAMS:
        return await _follow(watched, Stream(view).draw, ticks=False)
    with Live(console=Terminal(), auto_refresh=False) as live:
        return await _follow(watched, Picture(view, live).draw, ticks=True)


async def _follow(watched: Followed, draw: Callable[[], None], *, ticks: bool) -> int:
    """Draw what was read, and every change, until a signal; return the signal's number.

    It is 0 if nobody reads the output any more. No message is printed: a signal is a normal way to
    end. With `ticks` it draws again as time passes, even without a change.
    """

    async def show() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(watched.follow)
            try:
                await _draw(watched, draw, ticks=ticks)
            except BrokenPipeError:
                exits.silence()
                group.cancel_scope.cancel()

    return await until_signal(show)


async def _draw(watched: Followed, draw: Callable[[], None], *, ticks: bool) -> None:
    while True:
        draw()
        with anyio.move_on_after(TICK if ticks else None):
            await watched.changed()
        await anyio.sleep(GATHER)


class Picture:
    """One picture on a terminal."""

    def __init__(self, view: LiveView, live: Live) -> None:
        self._view, self._live = view, live

    def draw(self) -> None:
        """Draw the picture again."""
        width, height = self._live.console.size
        lines = [*self._view.lines(width)] or [Text(NOTHING)]
        picture = [*lines, *map(Text, self._view.problems())]
        # The terminal echoes ^C at the cursor; after a full line this would break the picture.
        shown = [*_fitting(picture, height - 1, self._view.remedy), Text()]
        for line in shown:
            line.truncate(width, overflow="ellipsis")
        self._live.update(Group(*shown), refresh=True)


class Stream:
    """A line of JSON after each change."""

    def __init__(self, view: LiveView) -> None:
        self._view = view
        self._last = b""

    def draw(self) -> None:
        """Print it unless it is as it was."""
        new = encode(self._view.data())
        if new != self._last:
            echo(new.decode())
        self._last = new


def _fitting(picture: Sequence[Text], height: int, remedy: str) -> Sequence[Text]:
    """Return at most `height` lines; if there are more, the last line says how many."""
    if len(picture) <= height:
        return picture
    kept = max(height - 1, 0)
    return [*picture[:kept], Text(f"… {len(picture) - kept} more lines: {remedy}", "bold")]
