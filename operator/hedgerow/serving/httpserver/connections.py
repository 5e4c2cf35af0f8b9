"""Connections: how many clients are accepted, and when an idle one is cut.

Every connection takes tens of kilobytes, whoever opens it. So their number is bounded at each stage
(handshake, open, closing), and once a connection is lost nothing may refer to it any more: the
garbage collector, which would find cycles, runs too rarely to keep up with a flood.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import sys
from asyncio import sslproto
from collections import deque
from contextlib import suppress
from itertools import takewhile
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
    from hedgerow.serving.httpserver.limits import Bounds


CHECK_INTERVAL = 10.0
"""Seconds between two checks: a client must send a request's head, or read an answer, in time."""


HEAD = 32 * 1024
"""The most bytes of a request's line and headers; a bearer token has a few thousand."""
EMPTY = (b"", b"\r")
"""What ends a head, without its line feed; a line of spaces continues the header above it."""
MOST_LINES = 100
"""The most lines of a request's head; an API server, a scraper and a probe send a dozen."""
MOST_WORDS = 500
"""The most spaces, tabs and commas of a head; a client sends some dozens."""
LONGEST_TARGET = 2048
"""The most bytes of a path with its query."""


class RequestParser(h11.Connection):
    """The requests of one connection, without those that would hold the event loop.

    h11 reads a head line by line and word by word, and a body chunk by chunk, in some microseconds
    each: a third of a second for what one read brings of chunks of one byte, or for the heads of
    200 clients full of commas. Whoever knows its body sends the length. Escapes in a path or query
    take as long.
    """

    def next_event(self) -> type[h11.NEED_DATA | h11.PAUSED] | h11.Event:
        """Return what a client sent next; raises RemoteProtocolError."""
        if self.their_state is h11.IDLE:
            lines = self.trailing_data[0].split(b"\n", MOST_LINES)
            head = list(takewhile(lambda line: line not in EMPTY, lines))
            if len(head) > MOST_LINES:
                raise h11.RemoteProtocolError("the head has too many lines")
            if sum(line.count(sign) for line in head for sign in (b" ", b"\t", b",")) > MOST_WORDS:
                raise h11.RemoteProtocolError("the head has too many words")
        event = super().next_event()
        if isinstance(event, h11.Request):
            if len(event.target) > LONGEST_TARGET:
                raise h11.RemoteProtocolError("the path is too long")
            if b"transfer-encoding" in dict(event.headers):
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

    def __init__(self, *arguments: Any, bounds: Bounds, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.conn = RequestParser(h11.SERVER, HEAD)
        self._bounds = bounds

    @property
    def idle(self) -> bool:
        """Whether no complete request is waiting for its answer."""
        request = cast("RequestResponseCycle | None", self.cycle)
        return request is None or request.response_complete or request.more_body

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept a client; if there are too many, cut an idle one.

        Otherwise a client that opens many connections would keep all others out. If one address has
        too many, one of its own connections is cut.
        """
        super().connection_made(transport)
        self.since = self.loop.time()
        if not self._make_room():
            self.cut()
            return
        self._look = self.loop.call_later(CHECK_INTERVAL, self._check)

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

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP. h11 raises an error that its own frame refers to."""
        super().send_400_response(msg)
        if error := sys.exc_info()[1]:
            error.__traceback__ = None

    def _make_room(self) -> bool:
        """Cut the connection that is idle for longest; return False if all are being served."""
        others = cast("set[Connection]", self.connections - {self})
        own = {one for one in others if one.address == self.address}
        if len(own) >= self._bounds.of_one_address:
            return _cut_idle(own)
        return len(others) < self._bounds.connections or _cut_idle(others)

    def cut(self) -> None:
        """Abort the connection, and do not count it any more: it is lost a moment later."""
        self.connections.discard(self)
        self.transport.abort()

    @property
    def address(self) -> str:
        """The address that the client comes from, without its port."""
        return self.client[0] if self.client else ""

    def _check(self) -> None:
        request = cast("RequestResponseCycle | None", self.cycle)
        answered = request is None or request.response_complete
        # TLS answers a client that asks for new keys; one that does not read that is not kept.
        unread = self.transport.get_write_buffer_size() > 0
        kept_alive = self.timeout_keep_alive_task is not None and not unread
        before, self._seen = self._seen, request
        if answered and not kept_alive and request is before:
            self.transport.abort()
            return
        self._look = self.loop.call_later(CHECK_INTERVAL, self._check)


def _cut_idle(connections: set[Connection]) -> bool:
    """Cut the connection that is idle for longest; return False if all are being served."""
    idle = [one for one in connections if one.idle]
    if idle:
        min(idle, key=lambda one: one.since).cut()
    return bool(idle)


HANDSHAKE = 5
"""Seconds for a TLS handshake."""
MOST_SILENT = 200
"""The most clients of one server during a TLS handshake; for one more, the oldest is cut.

Each takes about forty kilobytes, even if it never sends a byte.
"""
TLS_BUFFER = 1024
"""Bytes of asyncio's buffer for each TLS connection, which are all that one turn of the event loop
reads of it. OpenSSL derives new keys for every 27 of them if a client asks for that (a KeyUpdate):
0.6 ms for this buffer, 150 ms for asyncio's default of 256 KiB. It costs 10 ms for a review of
1.5 MB, and nothing for one of 10 kB."""


class TlsProtocol(sslproto.SSLProtocol):
    """asyncio's TLS with a buffer of our size: only a subclass can have one of its own."""

    max_size = TLS_BUFFER


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
                await _connect(client, tls, made())
            except Exception as error:  # noqa: BLE001 - whatever a client sends ends no other one
                # One of its frames has the future that has this error: a cycle (CPython 109534).
                error.__traceback__ = None
            finally:
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


async def _connect(client: socket.socket, tls: ssl.SSLContext | None, made: Connection) -> None:
    """Give a connection its client, after the handshake if there is TLS."""
    loop = asyncio.get_running_loop()
    if tls is None:
        await loop.connect_accepted_socket(lambda: made, client)
        return
    shaken = loop.create_future()
    protocol = TlsProtocol(
        loop, made, tls, shaken, server_side=True, ssl_handshake_timeout=HANDSHAKE
    )
    transport, _ = await loop.connect_accepted_socket(lambda: protocol, client)
    try:
        await shaken
    except BaseException:
        transport.abort()
        raise


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
    found = await anyio.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    family, *_, place = found[0]
    return family, str(place[0])
