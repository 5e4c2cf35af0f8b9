"""Limits: how many connections clients may have, how long a request may take, and its size."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

import anyio
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

SECONDS = 30.0
"""The longest that the API server waits for an admission review."""
ARRIVAL = 10.0
"""Seconds in which a body must arrive, as it takes up shared memory meanwhile."""
BODY = 5 * 1024 * 1024
"""Bytes of a request: of the largest object that the API server reads (3 MiB), of the largest that
etcd stores, which may come with it (1.5 MiB), and of what is around them."""
FREE = 128 * 1024
"""Bytes that any request may have; larger requests share `TOGETHER`."""
TOGETHER = 3 * BODY
"""The most bytes of all larger requests at a time, as a container's memory is limited."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """What the clients of one server may use.

    `connections`: at a time, in total. `of_one_address`: of one client address. `body`: bytes of a
    request's body.
    """

    connections: int
    of_one_address: int
    body: int


REVIEWS: Final = Bounds(connections=200, of_one_address=200, body=BODY)
"""An API server opens a connection for each concurrent request, all from one address."""
SCRAPES: Final = Bounds(connections=60, of_one_address=20, body=1024)
PROBES: Final = Bounds(connections=60, of_one_address=30, body=1024)


class Limited:
    """A Starlette app with limits for time and size, for each request and all together."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        seconds: float = SECONDS,
        body: int = BODY,
        free: int = FREE,
        together: int = TOGETHER,
        arrival: float = ARRIVAL,
    ) -> None:
        self._app = app
        self._seconds = seconds
        self._body = body
        self._free = free
        self._left = together
        self._arrival = arrival

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request: 413 if it is too large, 408 if its body does not arrive in time.

        503 if the answer takes too long, or if all requests together are too large.
        """
        taken, held, begun = 0, 0, False
        until = anyio.current_time() + self._arrival

        async def receiving() -> Message:
            nonlocal taken, held
            message: Message = {}
            with anyio.CancelScope(deadline=until):
                message = await receive()
            if not message:
                raise HTTPException(HTTPStatus.REQUEST_TIMEOUT, "the body does not come")
            size = len(message.get("body", b""))
            taken += size
            if taken > self._body:
                raise HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "the request is too large")
            if taken > self._free:
                if size > self._left:
                    raise HTTPException(HTTPStatus.SERVICE_UNAVAILABLE, "too much at a time")
                self._left -= size
                held += size
            return message

        async def sending(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            with anyio.move_on_after(self._seconds) as budget:
                await self._app(scope, receiving, sending)
        finally:
            self._left += held
        if budget.cancelled_caught and not begun:
            late = PlainTextResponse("no answer in time\n", HTTPStatus.SERVICE_UNAVAILABLE)
            await late(scope, receive, send)
