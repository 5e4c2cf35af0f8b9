"""Sockets: options of connections whose bytes never arrive after the connection is closed."""

from __future__ import annotations

import socket
import struct
from typing import Final

SocketOption = tuple[int, int, int] | tuple[int, int, bytes]

ABORTING: Final[list[SocketOption]] = [
    (socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
]
"""When a connection is closed, bytes that were not acknowledged are dropped, socket(7).

Otherwise the kernel would go on sending for minutes, even after the process has ended. If a leader
is cut off from the API server, its last write could arrive long after another one leads.
"""


def options(unacknowledged: float) -> list[SocketOption]:
    """Return the options of connections whose bytes must arrive within so many seconds.

    0 means no limit. The kernel enforces it, even while the process is stopped, tcp(7). Systems
    other than Linux only drop bytes when the connection is closed.
    """
    number = getattr(socket, "TCP_USER_TIMEOUT", None)
    if number is None or unacknowledged <= 0:
        return ABORTING
    return [*ABORTING, (socket.IPPROTO_TCP, number, max(1, int(unacknowledged * 1000)))]
