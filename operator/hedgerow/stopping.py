"""Stopping: in good order on the first signal, at once on the second."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import anyio
import structlog
from anyio import CancelScope

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from anyio.abc import TaskStatus

log = structlog.get_logger(__name__)


class Stop:
    """Whether the process was asked to stop, and what is cut off when it takes too long."""

    def __init__(self, grace: float) -> None:
        """Let `work` take `grace` seconds from the first signal on."""
        self.asked = anyio.Event()
        self.work = CancelScope()
        self._grace = grace

    async def on_signal(
        self, everything: CancelScope, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED
    ) -> None:
        """Wait for SIGTERM or SIGINT; a second one cancels `everything`."""
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

    async def unless_asked(self, act: Callable[[], Awaitable[None]]) -> None:
        """Wait for the end of `act`, which is cut off when the process is asked to stop."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._cut_off, tasks.cancel_scope)
            await act()
            tasks.cancel_scope.cancel()

    async def _cut_off(self, until: CancelScope) -> None:
        await self.asked.wait()
        until.cancel()
