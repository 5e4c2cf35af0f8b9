"""Retry: how long to wait before the next attempt, as pure functions of the error."""

from __future__ import annotations

import asyncio
import random
import time
from typing import TYPE_CHECKING

import anyio
from msgspec import Struct

from hedgerow.backoff import backoff
from hedgerow.kube.errors import KubeError, Throttled, Unavailable, Unreachable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

ATTEMPTS = 5


def loop_time() -> float:
    """Return the event loop's time; `anyio.current_time` takes ten times as long to find it."""
    return asyncio.get_running_loop().time()


def boot_time() -> float:
    """Return the seconds of a clock that goes on while the machine sleeps; only Linux has it."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class RetryClock(Struct, frozen=True):
    """The clock and the source of random numbers, which tests replace.

    `now` returns seconds of any monotonic clock, `sleep` takes seconds, `draw` returns a number in
    [0, 1). `elapsed` returns seconds that also count while the machine sleeps.
    """

    now: Callable[[], float] = loop_time
    sleep: Callable[[float], Awaitable[None]] = anyio.sleep
    draw: Callable[[], float] = random.random
    elapsed: Callable[[], float] = boot_time


def pause(error: KubeError, attempt: int, *, remaining: float, draw: float) -> float | None:
    """Return the seconds until the next attempt, or None if there must be none.

    It is also None if the wait would take all of the `remaining` seconds.
    """
    if attempt >= ATTEMPTS or not _again(error):
        return None
    wait = backoff(attempt, draw, error.after)
    return wait if wait < remaining else None


def _again(error: KubeError) -> bool:
    passing = isinstance(error, Unavailable) and error.passing
    return passing or isinstance(error, (Throttled, Unreachable))
