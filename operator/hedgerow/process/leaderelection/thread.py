"""Thread: an event loop of its own, on which the Lease is renewed while the main loop is blocked.

`process.leadership.led` runs the election on it.
"""

from __future__ import annotations

import asyncio
import threading
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Final

import anyio
import structlog

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

LEAVE: Final = 5.0
"""Seconds that the acts have to end when they are told to."""

log = structlog.get_logger(__name__)


@asynccontextmanager
async def own_thread(
    name: str, *acts: Callable[[], Awaitable[object]]
) -> AsyncGenerator[asyncio.Queue[Exception]]:
    """Run acts in a thread beside the body, and end them with it; yield the queue of their errors.

    The caller's event loop and that of the acts never wait for each other. They only post calls to
    each other (`posting`). Acts that do not end in time are left behind: the thread is a daemon, as
    are the threads that it starts, so none keeps the process from ending. Raises RuntimeError or
    OSError if the system has no thread or no descriptors left.
    """
    errors, over, ended = asyncio.Queue[Exception](len(acts)), asyncio.Event(), anyio.Event()
    fail = posting(errors.put_nowait)

    async def attempt(act: Callable[[], Awaitable[object]]) -> None:
        try:
            await act()
        except Exception as error:  # noqa: BLE001 - told to whoever has the queue
            fail(error)

    async def turn() -> None:
        async with anyio.create_task_group() as tasks:
            for act in acts:
                tasks.start_soon(attempt, act)
            await over.wait()
            tasks.cancel_scope.cancel()

    there = start(name, turn, posting(ended.set))
    try:
        yield errors
    finally:
        _post(there, over.set)
        with anyio.move_on_after(LEAVE, shield=True):
            await ended.wait()
        if not ended.is_set():
            log.warning("thread hangs, left behind", thread=name)


def posting(act: Callable[..., object]) -> Callable[..., None]:
    """Return a function for another thread that makes this loop call `act`."""
    return partial(_post, asyncio.get_running_loop(), act)


def start(
    name: str, turn: Callable[[], Awaitable[None]], ended: Callable[[], None]
) -> asyncio.AbstractEventLoop:
    """Run `turn` on a loop in a thread, and `ended` after it; return the loop."""
    loop = asyncio.new_event_loop()

    def main() -> None:
        try:
            anyio.run(turn, backend_options={"loop_factory": lambda: loop})
        finally:
            ended()

    threading.Thread(target=main, name=name, daemon=True).start()
    return loop


def _post(loop: asyncio.AbstractEventLoop, act: Callable[..., object], *arguments: object) -> None:
    """Make a loop call `act`; do nothing if the loop has ended."""
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(act, *arguments)
