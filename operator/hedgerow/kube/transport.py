"""Transport: carries a request to one server, and its answer back piece by piece."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import httpx
from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable, Iterator

    from hedgerow.kube.connection import HttpConnection
    from hedgerow.kube.fallback import HttpxExchange, HttpxTransport
    from hedgerow.kube.pool import Pool

    Transport = Pool | HttpxTransport
    """Connections to one server.

    Errors are those of httpx. ConnectError and ConnectTimeout mean that nothing was sent. After
    every other one the request may have been carried out.
    """
    Exchange = HttpConnection | HttpxExchange
    """An answer whose head has arrived; its body is read piece by piece."""

CONNECT = 5.0
"""Seconds until there is a connection."""
STEP = 1024 * 1024
"""The most bytes that are unpacked at once: a kilobyte may unpack to a megabyte."""
SLICE = 4096
"""The most packed bytes that are unpacked at once: zlib copies what follows the end of a member, of
which a server may send thousands."""
_GZIP = 16 + zlib.MAX_WBITS

Headers = list[tuple[bytes, bytes]]


class HttpRequest(Struct, frozen=True):
    """A request as HTTP has it.

    `target` is its path and query, `read` the longest silence in seconds, `server_name` the name on
    the server's certificate, if it is not that of the URL. `permit` is called right before bytes
    leave, and raises if they must not.
    """

    method: str
    target: bytes
    headers: Headers
    content: bytes
    read: float
    server_name: str = ""
    permit: Callable[[], object] | None = None


async def unpacked(exchange: Exchange) -> AsyncGenerator[bytes]:
    """Yield the pieces of a body. Raises httpx's errors, DecodingError among them."""
    packing, inflater = _packing(exchange.headers), None
    while piece := await exchange.read_piece():
        if not packing:
            yield piece
            continue
        inflater = inflater or _Inflater(packing)
        for inflated in inflater.feed(piece):
            yield inflated
    if inflater is not None and not inflater.ended:
        raise httpx.DecodingError("the packed body has no end")


def _packing(headers: Iterable[tuple[bytes, bytes]]) -> list[bytes]:
    """Return the names of `Content-Encoding`, in lower case, without `identity`."""
    values = b",".join(value for name, value in headers if name.lower() == b"content-encoding")
    names = (name.strip().lower() for name in values.split(b","))
    return [name for name in names if name not in (b"", b"identity")]


class _Inflater:
    """Unpacks gzip, of which there may be several members one after the other (RFC 1952).

    From 1.37 on, the API server sends each flushed part of a WatchList as a member of its own.
    """

    def __init__(self, packing: list[bytes]) -> None:
        if packing not in ([b"gzip"], [b"x-gzip"]):
            names = b", ".join(packing).decode("utf-8", "replace")
            raise httpx.DecodingError(f"an answer in {names}, which was not asked for")
        self._member = zlib.decompressobj(_GZIP)

    @property
    def ended(self) -> bool:
        """Whether every member that has begun has ended."""
        return self._member.eof

    def feed(self, packed: bytes) -> Iterator[bytes]:
        """Yield the unpacked bytes, `STEP` of them at a time. Raises httpx.DecodingError."""
        for begin in range(0, len(packed), SLICE):
            yield from self._feed(packed[begin : begin + SLICE])

    def _feed(self, packed: bytes) -> Iterator[bytes]:
        inflated = b""
        # zlib may hold some more, without a tail.
        while packed or (len(inflated) == STEP and not self.ended):
            if self.ended:
                self._member = zlib.decompressobj(_GZIP)
            try:
                inflated = self._member.decompress(packed, STEP)
            except zlib.error as error:
                raise httpx.DecodingError(str(error)) from error
            packed = self._member.unused_data or self._member.unconsumed_tail
            yield inflated
