"""Ports: free ports on the loopback address, outside the range of outgoing connections."""

import secrets
import socket
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path

LOOPBACK = "127.0.0.1"

RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_LOWEST = 10_000
_ENOUGH = 1_000
_TRIES = 64


def choose(names: Iterable[str]) -> dict[str, int]:
    """Return a port for each name, on which nobody listens at the moment.

    Ephemeral ports are avoided. Otherwise, while a server restarts, a waiting client's connection
    could get the server's port as its own and keep it.
    """
    with ExitStack() as held:
        return {name: _free(held) for name in names}


def _free(held: ExitStack) -> int:
    highest = ephemeral()
    for _ in range(_TRIES if highest - _LOWEST >= _ENOUGH else 0):
        port = _LOWEST + secrets.randbelow(highest - _LOWEST)
        try:
            return _bound(held, port)
        except OSError:
            continue
    return _bound(held, 0)


def _bound(held: ExitStack, port: int) -> int:
    listener = held.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
    listener.bind((LOOPBACK, port))
    return int(listener.getsockname()[1])


def ephemeral() -> int:
    """Return the first port that the system gives to whoever asks for any."""
    try:
        return int(RANGE.read_text(encoding="ascii").split()[0])
    except (OSError, ValueError, IndexError):
        return 0
