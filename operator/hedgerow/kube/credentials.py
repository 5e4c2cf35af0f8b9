"""Credentials: the bearer token of each request, read again when its file is rotated."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    import anyio

EVERY = 60.0
"""Seconds between two reads of the file; the kubelet renews it well before a token expires."""


class Bearer:
    """The bearer token of a login: that of a file, or a fixed one, or none.

    If the file cannot be read for a moment, the last token is used.
    """

    def __init__(
        self, token: str = "", file: anyio.Path | None = None, *, now: Callable[[], float]
    ) -> None:
        self._token = token
        self._file = file
        self._now = now
        self._due = now() + EVERY

    async def token(self) -> str:
        """Return the token for the next request; empty if there is none."""
        if self._file is not None and self._now() >= self._due:
            self._due = self._now() + EVERY
            self._token = await read(self._file) or self._token
        return self._token


async def read(file: anyio.Path) -> str:
    """Return the token in `file`; empty if it cannot be read."""
    try:
        return (await file.read_text("ascii")).strip()
    except (OSError, ValueError):
        return ""
