"""Turns: long work in parts, between which the event loop does other work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

from anyio.lowlevel import checkpoint

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from hedgerow.runtime.clock import Clock

T = TypeVar("T")
TURN: Final = 0.01
"""Seconds of work after which other work has its turn."""


async def in_turns(
    work: Generator[None, None, T], clock: Clock, is_outdated: Callable[[], bool]
) -> T | None:
    """Return the result of the work; None if it is outdated after the turn of other work."""
    until = clock.monotonic() + TURN
    while True:
        try:
            next(work)
        except StopIteration as done:
            return done.value
        if clock.monotonic() >= until:
            await checkpoint()
            if is_outdated():
                return None
            until = clock.monotonic() + TURN
