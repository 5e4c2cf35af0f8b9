"""Parting: clients that keep their connections leave by themselves before the server ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import anyio

if TYPE_CHECKING:
    from anyio import Event
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

SECONDS: Final = 1.0
"""How long a server answers on after the process was asked to stop."""


class Parting:
    """A Starlette app each answer of which is the last on its connection, once it is to end.

    A server that closes a kept connection may do so while a request is on its way, and that one is
    lost: Go's net/http, the API server with it, repeats no POST that it has begun to send.
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
        """Wait until those who ask all the time have had their last answer here."""
        await self._asked.wait()
        await anyio.sleep(SECONDS)
