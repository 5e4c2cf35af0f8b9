"""Connections: how many clients are accepted, and when an idle one is cut.

A TLS connection takes some 300 kB, whoever opens it. So their number is bounded at each stage
(handshake, open, closing), and once a connection is lost nothing may refer to it any more: the
garbage collector, which would find cycles, runs too rarely to keep up with a flood.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

import anyio
import anyio.lowlevel
import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from hedgerow.errors import OneLineError

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from uvicorn.protocols.http.h11_impl import RequestResponseCycle

    from hedgerow.serving.httpserver.addresses import Address

HEAD = 32 * 1024
"""The most bytes of a request's line and headers; a bearer token has a few thousand."""
CHECK_INTERVAL = 10.0
"""Seconds between two checks: a client must send a request's head, or read an answer, in time."""


class RequestParser(h11.Connection):
    """The requests of one connection, of which those without a Content-Length are refused.

    h11 reads a body chunk by chunk, in some microseconds each: 190 clients that send chunks of one
    byte would hold the event loop for a minute. Whoever knows its body sends the length.
    """

    def next_event(self) -> type[h11.NEED_DATA | h11.PAUSED] | h11.Event:
        """Return the next event of a client; raises RemoteProtocolError."""
        try:
            event = super().next_event()
        except h11.RemoteProtocolError as error:
            raise error.with_traceback(None)  # noqa: B904 - its own frame refers to it: a cycle
        if isinstance(event, h11.Request) and b"transfer-encoding" in dict(event.headers):
            raise h11.RemoteProtocolError("the body has no Content-Length")
        return event


class Connection(H11Protocol):
    """uvicorn's HTTP/1.1, which without this waits for ever for the head of a request.

    A check every `CHECK_INTERVAL` cuts a connection that has not sent a whole head, or not read a
    whole answer, since the last check. uvicorn itself closes idle connections between requests.
    """

    _look: asyncio.TimerHandle | None = None
    _seen: RequestResponseCycle | None = None
    since = 0.0

    def __init__(self, *arguments: Any, most: int, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.conn = RequestParser(h11.SERVER, HEAD)
        self._most = most

    @property
    def idle(self) -> bool:
        """Whether no complete request is waiting for its answer."""
        request = cast("RequestResponseCycle | None", self.cycle)
        return request is None or request.response_complete or request.more_body

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept a client; if there are too many, cut an idle one.

        Otherwise a client that opens many connections would keep all others out.
        """
        super().connection_made(transport)
        self.since = self.loop.time()
        if not self._make_room():
            self.cut()
            return
        self._look = self.loop.call_later(CHECK_INTERVAL, self.check)

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        self.since = self.loop.time()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - as if without error
        """Let go of a client that is gone.

        After an error uvicorn would keep the transport until its timer for idle connections ends.
        """
        if self._look is not None:
            self._look.cancel()
        super().connection_lost(None)

    def _make_room(self) -> bool:
        """Cut the connection that is idle for longest; return False if all are being served."""
        others = cast("set[Connection]", self.connections - {self})
        if len(others) < self._most:
            return True
        idle = [connection for connection in others if connection.idle]
        if idle:
            min(idle, key=lambda connection: connection.since).cut()
        return bool(idle)

    def cut(self) -> None:
        """Abort the connection, and do not count it any more: it is lost a moment later."""
        self.connections.discard(self)
        self.transport.abort()

    def check(self) -> None:
        """Cut the connection if it has done nothing since the last check; see it again later."""
        request = cast("RequestResponseCycle | None", self.cycle)
        answered = request is None or request.response_complete
        unread = self.transport.get_write_buffer_size() > 0
        kept_alive = self.timeout_keep_alive_task is not None and not unread
        before, self._seen = self._seen, request
        if answered and not kept_alive and request is before:
            self.transport.abort()
            return
        self._look = self.loop.call_later(CHECK_INTERVAL, self.check)


HANDSHAKE = 5
"""Seconds for a TLS handshake."""
MOST_SILENT = 50
"""The most clients of one server during a TLS handshake; for one more, the oldest is cut.

Each takes 300 kB, even if it never sends a byte.
"""
RETRY = 0.1
"""Seconds until the next attempt if no client can be accepted, as with too many open files."""


async def accept(
    listening: socket.socket, tls: ssl.SSLContext | None, made: Callable[[], Connection]
) -> None:
    """Accept clients until cancelled; `made` returns the protocol of each one."""
    loop, silent = asyncio.get_running_loop(), deque[anyio.CancelScope]()

    async def greet(client: socket.socket) -> None:
        with anyio.CancelScope() as scope:
            silent.append(scope)
            try:
                await loop.connect_accepted_socket(
                    made, client, ssl=tls, ssl_handshake_timeout=tls and HANDSHAKE
                )
            except Exception as error:  # noqa: BLE001 - whatever a client sends ends no other one
                # One of its frames has the future that has this error (CPython 109534): a cycle
                # with 300 kB of TLS, of which a flood makes more than the collector finds in time.
                error.__traceback__ = None
        with suppress(ValueError):
            silent.remove(scope)

    async with anyio.create_task_group() as tasks:
        while True:
            await anyio.lowlevel.checkpoint()  # or a flood would hold the event loop
            try:
                client, _ = await loop.sock_accept(listening)
            except OSError:
                await anyio.sleep(RETRY)
                continue
            if len(silent) >= MOST_SILENT:
                silent.popleft().cancel()
            tasks.start_soon(greet, client)


BACKLOG = 128


class ListenError(OneLineError):
    """A server cannot listen at an address; the text says why in one line."""


class AddressInUseError(ListenError):
    """Another program already listens there."""


async def listen(address: Address) -> socket.socket:
    """Return a listening socket; without a host, on both IPv4 and IPv6. Raises ListenError."""
    try:
        family, host = await _place(address)
        both = family == socket.AF_INET6 and socket.has_dualstack_ipv6()
        opened = socket.create_server(
            (host, address.port), family=family, backlog=BACKLOG, dualstack_ipv6=both
        )
    except socket.gaierror as error:
        raise ListenError(f"cannot listen on {address}: {error.strerror}") from error
    except OSError as error:
        said = os.strerror(error.errno) if error.errno else str(error)
        kind = AddressInUseError if error.errno == errno.EADDRINUSE else ListenError
        raise kind(f"cannot listen on {address}: {said}") from error
    # Head and body of an answer are two writes. Without this, which accepted sockets inherit, the
    # second one waits for the client's delayed acknowledgement of the first: 40 ms.
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    opened.setblocking(False)
    return opened


async def _place(address: Address) -> tuple[socket.AddressFamily, str]:
    if not address.host:
        return (socket.AF_INET6, "::") if socket.has_dualstack_ipv6() else (socket.AF_INET, "")
    infos = await anyio.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    family, *_, place = infos[0]
    return family, str(place[0])
