"""Memcache: what a memcached server has, by its text protocol."""

import socket

PORT = 11211
_PATIENCE = 5.0


def look_up(address: str, key: str) -> str | None:
    """Return the value of a key, or None if the server has none."""
    lines = _read(address, key)
    return lines[1] if lines[0].startswith(f"VALUE {key} ") else None


def _read(address: str, key: str) -> list[str]:
    """Ask for a key over a connection of its own, and give the answer up to its last line."""
    with socket.create_connection((address, PORT), timeout=_PATIENCE) as connection:
        connection.sendall(f"get {key}\r\n".encode())
        lines: list[str] = []
        with connection.makefile("r", encoding="utf-8", newline="") as answer:
            while lines[-1:] != ["END"]:
                line = answer.readline()
                assert line.endswith("\r\n"), f"cut short: {[*lines, line]}"
                lines.append(line.removesuffix("\r\n"))
    return lines
