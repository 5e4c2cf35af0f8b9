"""Pauses: how long to wait before another check: growing, bounded, with jitter."""

import secrets
from collections.abc import Awaitable, Callable, Iterator

import anyio

_FIRST, _LONGEST, _GROWTH = 0.02, 0.25, 1.3


def pauses(longest: float = _LONGEST, *, first: float = _FIRST) -> Iterator[float]:
    """Yield seconds, growing from `first` to `longest`, each reduced by up to a quarter."""
    jitter = secrets.SystemRandom().uniform
    pause = first
    while True:
        yield pause * jitter(0.75, 1.0)
        pause = min(longest, pause * _GROWTH)


async def until(condition: Callable[[], Awaitable[bool]], *, seconds: float) -> bool:
    """Check a condition until it holds; return False after a timeout, even during a check."""
    with anyio.move_on_after(seconds):
        for pause in pauses():
            if await condition():
                return True
            await anyio.sleep(pause)
    return False
