"""Pool: the connections of ours to one server, each for one exchange at a time.

httpcore scans its whole pool for each request, writes head and body apart, and wakes up once for
each TLS record: 1.3 ms of CPU for a PATCH, where this takes 0.4 (ADR 0012).
"""

from __future__ import annotations

import asyncio
from collections import deque
from socket import SOCK_STREAM
from typing import TYPE_CHECKING

import anyio
import httpx

from hedgerow.kube.connection import HttpConnection
from hedgerow.kube.transport import CONNECT

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterable

    from hedgerow.kube.sockets import SocketOption
    from hedgerow.kube.transport import HttpRequest

EYEBALLS = 0.25
"""Seconds after which the server's next address is tried beside the first one (RFC 8305)."""


class Pool:
    """Our own transport; `tls` is None for plain HTTP.

    At most `keep` idle connections are kept, each for `expiry` seconds.
    """

    def __init__(
        self,
        url: httpx.URL,
        *,
        tls: ssl.SSLContext | None,
        keep: int,
        expiry: float,
        options: Iterable[SocketOption] = (),
    ) -> None:
        self._url = url
        self._host = url.raw_host.decode("ascii")  # IDNA 2008, as in the Host header
        self._port = url.port or (443 if tls else 80)
        self._is_http = url.scheme in {"http", "https"} and bool(url.host)
        self._tls, self._expiry = tls, expiry
        self._options = tuple(options)
        self.open = set[HttpConnection]()
        self.idle = deque[HttpConnection]()
        """The open connections without an exchange; the last one was used most recently."""
        self._closed = False
        self.concurrency = keep
        if tls:
            tls.set_alpn_protocols(["http/1.1"])

    async def send(self, request: HttpRequest) -> HttpConnection:
        """Send a request; return its answer once the head has arrived. Raises httpx's errors."""
        content = encoded(request)
        connection = self._kept() or await self._connect(request.server_name or self._host)
        try:
            await connection.send(content, request.permit, request.read)
        except BaseException:
            self.release(connection)
            raise
        return connection

    async def aclose(self) -> None:
        """Cut every connection."""
        self._closed = True
        for connection in tuple(self.open):
            connection.abort()
            await asyncio.wait([connection.gone])

    def release(self, connection: HttpConnection) -> None:
        """Keep a connection whose exchange is over, if it may be used again; cut it otherwise."""
        if connection.rest() and len(self.idle) < self.concurrency and not self._closed:
            self.idle.append(connection)
        else:
            connection.abort()
        # The one used last is used again, so those of a busier time are at the other end.
        while self.idle and not self.idle[0].is_young(self._expiry):
            self.idle.popleft().abort()

    def forget_connection(self, connection: HttpConnection) -> None:
        """Take out a connection that is closed."""
        self.open.discard(connection)
        if connection in self.idle:
            self.idle.remove(connection)

    def _kept(self) -> HttpConnection | None:
        """Return the idle connection that was used last, or None; cut those that are stale."""
        while self.idle:
            connection = self.idle.pop()
            if connection.is_fresh(self._expiry):
                return connection
            connection.abort()
        return None

    async def _connect(self, name: str) -> HttpConnection:
        if not self._is_http:
            raise httpx.UnsupportedProtocol(f"{self._url} is no URL of an HTTP server")
        if self._closed:
            raise httpx.ConnectError("the transport is closed")
        try:
            with anyio.fail_after(CONNECT):
                connection = await self._opened()
                try:
                    connection.set_options(self._options)
                    if self._tls:
                        await connection.secure(self._tls, name)
                except BaseException:
                    connection.abort()
                    raise
        except TimeoutError as error:
            raise httpx.ConnectTimeout(f"no connection within {CONNECT} s") from error
        except (OSError, UnicodeError) as error:  # TLS errors and impossible names as well
            raise httpx.ConnectError(str(error)) from error
        if self._closed or connection.gone.done():
            connection.abort()
            raise httpx.ConnectError("the connection is closed")
        self.open.add(connection)
        return connection

    async def _opened(self) -> HttpConnection:
        """Return a TCP connection. Raises OSError, UnicodeError."""
        loop = asyncio.get_running_loop()
        infos = await loop.getaddrinfo(self._host, self._port, type=SOCK_STREAM)
        addresses = list(dict.fromkeys(address for *_, address in infos))
        several = len(addresses) > 1
        # The race of addresses leaves its winner open if it is cancelled at its end.
        _, connection = await loop.create_connection(
            lambda: HttpConnection(loop, self),
            self._host if several else str(addresses[0][0]),
            self._port,
            happy_eyeballs_delay=EYEBALLS if several else None,
        )
        return connection


def encoded(request: HttpRequest) -> bytes:
    """Return the bytes of a request, head and body in one.

    Raises httpx.LocalProtocolError for a line break in a header.
    """
    lines = [b"%s %s HTTP/1.1" % (request.method.encode("ascii"), request.target)]
    lines += [name + b": " + value for name, value in request.headers]
    head = b"\r\n".join(lines)
    if {head.count(b"\r"), head.count(b"\n")} != {len(lines) - 1}:
        raise httpx.LocalProtocolError("a header has a line break")
    return b"".join((head, b"\r\n\r\n", request.content))
