"""Pauses: how long to wait before asking again; they grow, are bounded and never march in step."""

import secrets
from collections.abc import Awaitable, Callable, Iterator

import anyio

_FIRST, _LONGEST, _GROWTH = 0.02, 0.25, 1.3


def pauses(longest: float = _LONGEST, *, first: float = _FIRST) -> Iterator[float]:
    """Return seconds: 20 ms, growing to `longest`, each with up to a quarter of jitter."""
    jitter = secrets.SystemRandom().uniform
    pause = first
    while True:
        yield pause * jitter(0.75, 1.0)
        pause = min(longest, pause * _GROWTH)


async def until(condition: Callable[[], Awaitable[bool]], *, seconds: float) -> bool:
    """Ask until the answer is yes; False when the time is over first, even amid a question."""
    with anyio.move_on_after(seconds):
        for pause in pauses():
            if await condition():
                return True
            await anyio.sleep(pause)
    return False
