"""Server: an HTTP server that runs as one of our tasks, and drains connections before it ends."""

from __future__ import annotations

import logging
from email.utils import formatdate
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import anyio
import structlog
import uvicorn
from starlette.requests import ClientDisconnect
from uvicorn.server import ServerState

from hedgerow.serving.httpserver.addresses import Address
from hedgerow.serving.httpserver.connections import Connection, accept, listen
from hedgerow.serving.httpserver.limits import REVIEWS, Limited

if TYPE_CHECKING:
    import ssl

    from anyio import Event
    from anyio.abc import TaskStatus
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from hedgerow.serving.httpserver.limits import Bounds


KEEP_ALIVE = 120
"""Seconds; Go clients such as the API server close an idle connection after 90 s themselves."""
GRACE = 3
"""Seconds for running requests when the server ends."""
TICK = 1.0
"""Seconds between two updates of the Date header."""
POLL = 0.1
"""Seconds between two looks at whether all clients are gone."""

log = structlog.get_logger(__name__)


async def serve(
    app: ASGIApp,
    address: Address,
    *,
    tls: ssl.SSLContext | None = None,
    bounds: Bounds = REVIEWS,
    task_status: TaskStatus[Address] = anyio.TASK_STATUS_IGNORED,
) -> None:
    """Serve a Starlette app until cancelled; then give running requests `GRACE` seconds to end.

    `task_status` gets the address, with the actual port for port 0. Each new connection uses the
    current state of `tls`, so that loading a new certificate needs no restart. Raises ListenError
    before it has started.
    """
    config, clients = _config(app, bounds), ServerState()
    config.load()
    made = partial(Connection, config, clients, dict[str, Any](), most=bounds.connections)
    try:
        with await listen(address) as listening:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_renew_date, clients)
                task_status.started(Address(address.host, listening.getsockname()[1]))
                await accept(listening, tls, made)
    finally:
        with anyio.CancelScope(shield=True):
            await _drain(clients)


async def _renew_date(clients: ServerState) -> None:
    """Keep the Date header up to date."""
    while True:
        clients.default_headers = [(b"date", formatdate(usegmt=True).encode())]
        await anyio.sleep(TICK)


async def _drain(clients: ServerState) -> None:
    """Close all connections; requests that are running get `GRACE` seconds to end."""
    for connection in list(clients.connections):
        connection.shutdown()
    with anyio.move_on_after(GRACE):
        while clients.connections or clients.tasks:  # noqa: ASYNC110 - uvicorn says nothing
            await anyio.sleep(POLL)
    for request in clients.tasks:
        request.cancel()
    for connection in list(clients.connections):
        connection.transport.abort()


class _Forward(logging.Handler):
    """Passes uvicorn's log records to our own log."""

    def emit(self, record: logging.LogRecord) -> None:
        """Log requests that failed by our own fault as errors; clients can cause all others."""
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, Exception) and not isinstance(error, ClientDisconnect):
            log.error("request failed", exc_info=error)
        else:
            log.debug(record.getMessage().strip())


def _config(app: ASGIApp, bounds: Bounds) -> uvicorn.Config:
    logger = logging.getLogger("uvicorn.error")
    logger.handlers, logger.propagate = [_Forward()], False

    return uvicorn.Config(
        Limited(app, body=bounds.body),
        http=Connection,
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        log_level=logging.DEBUG,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE,
    )


SECONDS: Final = 1.0
"""Seconds for which a server still answers after the process was asked to stop."""


class Parting:
    """A Starlette app that closes each connection after its next answer, once it is asked to end.

    If a server closes an idle connection while a request is on its way, that request is lost: Go's
    net/http, and so the API server, does not repeat a POST that it has begun to send.
    """

    def __init__(self, app: ASGIApp, asked: Event) -> None:
        self._app = app
        self._asked = asked

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start" and self._asked.is_set():
                headers = [*message.get("headers", ()), (b"connection", b"close")]
                message = {**message, "headers": headers}
            await send(message)

        await self._app(scope, receive, sending)

    async def over(self) -> None:
        """Wait until clients that send requests often have got their last answer."""
        await self._asked.wait()
        await anyio.sleep(SECONDS)
