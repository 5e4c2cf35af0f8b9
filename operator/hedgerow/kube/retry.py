"""Retry: how long to wait before asking again, as pure functions of what went wrong."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio

from hedgerow.kube.errors import KubeError, Throttled, Unavailable, Unreachable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

ATTEMPTS = 5
FIRST = 0.2
"""Seconds: the longest first wait."""
LONGEST = 30.0


@dataclass(frozen=True, slots=True)
class Timing:
    """The clock and the dice, so that tests bring their own.

    `now` in seconds on any monotonic scale, `sleep` for seconds, `draw` from [0, 1).
    """

    now: Callable[[], float] = anyio.current_time
    sleep: Callable[[float], Awaitable[None]] = anyio.sleep
    draw: Callable[[], float] = random.random


def backoff(failures: int, draw: float, after: float = 0.0) -> float:
    """Return the seconds to wait after so many failures in a row.

    They double up to `LONGEST`, of which the half is jitter; never less than `after`, which the
    server asked for.
    """
    ceiling = min(LONGEST, FIRST * 2.0 ** min(max(failures, 1) - 1, 16))
    return max(ceiling * (1 + draw) / 2, after * (1 + draw / 4))


def pause(
    error: KubeError, attempt: int, *, repeatable: bool, remaining: float, draw: float
) -> float | None:
    """Return the seconds until the next attempt, or None when there must be none.

    None also when the wait would not leave any of the `remaining` seconds.
    """
    if attempt >= ATTEMPTS or not _again(error, repeatable=repeatable):
        return None
    wait = backoff(attempt, draw, error.after)
    return wait if wait < remaining else None


def _again(error: KubeError, *, repeatable: bool) -> bool:
    match error:
        case Throttled():
            return True
        case Unreachable():
            return repeatable or not error.sent
        case Unavailable():
            return repeatable and error.passing
        case _:
            return False
