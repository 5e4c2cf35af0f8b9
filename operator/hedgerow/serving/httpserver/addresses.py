"""Address: where a server listens, in the form of Go programs: `:8080`, `[::1]:8080`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

OFF = "0"
PORTS = range(65536)


@dataclass(frozen=True, slots=True)
class Address:
    """A host and a port; no host means every interface, port 0 means a free port."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Return an address; None for `0`, which turns the server off. Raises ValueError."""
        if text == OFF:
            return None
        host, colon, port = text.rpartition(":")
        if not colon:
            raise ValueError(
                f'{text!r} names no port; write :8080 or 127.0.0.1:8080, or "0" for none'
            )
        if not (port.isascii() and port.isdecimal() and int(port) in PORTS):
            raise ValueError(f"{port!r} is no port: a number from 0 to {PORTS[-1]}")
        bracketed = host.startswith("[") and host.endswith("]")
        if bracketed:
            host = host[1:-1]
        if bracketed != (":" in host) or any(sign in host for sign in "[]/ "):
            raise ValueError(
                f"{text!r} is no address; an IPv6 address stands in brackets: [::1]:8080"
            )
        return cls(host, int(port))

    def __str__(self) -> str:
        """Return the address in the form that `parse` reads."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"
