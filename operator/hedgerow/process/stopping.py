"""Stopping: graceful on the first signal, immediate on the second."""

from __future__ import annotations

import signal
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeVar

import anyio
import structlog
from anyio import CancelScope

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from anyio.abc import TaskStatus

T = TypeVar("T")

GRACE = 20.0
"""Seconds that running passes may take after the first signal."""

log = structlog.get_logger(__name__)


class Stop:
    """Whether the process was asked to stop, and the work to cancel if it takes too long."""

    def __init__(self, grace: float) -> None:
        """`work` has `grace` seconds to end after the first signal."""
        self.asked = anyio.Event()
        self.work = CancelScope()
        self._grace = grace

    @asynccontextmanager
    async def on_signal(self) -> AsyncGenerator[None]:
        """Handle SIGTERM and SIGINT while the context lasts; a second signal cancels the body.

        Exceptions of the body are not wrapped in a group.
        """
        async with _beside(self._listen):
            yield

    async def unless_asked(self, act: Callable[[], Awaitable[T]]) -> T | None:
        """Return the result of `act`; None if it is cancelled because the process is stopping.

        Exceptions of `act` are not wrapped in a group.
        """
        async with _beside(self._cut_off):
            return await act()

    async def _listen(
        self, everything: CancelScope, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED
    ) -> None:
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            task_status.started()
            first = await anext(signals)
            log.info("stopping", signal=signal.Signals(first).name)
            self.asked.set()
            with anyio.move_on_after(self._grace) as patience:
                await anext(signals)
            if not patience.cancelled_caught:
                everything.cancel()
                return
            log.warning("grace is over", seconds=self._grace)
            self.work.cancel()
            await anext(signals)
            everything.cancel()

    async def _cut_off(
        self, until: CancelScope, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED
    ) -> None:
        task_status.started()
        await self.asked.wait()
        until.cancel()


@asynccontextmanager
async def _beside(task: Callable[..., Awaitable[None]]) -> AsyncGenerator[None]:
    """Run a task that may cancel the body; exceptions of the body are not wrapped in a group."""
    failed: Exception | None = None
    own = CancelScope()
    async with anyio.create_task_group() as tasks:

        async def run(*, task_status: TaskStatus[None]) -> None:
            with own:
                await task(tasks.cancel_scope, task_status=task_status)

        await tasks.start(run)
        try:
            yield
        except Exception as error:  # noqa: BLE001 - raised again, out of the group
            failed = error
        own.cancel()
    if failed is not None:
        raise failed
