"""Listening: sockets that take clients in, only so many of whom have not yet said anything."""

from __future__ import annotations

import errno
import os
import socket
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import anyio

if TYPE_CHECKING:
    from hedgerow.serving.addresses import Address

BACKLOG = 128
MOST_SILENT = 200
"""Clients of one server in the midst of a TLS handshake; for one beyond, the first is cut.

Each costs some forty kilobytes, whether it ever sends a byte or not.
"""


class ListenError(Exception):
    """There can be no server at an address; one line that says why."""


class PortTakenError(ListenError):
    """Another program listens there."""


class Listener(socket.socket):
    """A listening socket that knows whom it has accepted and who is not yet `greeted`."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._silent: list[socket.socket] = []

    def accept(self) -> tuple[socket.socket, Any]:
        """Take one client in, in the place of the one that has been silent for longest."""
        client, address = super().accept()
        # What is closed has no number any more.
        self._silent = [one for one in self._silent if one.fileno() >= 0]
        if len(self._silent) >= MOST_SILENT:
            with suppress(OSError):  # it left just now
                self._silent.pop(0).shutdown(socket.SHUT_RDWR)
        self._silent.append(client)
        return client, address

    def greeted(self, number: int) -> None:
        """Count a client no more, by its file descriptor: there is a connection now."""
        self._silent = [one for one in self._silent if one.fileno() != number]


async def listen(address: Address) -> Listener:
    """Open a listening socket; without a host on IPv4 and IPv6 alike. Raises ListenError."""
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
