"""Pass-through: a TCP port before the API server, so that an operator's connections can be cut."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import anyio
from anyio.abc import SocketAttribute, SocketStream

if TYPE_CHECKING:
    from collections.abc import Generator

    from anyio.abc import TaskStatus
    from anyio.from_thread import BlockingPortal

_LOOPBACK: Final = "127.0.0.1"
_MOST: Final = 500
"""Connections at once; further ones are closed."""
_TIMEOUT: Final = 10.0


class PassThrough:
    """Passes bytes on unread, in both directions; `cut` closes the connections of that moment."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._open: set[SocketStream] = set()

    async def serve(self, *, task_status: TaskStatus[int]) -> None:
        """Listen on a free port of the loopback address, which the caller is told, until ended."""
        async with await anyio.create_tcp_listener(local_host=_LOOPBACK) as listener:
            port = listener.extra(SocketAttribute.local_port)  # noqa: S610 - not Django's
            task_status.started(port)
            await listener.serve(self._passed)

    async def cut(self) -> int:
        """Close all connections that are open; return their number."""
        found, self._open = self._open, set[SocketStream]()
        for one in found:
            await anyio.aclose_forcefully(one)
        return len(found) // 2

    async def _passed(self, near: SocketStream) -> None:
        if len(self._open) >= 2 * _MOST:
            return await near.aclose()
        try:
            with anyio.fail_after(_TIMEOUT):
                far = await anyio.connect_tcp(_LOOPBACK, self._target)
        except (OSError, TimeoutError):
            return await anyio.aclose_forcefully(near)
        self._open |= {near, far}
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self._copied, near, far, group.cancel_scope)
                group.start_soon(self._copied, far, near, group.cancel_scope)
        finally:
            self._open -= {near, far}
            for one in (near, far):
                await anyio.aclose_forcefully(one)
        return None

    async def _copied(
        self, source: SocketStream, sink: SocketStream, scope: anyio.CancelScope
    ) -> None:
        """Pass on what one end sends; when one ends or breaks, so does the other."""
        try:
            async for part in source:
                await sink.send(part)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
            pass
        scope.cancel()


@contextmanager
def passing(portal: BlockingPortal, target: int) -> Generator[tuple[PassThrough, int]]:
    """Run a pass-through to a port of this machine, and yield it with its own port."""
    made = PassThrough(target)
    task, port = portal.start_task(made.serve)
    try:
        yield made, port
    finally:
        task.cancel()
