"""Files: written where they are named, never where a symbolic link leads.

Somebody who may write the directory could otherwise have a command write over any file of its user.
"""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, BinaryIO, Literal, cast

if TYPE_CHECKING:
    from pathlib import Path

LINK = "it is a symbolic link"


def descriptor(path: Path | str, flags: int, mode: int = 0o666) -> int:
    """Return the descriptor of a file, as `os.open` does; raises OSError if it is a link."""
    try:
        return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(errno.ELOOP, LINK, str(path)) from None
        raise


def opened(path: Path, how: Literal["wb", "ab", "xb"], mode: int = 0o666) -> BinaryIO:
    """Open a file for writing: over its content, behind it, or only if there is no file."""

    def opener(name: str, flags: int) -> int:
        return descriptor(name, flags, mode)

    return cast("BinaryIO", open(path, how, opener=opener))


def overwrite(path: Path, content: str | bytes, mode: int = 0o666) -> None:
    """Write a file, over its content; raises OSError."""
    with opened(path, "wb", mode) as file:
        file.write(content.encode() if isinstance(content, str) else content)
