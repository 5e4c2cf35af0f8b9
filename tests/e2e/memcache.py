"""Memcache: what a memcached server answers to the commands of its text protocol."""

import socket

PORT = 11211
_PATIENCE = 5.0


def version(address: str) -> str:
    """Return the server's version, such as 1.6.38."""
    return _said(address, "version").removeprefix("VERSION ")


def put(address: str, key: str, value: str) -> None:
    """Store a value for good."""
    answer = _said(address, f"set {key} 0 0 {len(value.encode())}\r\n{value}")
    assert answer == "STORED", answer


def look_up(address: str, key: str) -> str | None:
    """Return the value of a key, or None if the server has none."""
    first, *rest = _said(address, f"get {key}", end="END").split("\r\n")
    return rest[0] if first.startswith(f"VALUE {key} ") else None


def _said(address: str, command: str, end: str = "") -> str:
    """Send a command over a connection of its own, and give the answer up to its last line."""
    with socket.create_connection((address, PORT), timeout=_PATIENCE) as connection:
        connection.sendall(f"{command}\r\n".encode())
        lines: list[str] = []
        with connection.makefile("r", encoding="utf-8", newline="") as answer:
            while not lines or (end and lines[-1] != end):
                line = answer.readline()
                assert line.endswith("\r\n"), f"cut short: {[*lines, line]}"
                lines.append(line.removesuffix("\r\n"))
    return "\r\n".join(lines)
