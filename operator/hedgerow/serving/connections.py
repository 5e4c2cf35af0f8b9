"""Connection: one client's way to a server, cut when it keeps a place without asking anything."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    import asyncio

    from uvicorn.protocols.http.h11_impl import RequestResponseCycle

MOST = 200
"""Connections of one server at a time; those beyond are cut at once."""
PATIENCE = 10.0
"""Seconds for the head of a request, and for taking the rest of an answer, between two looks."""


class Connection(H11Protocol):
    """uvicorn's HTTP/1.1, which by itself waits for ever for the head of a request.

    A look each `PATIENCE` seconds cuts what has sent no whole head, or taken no whole answer,
    since the look before. A connection kept alive between two requests is uvicorn's to close.
    """

    _look: asyncio.TimerHandle | None = None
    _seen: Any = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a client in, unless there are too many."""
        super().connection_made(transport)
        if len(self.connections) > MOST:
            transport.abort()
            return
        self._look = self.loop.call_later(PATIENCE, self._check)

    def connection_lost(self, exc: Exception | None) -> None:
        """Let the client go."""
        if self._look is not None:
            self._look.cancel()
        super().connection_lost(exc)

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
