"""Following: what a command shows is drawn again with each change, until a signal ends it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

import anyio
from rich.console import Group
from rich.text import Text

from hedgerow.cli import exits
from hedgerow.cli.interrupts import until_signal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rich.live import Live

GATHER: Final = 0.1
"""Seconds between two drawings, so that simultaneous changes are drawn together."""
TICK: Final = 1.0
"""Seconds after which ages are drawn again."""


class Followed(Protocol):
    """Objects of the cluster that are kept up to date."""

    async def follow(self) -> None:
        """Keep them up to date until cancelled."""
        ...

    async def changed(self) -> None:
        """Wait until something has changed since the last call."""
        ...


async def follow(watched: Followed, draw: Callable[[], None], *, ticks: bool) -> int:
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


def redraw(live: Live, picture: Sequence[Text], remedy: str) -> None:
    """Draw lines in place of the last ones; `remedy` tells what to do if there are too many."""
    width, height = live.console.size
    # The terminal echoes ^C at the cursor; after a full line this would break the picture.
    shown = [*_fitting(picture, height - 1, remedy), Text()]
    for line in shown:
        line.truncate(width, overflow="ellipsis")
    live.update(Group(*shown), refresh=True)


def _fitting(picture: Sequence[Text], height: int, remedy: str) -> Sequence[Text]:
    """Return at most `height` lines; if there are more, the last line says how many."""
    if len(picture) <= height:
        return picture
    kept = max(height - 1, 0)
    return [*picture[:kept], Text(f"… {len(picture) - kept} more lines: {remedy}", "bold")]
