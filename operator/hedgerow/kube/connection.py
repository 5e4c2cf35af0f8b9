"""Connection: HTTP/1.1 over TCP and TLS on the event loop itself, for one exchange at a time.

A small request is one write, and an answer that arrives at once is one wake-up. The parser is
llhttp's.
"""

from __future__ import annotations

import asyncio
from asyncio import sslproto
from select import POLLIN, poll
from typing import TYPE_CHECKING, cast

import httptools
import httpx

if TYPE_CHECKING:
    import socket
    import ssl
    from collections.abc import Callable, Iterable

    from hedgerow.kube.pool import Pool
    from hedgerow.kube.sockets import SocketOption

READ_AHEAD = 256 * 1024
"""Bytes of a body that are held for a reader that is slower than the server."""
SMALL = 8 * 1024
"""Bytes of a request that the kernel takes at once on a connection without unsent bytes."""
LAST = 1024
"""Bytes of a larger request that are held back until all others have left this process. Nobody
carries out a request without them, and the permit is asked again right before."""
DRAINED = 0.002
"""Seconds between two looks at whether bytes have left this process."""
HEAD_LIMIT = 64 * 1024
"""Bytes of an answer's head."""
RECORD = 16 * 1024
"""Bytes of a TLS record at most (RFC 8446, 5.1), and so of what one read of TLS returns."""
# asyncio makes a buffer of 256 KiB for each read: with 32 connections, 14 MiB of resident memory.
# start_tls takes no class of one's own; the connections of our servers have one.
sslproto.SSLProtocol.max_size = RECORD
_FINAL = 200
"""Answers with a lower code only announce the real one (RFC 9110, 15.2)."""
_BROKEN = (httptools.HttpParserError, httptools.HttpParserUpgrade)


class HttpConnection(asyncio.Protocol):
    """One connection of a pool, and the answer of the request that was sent last.

    The methods that asyncio calls are among the public ones.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, pool: Pool) -> None:
        self.gone: asyncio.Future[None] = loop.create_future()
        self._loop, self._pool = loop, pool
        self._poll = poll()
        self._response = ResponseParser()
        self._error: Exception | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._idle_since = loop.time()
        self._busy = self._paused = False
        self._silence = 0.0

    @property
    def code(self) -> int:
        """The status code of the answer."""
        return self._response.code

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        """The headers of the answer."""
        return self._response.headers

    @property
    def raw_socket(self) -> socket.socket:
        """The socket below."""
        return cast("socket.socket", self._transport.get_extra_info("socket"))

    @property
    def unsent(self) -> int:
        """How many bytes have not left this process yet."""
        return self._raw.get_write_buffer_size()

    async def send(self, content: bytes, permit: Callable[[], object] | None, read: float) -> None:
        """Send a request, and wait for the head of its answer. Raises httpx's errors.

        `permit` is called right before bytes leave. `read` is the longest silence in seconds.
        """
        self._response.reset()
        self._error, self._paused, self._silence = None, False, read
        end = len(content) - LAST if len(content) > SMALL else 0
        for piece in (content[:end], content[end:]) if end else (content,):
            await self._drained()
            if self._response.has_head:  # the server has answered before all was sent: no more
                self._response.has_surplus = True
                break
            if permit:
                permit()
            if not self._busy and self._transport.is_closing():
                raise httpx.ConnectError("the server closed the connection")
            self._busy = True
            self._transport.write(piece)
        while not self._response.has_head:
            await self._progress()

    async def _drained(self) -> None:
        """Wait until all bytes have left this process, or an answer has begun. Raises as `send`.

        asyncio tells of the TLS layer's own buffer only.
        """
        latest = self._loop.time() + self._silence
        while self.unsent and not self._response.has_head:
            if self._loop.time() > latest:
                self._be_silent()
            self._check()
            await asyncio.sleep(DRAINED)

    async def read_piece(self) -> bytes:
        """Return the next piece of the body; empty at its end. Raises httpx's errors."""
        response = self._response
        while not response.held:
            if response.is_complete:
                return b""
            await self._progress()
        if self._paused and not self._transport.is_closing():
            self._paused = False
            self._transport.resume_reading()
        return response.take_body()

    async def aclose(self) -> None:
        """Give the connection back to the pool."""
        self._pool.release(self)

    def rest(self) -> bool:
        """End the exchange; return whether the connection may be used for another one."""
        response = self._response
        clean = response.is_complete and response.keeps_alive and not response.has_surplus
        usable = (clean and not self._error) or not self._busy
        self._busy = False
        self._idle_since = self._loop.time()
        response.take_body()
        return usable and not self._transport.is_closing()

    def is_fresh(self, expiry: float) -> bool:
        """Return whether an idle connection is still good.

        Bytes that wait to be read are no answer of ours: the server has closed it, or is broken.
        """
        usable = self.is_young(expiry) and not self._transport.is_closing()
        return usable and not self._poll.poll(0)

    def is_young(self, expiry: float) -> bool:
        """Return whether a connection has been idle for less than `expiry` seconds."""
        return self._loop.time() - self._idle_since < expiry

    def abort(self) -> None:
        """Close at once; bytes that have not been sent yet never are."""
        self._transport.abort()

    def set_options(self, options: Iterable[SocketOption]) -> None:
        """Set socket options. Raises OSError."""
        for option in options:
            self.raw_socket.setsockopt(*option)

    async def secure(self, tls: ssl.SSLContext, name: str) -> None:
        """Begin TLS with the server of this name. Raises OSError."""
        secured = await self._loop.start_tls(self._raw, self, tls, server_hostname=name)
        if secured is None:
            raise ConnectionError("the server closed the connection")
        self._transport = secured

    async def _progress(self) -> None:
        """Wait until bytes or the end have come; raise the error if there is one."""
        self._check()
        self._waiter = self._loop.create_future()
        timer = self._loop.call_later(self._silence, self._be_silent)
        try:
            await self._waiter
        finally:
            timer.cancel()

    def _check(self) -> None:
        """Raise the error of this exchange, if there is one."""
        if self._error:
            raise self._error

    def _be_silent(self) -> None:
        self._fail(httpx.ReadTimeout(f"no byte within {self._silence} s"))

    def _fail(self, error: Exception) -> None:
        self._error = self._error or error
        self.abort()
        self._wake()

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter and not waiter.done():
            waiter.set_result(None)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take in the connection."""
        self._raw = self._transport = cast("asyncio.Transport", transport)
        self._poll.register(transport.get_extra_info("socket").fileno(), POLLIN)

    def data_received(self, data: bytes) -> None:
        """Take in bytes of an answer."""
        response = self._response
        if not self._busy or response.is_complete:
            response.has_surplus = True  # nobody asked for it
            self.abort()
            return
        try:
            response.feed(data)
        except httpx.RemoteProtocolError as error:
            self._fail(error.with_traceback(None))  # its frames refer to this connection
            return
        if response.held > READ_AHEAD and not self._paused and not response.is_complete:
            self._paused = True
            self._transport.pause_reading()
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        """Take in that the connection is closed; an answer that is incomplete is an error."""
        if self._busy and not self._error:
            try:
                if exc is not None and not self._response.is_complete:
                    raise httpx.ReadError(str(exc) or type(exc).__name__)
                self._response.close()
            except httpx.TransportError as error:
                self._error = error.with_traceback(None)
        self.gone.set_result(None)
        self._pool.forget_connection(self)
        self._wake()


class ResponseParser:
    """The answer that is on its way; the parser calls the methods whose names begin with `on_`."""

    def __init__(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self.reset()

    def reset(self) -> None:
        """Forget the last answer."""
        self.code = 0
        self.headers: list[tuple[bytes, bytes]] = []
        self.has_head = self.is_complete = self.keeps_alive = False
        self.has_surplus = False
        """Whether bytes have come that nobody asked for."""
        self.held = 0
        """Bytes of the body that were not taken yet."""
        self._pieces: list[bytes] = []
        self._beside = 0

    def feed(self, data: bytes) -> None:
        """Take in bytes of the answer. Raises httpx.RemoteProtocolError."""
        self._beside += len(data)
        try:
            self._parser.feed_data(data)
        except _BROKEN as error:
            raise httpx.RemoteProtocolError(f"no HTTP/1.1: {error}") from error
        if not self.is_complete and self._beside > HEAD_LIMIT:
            raise httpx.RemoteProtocolError("the answer's head, or its trailers, have no end")

    def take_body(self) -> bytes:
        """Return the bytes of the body that have arrived since the last call."""
        pieces, self._pieces, self.held = self._pieces, [], 0
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def close(self) -> None:
        """Take in the end of the connection. Raises httpx.RemoteProtocolError if it is too soon."""
        if self.is_complete:
            return
        if not self.has_head:
            raise httpx.RemoteProtocolError("the server closed without an answer")
        names = {name.lower() for name, _ in self.headers}
        if names & {b"content-length", b"transfer-encoding"}:
            raise httpx.RemoteProtocolError("the server cut the answer")
        self.is_complete = True  # the body ends with the connection (RFC 9112, 6.3)

    def on_message_begin(self) -> None:
        """Take in that another answer begins."""
        self.has_surplus = self.has_surplus or self.is_complete

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take in a header; trailers are left out."""
        if not (self.has_head or self.has_surplus):
            self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        """Take in that the head is complete."""
        if not self.has_surplus:
            self.code = self._parser.get_status_code()
            self.has_head = self.code >= _FINAL

    def on_body(self, data: bytes) -> None:
        """Take in a piece of the body."""
        if not self.has_surplus:
            self._beside = 0
            self._pieces.append(data)
            self.held += len(data)

    def on_message_complete(self) -> None:
        """Take in that the answer is complete, or only an announcement of it."""
        if not self.has_head:
            self.headers = []
        elif not self.has_surplus:
            self.keeps_alive = self._parser.should_keep_alive()
            self.is_complete = True
