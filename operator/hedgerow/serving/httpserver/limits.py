"""Limits: how many connections clients may have, how long a request may take, and its size."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

import anyio
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

SECONDS = 30.0
"""The longest that the API server waits for an admission review."""
ARRIVAL = 10.0
"""Seconds in which a body must arrive."""
BODY = 5 * 1024 * 1024
"""Bytes of a request: of the largest object that the API server reads (3 MiB), of the largest that
etcd stores, which may come with it (1.5 MiB), and of what is around them."""
FREE = 128 * 1024
"""Bytes of a request that may be answered beside others; of larger ones, one at a time is taken in,
as a container's memory is limited."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The limits of the clients of one server.

    `connections`: at a time. `body`: bytes of a request's body.
    """

    connections: int
    body: int


REVIEWS: Final = Bounds(connections=200, body=BODY)
"""An API server opens a connection for each concurrent request."""
SCRAPES: Final = Bounds(connections=60, body=1024)
PROBES: Final = Bounds(connections=60, body=1024)


class Limited:
    """A Starlette app with limits for the time and the size of each request."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        seconds: float = SECONDS,
        body: int = BODY,
        arrival: float = ARRIVAL,
    ) -> None:
        self._app = app
        self._seconds = seconds
        self._body = body
        self._arrival = arrival
        self._turn = anyio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request: 413 if it is too large, 408 if its body does not arrive in time.

        503 if the answer takes too long.
        """
        begun = False

        async def sending(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        size = int(Headers(scope=scope).get("Content-Length", 0))
        if size > self._body:
            refusal = _refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "the request is too large")
            await refusal(scope, receive, send)
            return
        with anyio.move_on_after(self._seconds) as budget:
            async with self._turn if size > FREE else nullcontext():
                await self._app(scope, _in_time(receive, self._arrival), sending)
        if budget.cancelled_caught and not begun:
            refusal = _refusal(HTTPStatus.SERVICE_UNAVAILABLE, "no answer in time")
            await refusal(scope, receive, send)


def _refusal(code: HTTPStatus, why: str) -> PlainTextResponse:
    return PlainTextResponse(f"{why}\n", code)


def _in_time(receive: Receive, seconds: float) -> Receive:
    """Return `receive` with a limit of so many seconds from now; it raises HTTPException then."""
    until = anyio.current_time() + seconds

    async def receiving() -> Message:
        with anyio.CancelScope(deadline=until):
            return await receive()
        raise HTTPException(HTTPStatus.REQUEST_TIMEOUT, "the body does not come")

    return receiving
