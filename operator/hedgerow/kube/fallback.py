"""Fallback: httpx's own transport, for a proxy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import httpx

from hedgerow.kube.transport import CONNECT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hedgerow.kube.transport import HttpRequest

WRITE, POOL = 30.0, 5.0
"""Seconds."""
CONCURRENCY = 8
"""The most requests at once: the more there are, the more CPU httpx needs for each (ADR 0012)."""
_SENDING = ("send_request_headers.started", "send_request_body.started")


class HttpxTransport:
    """A transport of httpx's, for requests to the server of `url`."""

    concurrency = CONCURRENCY

    def __init__(self, url: httpx.URL, inner: httpx.AsyncBaseTransport) -> None:
        self._url = url
        self._inner = inner

    async def send(self, request: HttpRequest) -> HttpxExchange:
        """Send a request; return its answer once the head has arrived. Raises httpx's errors."""
        return HttpxExchange(await self._inner.handle_async_request(self._built(request)))

    async def aclose(self) -> None:
        """Cut every connection."""
        await self._inner.aclose()

    def _built(self, request: HttpRequest) -> httpx.Request:
        timeout = httpx.Timeout(WRITE, connect=CONNECT, read=request.read, pool=POOL)
        extensions: dict[str, Any] = {"timeout": timeout.as_dict()}
        if request.server_name:
            extensions["sni_hostname"] = request.server_name
        if permit := request.permit:
            # https://www.encode.io/httpcore/extensions/#trace
            async def trace(event: str, _info: Any) -> None:
                if event.endswith(_SENDING):
                    permit()

            extensions["trace"] = trace
        return httpx.Request(
            request.method,
            self._url.copy_with(raw_path=request.target),
            headers=request.headers,
            stream=httpx.ByteStream(request.content),
            extensions=extensions,
        )


class HttpxExchange:
    """An answer of httpx's as an `Exchange`."""

    def __init__(self, response: httpx.Response) -> None:
        self.code = response.status_code
        self.headers: Sequence[tuple[bytes, bytes]] = response.headers.raw
        self._pieces = aiter(cast("httpx.AsyncByteStream", response.stream))
        self.aclose = response.aclose

    async def read_piece(self) -> bytes:
        """Return the next piece of the body, as it was sent; empty at its end."""
        async for piece in self._pieces:
            if piece:
                return piece
        return b""
