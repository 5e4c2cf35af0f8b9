"""Connections: how many clients are accepted, and when an idle one is cut."""

from __future__ import annotations

import errno
import os
import socket
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

import anyio
from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from uvicorn.protocols.http.h11_impl import RequestResponseCycle

    from hedgerow.serving.httpserver.addresses import Address
    from hedgerow.serving.httpserver.limits import Bounds


PATIENCE = 10.0
"""Seconds between two checks: a client must send a request's head, or read an answer, in time."""


class Connection(H11Protocol):
    """uvicorn's HTTP/1.1, which without this waits for ever for the head of a request.

    A check every `PATIENCE` seconds cuts a connection that has not sent a whole head, or not read a
    whole answer, since the last check. uvicorn itself closes idle connections between requests.
    """

    _look: asyncio.TimerHandle | None = None
    _seen: Any = None
    since = 0.0

    def __init__(
        self, *arguments: Any, greeted: Callable[[int], None], bounds: Bounds, **more: Any
    ) -> None:
        """`greeted` is called with the file descriptor once the TLS handshake is done."""
        super().__init__(*arguments, **more)
        self._greeted = greeted
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
        self._greeted(transport.get_extra_info("socket").fileno())
        self.since = self.loop.time()
        if not self._make_room():
            transport.abort()
            return
        self._look = self.loop.call_later(PATIENCE, self._check)

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        self.since = self.loop.time()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop checking a client that is gone."""
        if self._look is not None:
            self._look.cancel()
        super().connection_lost(exc)

    def _make_room(self) -> bool:
        """Cut the connection that is idle for longest; return False if all are being served."""
        if len(self.connections) <= self._bounds.each:
            return True  # the usual case
        others = cast("set[Connection]", self.connections - {self})
        there = [one for one in others if not one.transport.is_closing()]
        own = [one for one in there if one.address == self.address]
        if len(own) >= self._bounds.each:
            return _cut_idle(own)
        return len(there) < self._bounds.connections or _cut_idle(there)

    @property
    def address(self) -> str:
        """The address that the client comes from, without its port."""
        return self.client[0] if self.client else ""

    def _check(self) -> None:
        request = cast("RequestResponseCycle | None", self.cycle)
        closing = self.transport.is_closing()
        answered = request is None or request.response_complete
        kept_alive = self.timeout_keep_alive_task is not None
        before, self._seen = self._seen, (closing, request)
        idle = closing or (answered and not kept_alive)
        if idle and (request is None or before == self._seen):
            self.transport.abort()
            return
        self._look = self.loop.call_later(PATIENCE, self._check)


def _cut_idle(connections: list[Connection]) -> bool:
    """Cut the connection that is idle for longest; return False if all are being served."""
    idle = [one for one in connections if one.idle]
    if idle:
        min(idle, key=lambda one: one.since).transport.abort()
    return bool(idle)


BACKLOG = 128
MOST_SILENT = 200
"""The most clients of one server during a TLS handshake; for one more, the oldest is cut.

Each takes about forty kilobytes, even if it never sends a byte.
"""


class ListenError(Exception):
    """A server cannot listen at an address; the text says why in one line."""

    explains_itself = True


class PortTakenError(ListenError):
    """Another program already listens there."""


class Listener(socket.socket):
    """A listening socket that keeps track of accepted clients that are not yet `greeted`."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._silent: list[socket.socket] = []

    def accept(self) -> tuple[socket.socket, Any]:
        """Accept a client; if too many are silent, cut the one silent for longest."""
        client, address = super().accept()
        # A closed socket has no file descriptor any more.
        self._silent = [one for one in self._silent if one.fileno() >= 0]
        if len(self._silent) >= MOST_SILENT:
            with suppress(OSError):  # it has just disconnected
                self._silent.pop(0).shutdown(socket.SHUT_RDWR)
        self._silent.append(client)
        return client, address

    def greeted(self, number: int) -> None:
        """Stop counting a client, by its file descriptor, as its handshake is done."""
        self._silent = [one for one in self._silent if one.fileno() != number]


async def listen(address: Address) -> Listener:
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
        kind = PortTakenError if error.errno == errno.EADDRINUSE else ListenError
        raise kind(f"cannot listen on {address}: {said}") from error
    return Listener(opened.family, opened.type, opened.proto, fileno=opened.detach())


async def _place(address: Address) -> tuple[socket.AddressFamily, str]:
    if not address.host:
        return (socket.AF_INET6, "::") if socket.has_dualstack_ipv6() else (socket.AF_INET, "")
    found = await anyio.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    family, *_, place = found[0]
    return family, str(place[0])
