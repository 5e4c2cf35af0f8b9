"""Threads: long pure work runs in a thread, so that the event loop goes on meanwhile."""

from __future__ import annotations

import gc
import sys
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from anyio import CapacityLimiter, to_thread
from anyio.lowlevel import RunVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

SWITCH: Final = 0.001
"""Seconds after which a thread gives the interpreter to another one."""
COLLECTED: Final = (20_000, 20, 100)
"""Thresholds of the garbage collector: objects, young collections, middle collections."""


def tune_for_event_loop() -> None:
    """Keep the garbage collector, and work in threads, from blocking the event loop.

    A full collection visits every map and list: 70 ms with a dozen large objects in the caches, and
    reading one object of 1 MB can start it. Objects made by imports live for ever, so they are
    excluded; a collection before that would take 30 ms and find next to nothing. The others, nearly
    all without cycles, are collected less often. A busy thread gives up the interpreter after
    `SWITCH` seconds; waits of the default 5 ms would add up.
    """
    gc.freeze()
    gc.set_threshold(*COLLECTED)
    sys.setswitchinterval(SWITCH)


class OneThread:
    """Runs one piece of work at a time in a thread.

    More would only compete for the interpreter, also with the event loop.
    """

    def __init__(self, name: str) -> None:
        """`name` is unique in the process: each event loop has a limiter of this name."""
        self._limiter: RunVar[CapacityLimiter] = RunVar(f"hedgerow {name}")

    async def run(self, work: Callable[[], T]) -> T:
        """Return what pure `work` returns; a caller that is cancelled does not wait for it."""
        limiter = self._limiter.get(None)
        if limiter is None:
            limiter = CapacityLimiter(1)
            self._limiter.set(limiter)
        called = partial(_uncollected, work)
        return await to_thread.run_sync(called, limiter=limiter, abandon_on_cancel=True)


TEXTS: Final = OneThread("texts")
"""For long texts that clients and tenants wrote."""


def _uncollected(work: Callable[[], T]) -> T:
    """Return what `work` returns, with the garbage collector off.

    Pure work leaves no cycles. But it makes so many objects that it would start a full collection,
    which would block every thread.

    Threads may overlap, such as that of a caller who was cancelled. The first to end turns the
    collector on for the others too, which costs them a collection at most. To wait for the last one
    would leave it off as long as clients keep one thread busy.
    """
    gc.disable()
    try:
        return work()
    finally:
        gc.enable()
