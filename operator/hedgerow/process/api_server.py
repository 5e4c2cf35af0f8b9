"""API server: whether it has answered since the start; in a pod it is waited for.

There a process that ends is started again ever later, up to five minutes after it has ended. One
that waits is unready, says why, and goes on within seconds once there is an answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import anyio
import structlog

from hedgerow.backoff import backoff
from hedgerow.kube.errors import Throttled, Unavailable, Unreachable, Untrusted

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from hedgerow.runtime.clock import Clock

T = TypeVar("T")

FIRST, LONGEST = 1.0, 10.0
"""Seconds between two attempts: they double from one to the other."""

log = structlog.get_logger(__name__)


class ApiServerCheck:
    """Why the API server is not known to answer; empty once it has answered."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._reason = "the API server has not answered yet"

    def check(self) -> str:
        """Return why we are not ready: nothing has been answered yet."""
        return self._reason

    async def answer(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Return the result of `ask`, however long there is no answer.

        Errors that do not pass by themselves are raised: a refusal, an untrusted certificate.
        """
        failures = 0
        while True:
            try:
                answer = await ask()
            except Untrusted:
                raise
            except (Throttled, Unavailable, Unreachable) as error:
                failures += 1
                self._wait(str(error))
                draw = self._clock.jitter()
                await anyio.sleep(
                    backoff(failures, draw, error.after, first=FIRST, longest=LONGEST)
                )
            else:
                if failures:
                    log.info("the API server answers")
                self._reason = ""
                return answer

    def _wait(self, error: str) -> None:
        reason = f"the API server does not answer: {error}"
        if reason != self._reason:
            log.warning("waiting for the API server", error=error)
        self._reason = reason
