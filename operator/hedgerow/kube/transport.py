"""Transport: HTTP/1.1 over TCP and TLS on the event loop itself, as an httpx transport.

httpcore scans its whole pool for each request, writes head and body apart, and wakes up once for
each TLS record: 1.3 ms of CPU for a PATCH, where this takes 0.4 (ADR 29). A small request is one
write here, and an answer that arrives at once is one wake-up. The parser is llhttp's.
"""

from __future__ import annotations

import asyncio
import zlib
from collections import deque
from select import POLLIN, poll
from socket import SOCK_STREAM
from typing import TYPE_CHECKING, cast

import anyio
import httptools
import httpx

from hedgerow.kube.wire import OverlongError, Reply

if TYPE_CHECKING:
    import socket
    import ssl
    from collections.abc import AsyncGenerator, Callable, Iterable, Iterator

    from hedgerow.kube.sockets import Option

READ_AHEAD = 256 * 1024
"""Bytes of a body that are held for a reader that is slower than the server."""
HEAD_LIMIT = 64 * 1024
"""Bytes of an answer's head."""
PIECE = 64 * 1024
"""Bytes of a request that are written at once; the permit is asked again before the next ones."""
SMALL = 8 * 1024
"""Bytes of a request that the kernel takes at once on a connection without unsent bytes."""
LAST = 1024
"""Bytes of a larger request that are held back until all others have left this process. Nobody
carries out a request without them, and the permit is asked right before."""
DRAINED = 0.002
"""Seconds between two looks at whether bytes have left this process."""
STEP = 64 * 1024
"""Bytes of a body that are handed out at once: whoever unpacks them knows how many there may be."""
EYEBALLS = 0.25
"""Seconds after which the server's next address is tried beside the first one (RFC 8305)."""
_FINAL = 200
"""Answers with a lower code only announce the real one (RFC 9110, 15.2)."""
_GZIP = 16 + zlib.MAX_WBITS
_BROKEN = (httptools.HttpParserError, httptools.HttpParserUpgrade)


class Transport(httpx.AsyncBaseTransport):
    """Connections to one server; `tls` is None for plain HTTP.

    At most `keep` idle connections are kept, each for `expiry` seconds. Of a request's extensions
    it respects `timeout` (`connect`, and `read`: the longest silence, both in seconds), the TLS
    name `sni_hostname`, and `permit`, a function that is called right before bytes leave and that
    raises if they must not.

    Errors are those of httpx. ConnectError and ConnectTimeout mean that nothing was sent. After
    every other one the request may have been carried out.
    """

    def __init__(
        self,
        url: httpx.URL,
        *,
        tls: ssl.SSLContext | None,
        keep: int,
        expiry: float,
        options: Iterable[Option] = (),
    ) -> None:
        self._url = url
        self._host = url.raw_host.decode("ascii")  # IDNA 2008, as in the Host header
        self._port = url.port or (443 if tls else 80)
        self._is_http = url.scheme in {"http", "https"} and bool(url.host)
        self._tls, self._keep, self._expiry = tls, keep, expiry
        self._options = tuple(options)
        self._idle = deque[Connection]()
        self._open = set[Connection]()
        self._closed = False
        if tls:
            tls.set_alpn_protocols(["http/1.1"])

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request; return the answer once its head has arrived. Raises httpx's errors."""
        timeout, extensions = request.extensions.get("timeout", {}), request.extensions
        return await self.exchange(
            encoded(
                request.method.encode("ascii"),
                request.url.raw_path,
                request.headers.raw,
                cast("Iterable[bytes]", request.stream),
            ),
            connect=timeout.get("connect"),
            read=timeout.get("read"),
            name=extensions.get("sni_hostname") or "",
            permit=extensions.get("permit"),
        )

    async def exchange(
        self,
        content: bytes,
        *,
        connect: float | None,
        read: float | None,
        name: str = "",
        permit: Callable[[], object] | None = None,
    ) -> httpx.Response:
        """Send what `encoded` returns; return the answer as `handle_async_request` does.

        A request of httpx's takes a fifth of the CPU of the exchange to build, which this spares.
        """
        connection = self._kept() or await self._connect(name or self._host, connect)
        try:
            await connection.send(content, permit, read)
        except BaseException:
            self.release(connection)
            raise
        body = _Body(self, connection)
        return httpx.Response(connection.status, headers=connection.headers, stream=body)

    async def answer(
        self,
        content: bytes,
        *,
        most: int,
        connect: float | None,
        read: float | None,
        name: str = "",
        permit: Callable[[], object] | None = None,
    ) -> Reply:
        """Send what `encoded` returns, and return the whole answer, unpacked.

        Raises as `exchange` does, and OverlongError if the body has more than `most` bytes. It
        makes no `httpx.Response`, which with its headers and streams takes a third of the CPU of an
        exchange.
        """
        connection = self._kept() or await self._connect(name or self._host, connect)
        try:
            await connection.send(content, permit, read)
            pieces, left = list[bytes](), most
            while piece := await connection.read():
                left -= len(piece)
                if left < 0:
                    raise OverlongError(connection.status)
                pieces.append(piece)
            reply = Reply(connection.status, connection.headers, b"".join(pieces))
        finally:
            self.release(connection)
        return _unpacked(reply, most)

    async def aclose(self) -> None:
        """Cut every connection."""
        self._closed = True
        for connection in tuple(self._open):
            connection.abort()
            await asyncio.wait([connection.gone])

    def release(self, connection: Connection) -> None:
        """Keep a connection whose exchange is over, if it may be used again; cut it otherwise."""
        if connection.rest() and len(self._idle) < self._keep and not self._closed:
            self._idle.append(connection)
        else:
            connection.abort()
        # The one used last is used again, so those of a busier time are at the other end.
        while self._idle and not self._idle[0].is_young(self._expiry):
            self._idle.popleft().abort()

    def forget(self, connection: Connection) -> None:
        """Take out a connection that is closed."""
        self._open.discard(connection)
        if connection in self._idle:
            self._idle.remove(connection)

    def _kept(self) -> Connection | None:
        """Return the idle connection that was used last, or None; cut those that are stale."""
        while self._idle:
            connection = self._idle.pop()
            if connection.is_fresh(self._expiry):
                return connection
            connection.abort()
        return None

    async def _connect(self, name: str, seconds: float | None) -> Connection:
        if not self._is_http:
            raise httpx.UnsupportedProtocol(f"{self._url} is no URL of an HTTP server")
        if self._closed:
            raise httpx.ConnectError("the transport is closed")
        try:
            with anyio.fail_after(seconds):
                connection = await self._opened()
                try:
                    connection.set_options(self._options)
                    if self._tls:
                        await connection.secure(self._tls, name)
                except BaseException:
                    connection.abort()
                    raise
        except TimeoutError as error:
            raise httpx.ConnectTimeout(f"no connection within {seconds} s") from error
        except (OSError, UnicodeError) as error:  # TLS errors and impossible names as well
            raise httpx.ConnectError(str(error)) from error
        if self._closed or connection.gone.done():
            connection.abort()
            raise httpx.ConnectError("the connection is closed")
        self._open.add(connection)
        return connection

    async def _opened(self) -> Connection:
        """Return a TCP connection. Raises OSError, UnicodeError."""
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(self._host, self._port, type=SOCK_STREAM)
        addresses = list(dict.fromkeys(address for *_, address in found))
        several = len(addresses) > 1
        # The race of addresses leaves its winner open if it is cancelled at its end.
        _, connection = await loop.create_connection(
            lambda: Connection(loop, self.forget),
            self._host if several else str(addresses[0][0]),
            self._port,
            happy_eyeballs_delay=EYEBALLS if several else None,
        )
        return connection


class Connection(asyncio.Protocol):
    """One connection, for one exchange at a time; `closed` is called once it is closed.

    The methods that asyncio and the parser call are among the public ones.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, closed: Callable[[Connection], object]
    ) -> None:
        self.gone: asyncio.Future[None] = loop.create_future()
        self.status = 0
        self.headers: list[tuple[bytes, bytes]] = []
        self._loop, self._when_closed = loop, closed
        self._poll = poll()
        self._parser = httptools.HttpResponseParser(self)
        self._waiter: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._idle_since = loop.time()
        self._busy = False
        self._begin(None)

    def _begin(self, read: float | None) -> None:
        """Forget the last exchange; `read` is the longest silence of this one, in seconds."""
        self.status, self.headers = 0, []
        self._head = self._done = self._surplus = self._keep = False
        self._error: Exception | None = None
        self._pieces: list[bytes] = []
        self._held = self._beside = 0
        self._paused = False
        self._read = read
        self._silent_from = self._loop.time()

    # --- an exchange ----------------------------------------------------------------------------

    async def send(
        self, content: bytes, permit: Callable[[], object] | None, read: float | None
    ) -> None:
        """Send a request, and wait for the head of its answer. Raises httpx's errors."""
        self._begin(read)
        for piece in _pieces(content):
            await self._drained()
            if self._head:  # the server has answered before all was sent, and reads no more
                self._surplus = True
                break
            if permit:
                permit()
            if not self._busy and self._transport.is_closing():
                raise httpx.ConnectError("the server closed the connection")
            self._busy = True
            self._transport.write(piece)
            self._watch_silence()
        while not self._head:
            await self._progress()

    async def _drained(self) -> None:
        """Wait until all bytes have left this process, or an answer has begun. Raises as `send`.

        asyncio tells of the TLS layer's own buffer only.
        """
        while self._raw.get_write_buffer_size() and not self._head:
            self._check()
            await asyncio.sleep(DRAINED)

    async def read(self) -> bytes:
        """Return what has arrived of the body; empty at its end. Raises httpx's errors."""
        while not self._pieces:
            if self._done:
                return b""
            await self._progress()
        pieces, self._pieces = self._pieces, []
        self._held = 0
        if self._paused and not self._transport.is_closing():
            self._paused = False
            self._silent_from = self._loop.time()
            self._transport.resume_reading()
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def rest(self) -> bool:
        """End the exchange; return whether the connection may be used for another one."""
        clean = self._done and self._keep and not self._surplus and not self._error
        unused = not self._busy
        self._busy, self._read, self._pieces = False, None, []
        self._idle_since = self._loop.time()
        return (clean or unused) and not self._transport.is_closing()

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

    def set_options(self, options: Iterable[Option]) -> None:
        """Set socket options. Raises OSError."""
        connected = cast("socket.socket", self._transport.get_extra_info("socket"))
        for option in options:
            connected.setsockopt(*option)

    async def secure(self, tls: ssl.SSLContext, name: str) -> None:
        """Begin TLS with the server of this name. Raises OSError."""
        secured = await self._loop.start_tls(self._raw, self, tls, server_hostname=name)
        if secured is None:
            raise ConnectionError("the server closed the connection")
        self._transport = secured

    async def _progress(self) -> None:
        """Wait until something has happened; raise the error if it is one."""
        self._check()
        self._waiter = self._loop.create_future()
        await self._waiter

    def _check(self) -> None:
        """Raise the error of this exchange, if there is one or nothing can come any more."""
        if self._error:
            raise self._error
        if self.gone.done():
            raise httpx.RemoteProtocolError("the connection is closed")

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter and not waiter.done():
            waiter.set_result(None)

    def _fail(self, error: Exception) -> None:
        self._error = self._error or error
        self.abort()
        self._wake()

    def _watch_silence(self) -> None:
        """Have a timer look for silence; one that is set goes on, whatever has arrived since."""
        if self._read is None:
            return
        at = self._silent_from + self._read
        if self._timer and self._timer.when() > at:
            self._timer.cancel()
            self._timer = None
        self._timer = self._timer or self._loop.call_at(at, self._check_silence)

    def _check_silence(self) -> None:
        self._timer = None
        if not self._busy or self._done or self._read is None:
            return
        if self._paused:  # the reader is slow, not the server
            self._silent_from = self._loop.time()
        if self._loop.time() >= self._silent_from + self._read:
            self._fail(httpx.ReadTimeout(f"no byte within {self._read} s"))
        else:
            self._watch_silence()

    # --- what asyncio calls ---------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take in the connection."""
        self._raw = self._transport = cast("asyncio.Transport", transport)
        self._poll.register(transport.get_extra_info("socket").fileno(), POLLIN)

    def data_received(self, data: bytes) -> None:
        """Take in bytes of an answer."""
        if not self._busy or self._done:
            self.abort()  # nobody asked for it
            self._surplus = True
            return
        self._silent_from = self._loop.time()
        self._beside += len(data)
        try:
            self._parser.feed_data(data)
        except _BROKEN as error:
            self._fail(httpx.RemoteProtocolError(f"no HTTP/1.1: {error}"))
            return
        if not self._done and self._beside > HEAD_LIMIT:
            self._fail(httpx.RemoteProtocolError("the answer's head, or its trailers, have no end"))
        elif self._held > READ_AHEAD and not self._paused and not self._done:
            self._paused = True
            self._transport.pause_reading()

    def eof_received(self) -> None:
        """Do nothing: asyncio closes the connection."""

    def connection_lost(self, exc: Exception | None) -> None:
        """Take in that the connection is closed; what is missing of an answer is an error."""
        if self._timer:
            self._timer.cancel()
            self._timer = None
        if self._busy and not self._done and not self._error:
            if exc is not None:
                self._error = httpx.ReadError(str(exc) or type(exc).__name__)
            elif not self._head:
                self._error = httpx.RemoteProtocolError("the server closed without an answer")
            elif self._is_until_closed():
                self._done = True
            else:
                self._error = httpx.RemoteProtocolError("the server cut the answer")
        if not self.gone.done():
            self.gone.set_result(None)
        self._when_closed(self)
        self._wake()

    def _is_until_closed(self) -> bool:
        """Return whether the body ends with the connection (RFC 9112, 6.3)."""
        names = {name.lower() for name, _ in self.headers}
        return not names & {b"content-length", b"transfer-encoding"}

    # --- what the parser calls ------------------------------------------------------------------

    def on_message_begin(self) -> None:
        """Take in that another answer begins."""
        self._surplus = self._surplus or self._done

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take in a header; trailers are left out."""
        if not (self._head or self._surplus):
            self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        """Take in that the head is complete."""
        if self._surplus:
            return
        self.status = self._parser.get_status_code()
        self._head = self.status >= _FINAL
        if self._head:
            self._wake()

    def on_body(self, data: bytes) -> None:
        """Take in a piece of the body."""
        if self._surplus:
            return
        self._beside = 0
        self._pieces.append(data)
        self._held += len(data)
        self._wake()

    def on_message_complete(self) -> None:
        """Take in that the answer is complete, or only an announcement of it."""
        if not self._head:
            self.headers = []
            return
        if self._surplus:
            return
        self._keep = self._parser.should_keep_alive()
        self._done = True
        self._wake()


class _Body(httpx.AsyncByteStream):
    """The body of an answer as it arrives; the connection is given back at its end."""

    def __init__(self, transport: Transport, connection: Connection) -> None:
        self._transport = transport
        self._connection: Connection | None = connection

    async def __aiter__(self) -> AsyncGenerator[bytes]:
        """Yield the pieces. Raises httpx's errors."""
        connection = self._connection
        while connection and (data := await connection.read()):
            for start in range(0, len(data), STEP):
                yield data[start : start + STEP]

    async def aclose(self) -> None:
        """Give the connection back; if the body has not been read to its end, cut it."""
        connection, self._connection = self._connection, None
        if connection:
            self._transport.release(connection)


def _unpacked(reply: Reply, most: int) -> Reply:
    """Return an answer with its body unpacked. Raises OverlongError, httpx.DecodingError."""
    told = ",".join(reply.header(b"content-encoding")).split(",")
    packing = [name for one in told if (name := one.strip().lower()) not in ("", "identity")]
    if not (packing and reply.content):
        return reply
    if packing not in (["gzip"], ["x-gzip"]):
        raise httpx.DecodingError(f"an answer in {', '.join(packing)}, which was not asked for")
    inflater = zlib.decompressobj(_GZIP)
    try:
        content = inflater.decompress(reply.content, most + 1)
    except zlib.error as error:
        raise httpx.DecodingError(str(error)) from error
    if len(content) > most:
        raise OverlongError(reply.code)
    if not inflater.eof:
        raise httpx.DecodingError("the packed body has no end")
    return reply._replace(content=content)


def _pieces(content: bytes) -> Iterator[bytes]:
    """Yield the pieces in which a request is written; the last one of a larger request is small."""
    end = len(content) - LAST if len(content) > SMALL else 0
    for start in range(0, end, PIECE):
        yield content[start : min(end, start + PIECE)]
    yield content[end:]


def encoded(
    method: bytes,
    target: bytes,
    headers: Iterable[tuple[bytes, bytes]],
    body: Iterable[bytes],
) -> bytes:
    """Return the bytes of a request whose content is at hand, head and body in one.

    Raises httpx.LocalProtocolError for a line break in a header.
    """
    lines = [b"%s %s HTTP/1.1" % (method, target)]
    lines += [name + b": " + value for name, value in headers]
    head = b"\r\n".join(lines)
    if {head.count(b"\r"), head.count(b"\n")} != {len(lines) - 1}:
        raise httpx.LocalProtocolError("a header has a line break")
    return b"".join((head, b"\r\n\r\n", *body))
