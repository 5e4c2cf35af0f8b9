"""Connection: one client's way to a server, cut when it keeps a place without asking anything."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from uvicorn.protocols.http.h11_impl import RequestResponseCycle

    from hedgerow.serving.limits import Bounds

PATIENCE = 10.0
"""Seconds for the head of a request, and for taking the rest of an answer, between two looks."""


class Connection(H11Protocol):
    """uvicorn's HTTP/1.1, which by itself waits for ever for the head of a request.

    A look each `PATIENCE` seconds cuts what has sent no whole head, or taken no whole answer,
    since the look before. A connection kept alive between two requests is uvicorn's to close.
    """

    _look: asyncio.TimerHandle | None = None
    _seen: Any = None
    since = 0.0

    def __init__(
        self, *arguments: Any, greeted: Callable[[int], None], bounds: Bounds, **more: Any
    ) -> None:
        """Tell `greeted` the file descriptor once there is a connection, its handshake done."""
        super().__init__(*arguments, **more)
        self._greeted = greeted
        self._bounds = bounds

    @property
    def idle(self) -> bool:
        """Whether nothing has been asked that is still to be answered."""
        request = cast("RequestResponseCycle | None", self.cycle)
        return request is None or request.response_complete or request.more_body

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a client in; where there are too many, in the place of one that asks nothing.

        Otherwise whoever opens so many connections would keep everybody else out. Where one address
        has too many, one of its own has to go.
        """
        super().connection_made(transport)
        self._greeted(transport.get_extra_info("socket").fileno())
        self.since = self.loop.time()
        if not self._make_room():
            transport.abort()
            return
        self._look = self.loop.call_later(PATIENCE, self._check)

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        self.since = self.loop.time()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Let the client go."""
        if self._look is not None:
            self._look.cancel()
        super().connection_lost(exc)

    def _make_room(self) -> bool:
        """Cut whoever has asked nothing whole for longest; False if all others are being served."""
        if len(self.connections) <= self._bounds.each:
            return True  # as nearly always
        others = cast("set[Connection]", self.connections - {self})
        there = [one for one in others if not one.transport.is_closing()]
        own = [one for one in there if one.address == self.address]
        if len(own) >= self._bounds.each:
            return _cut_idle(own)
        return len(there) < self._bounds.connections or _cut_idle(there)

    @property
    def address(self) -> str:
        """The address that the client comes from, without its port."""
        return self.client[0] if self.client else ""

    def _check(self) -> None:
        request = cast("RequestResponseCycle | None", self.cycle)
        closing = self.transport.is_closing()
        answered = request is None or request.response_complete
        kept_alive = self.timeout_keep_alive_task is not None
        before, self._seen = self._seen, (closing, request)
        idle = closing or (answered and not kept_alive)
        if idle and (request is None or before == self._seen):
            self.transport.abort()
            return
        self._look = self.loop.call_later(PATIENCE, self._check)


def _cut_idle(connections: list[Connection]) -> bool:
    """Cut the one that has been idle for longest; False where all are being served."""
    idle = [one for one in connections if one.idle]
    if idle:
        min(idle, key=lambda one: one.since).transport.abort()
    return bool(idle)
