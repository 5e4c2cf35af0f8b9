"""Sockets: connections of which nothing arrives after they were closed."""

from __future__ import annotations

import socket
import struct
from typing import Final

Option = tuple[int, int, int] | tuple[int, int, bytes]

ABORTING: Final[list[Option]] = [(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))]
"""What has not been acknowledged when a connection is closed is dropped, socket(7).

Without it the kernel goes on sending for minutes, also for a process that has ended: cut off from
the API server, a leader's last write would arrive long after another has begun to lead.
"""


def options(unacknowledged: float) -> list[Option]:
    """Return the options of connections whose bytes must not arrive later than so many seconds.

    0 for no limit. The kernel sees to it, for a process that is stopped as well, tcp(7); elsewhere
    than on Linux there is only what closing does.
    """
    number = getattr(socket, "TCP_USER_TIMEOUT", None)
    if number is None or unacknowledged <= 0:
        return ABORTING
    return [*ABORTING, (socket.IPPROTO_TCP, number, max(1, int(unacknowledged * 1000)))]
