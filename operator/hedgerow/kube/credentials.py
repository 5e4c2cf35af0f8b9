"""Credentials: the bearer token on each request, read again as its file is rotated."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    import anyio

EVERY = 60.0
"""Seconds between two readings of the file; the kubelet rotates well before a token expires."""


class Bearer(httpx.Auth):
    """`Authorization: Bearer`, from a file when there is one, else fixed; nothing without either.

    A file that cannot be read for a moment keeps the token that was read last.
    """

    def __init__(
        self, token: str = "", file: anyio.Path | None = None, *, now: Callable[[], float]
    ) -> None:
        self._token = token
        self._file = file
        self._now = now
        self._due = now() + EVERY

    async def async_auth_flow(
        self, request: httpx.Request
    ) -> AsyncGenerator[httpx.Request, httpx.Response]:
        """Put the header on the request."""
        token = await self._current()
        if token:
            request.headers["Authorization"] = f"Bearer {token}"
        yield request

    async def _current(self) -> str:
        if self._file is not None and self._now() >= self._due:
            self._due = self._now() + EVERY
            self._token = await read(self._file) or self._token
        return self._token


async def read(file: anyio.Path) -> str:
    """Return the token in `file`; empty when there is none to read."""
    try:
        return (await file.read_text("ascii")).strip()
    except (OSError, ValueError):
        return ""
