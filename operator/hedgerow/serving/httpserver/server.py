"""Server: an HTTP server that runs as one of our tasks, and drains connections before it ends."""

from __future__ import annotations

import asyncio
import logging
from asyncio import sslproto
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import anyio
import structlog
import uvicorn
from starlette.requests import ClientDisconnect

from hedgerow.serving.httpserver.addresses import Address
from hedgerow.serving.httpserver.connections import BACKLOG, Connection, Listener, listen
from hedgerow.serving.httpserver.limits import REVIEWS, Limited

if TYPE_CHECKING:
    import socket
    import ssl
    from collections.abc import Callable, Generator

    from anyio import Event
    from anyio.abc import TaskStatus
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from hedgerow.serving.httpserver.limits import Bounds


HEAD = 32 * 1024
"""The most bytes of a request's line and headers; a bearer token has a few thousand."""
KEEP_ALIVE = 120
"""Seconds; Go clients such as the API server close an idle connection after 90 s themselves."""
HANDSHAKE = 5.0
GRACE = 3
"""Seconds for running requests when the server ends."""
TLS_BUFFER = 32 * 1024
"""Bytes of asyncio's buffer for each TLS connection: two records. Its default of 256 KiB would take
100 MiB for all clients of one server."""
TICK = 1.0
"""Seconds between two updates of the Date header."""

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
    with await listen(address) as listening:
        server = _Server(_config(app, tls, bounds), listening, bounds)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(server.run_shielded)
            try:
                await server.up.wait()
                task_status.started(Address(address.host, listening.getsockname()[1]))
                await anyio.sleep_forever()
            finally:
                server.end()


class _Server(uvicorn.Server):
    """uvicorn's server, without its signal handlers and its ten wake-ups per second."""

    def __init__(self, config: uvicorn.Config, listening: Listener, bounds: Bounds) -> None:
        super().__init__(config)
        self._bounds = bounds
        self.up = anyio.Event()
        self._listening = listening
        self._down = anyio.Event()

    async def run_shielded(self) -> None:
        """Serve until `end` is called, even if the task is cancelled."""
        with anyio.CancelScope(shield=True):
            await self.serve([self._listening])
        for connection in list(self.server_state.connections):
            connection.transport.abort()

    def end(self) -> None:
        """Accept no more connections, and stop."""
        self.should_exit = True
        self._down.set()

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Leave signals to the app."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:  # noqa: ARG002
        """Listen, with a shorter timeout for TLS handshakes than uvicorn's one minute."""
        loop = asyncio.get_running_loop()
        shared: dict[str, Any] = {}
        secured = self.config.ssl is not None
        sslproto.SSLProtocol.max_size = TLS_BUFFER
        more = {"greeted": self._listening.greeted, "bounds": self._bounds}
        listener = await loop.create_server(
            partial(Connection, self.config, self.server_state, shared, loop, **more),
            sock=self._listening,
            ssl=self.config.ssl,
            backlog=BACKLOG,
            ssl_handshake_timeout=HANDSHAKE if secured else None,
            ssl_shutdown_timeout=HANDSHAKE if secured else None,
        )
        self.servers = [listener]
        self.started = True
        self.up.set()

    async def main_loop(self) -> None:
        """Renew the Date header until the server ends."""
        while not await self.on_tick(0):
            with anyio.move_on_after(TICK):
                await self._down.wait()


class _Forward(logging.Handler):
    """Passes uvicorn's log records to our own log."""

    def emit(self, record: logging.LogRecord) -> None:
        """Log requests that failed by our own fault as errors; clients can cause all others."""
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, Exception) and not isinstance(error, ClientDisconnect):
            log.error("request failed", exc_info=error)
        else:
            log.debug(record.getMessage().strip())


def _config(app: ASGIApp, tls: ssl.SSLContext | None, bounds: Bounds) -> uvicorn.Config:
    told = logging.getLogger("uvicorn.error")
    told.handlers, told.propagate = [_Forward()], False

    def ready_made(_: uvicorn.Config, make: Callable[[], ssl.SSLContext]) -> ssl.SSLContext:
        return tls or make()

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
        backlog=BACKLOG,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=GRACE,
        h11_max_incomplete_event_size=HEAD,
        ssl_context_factory=ready_made if tls else None,
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
