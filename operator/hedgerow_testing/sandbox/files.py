"""Files: written privately and atomically, in directories that nobody else can change."""

import os
import stat
from collections.abc import Iterable
from pathlib import Path

from hedgerow_testing.sandbox.errors import SandboxError

_ROOT = 0


def make(directory: Path) -> None:
    """Create a directory, and the missing ones above it, for this user alone."""
    for place in (*reversed(directory.parents), directory):
        if not place.exists():
            place.mkdir(mode=0o700, exist_ok=True)


def check_private(directory: Path, names: Iterable[str], remedy: str) -> None:
    """Raise SandboxError if anybody but this user and root can change what is in a directory.

    It and those of its files that are named must be this user's, no symbolic links, and closed to
    the writes of others; so must the directories above, since whoever may write there can put
    another in its place. Raises FileNotFoundError if it does not exist.
    """
    user = os.geteuid()
    statuses = {directory: directory.lstat()}
    for path in (directory / name for name in names):
        if os.path.lexists(path):
            statuses[path] = path.lstat()
    above = {place: place.stat() for place in _above(directory)}
    flaws = [
        *((path, _flaw(status, {user})) for path, status in statuses.items()),
        *((place, _flaw(status, {user, _ROOT}, sticky=True)) for place, status in above.items()),
    ]
    for path, flaw in flaws:
        if flaw:
            raise SandboxError(f"{path} {flaw}, who could have you run what they like", remedy)


def _above(directory: Path) -> set[Path]:
    """Return the directories above, as they are named and as they are found."""
    return {*directory.absolute().parents, *directory.resolve().parents}


def _flaw(status: os.stat_result, owners: set[int], *, sticky: bool = False) -> str:
    """Return the flaw that lets others change a file; `sticky`: a directory's bit prevents it.

    A group is this user's alone if it has the user's number, as most systems make them.
    """
    mode = status.st_mode
    if stat.S_ISLNK(mode):
        return "is a symbolic link, perhaps of somebody"
    if status.st_uid not in owners:
        return f"belongs to user {status.st_uid}"
    by_group = mode & stat.S_IWGRP and status.st_gid not in {os.geteuid(), _ROOT}
    if (by_group or mode & stat.S_IWOTH) and not (sticky and mode & stat.S_ISVTX):
        return "can be written by other users"
    return ""


def write(path: Path, content: str | bytes, mode: int = 0o600) -> Path:
    """Write a file atomically, with this mode from the start, and return its path."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    partial.unlink(missing_ok=True)
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    return path


def tail(path: Path, lines: int = 20, limit: int = 65536) -> list[str]:
    """Return the last lines of a log that may be large or missing; reads at most `limit`."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - limit))
            text = file.read(limit).decode(errors="replace")
    except OSError:
        return []
    return [line.rstrip() for line in text.splitlines() if line.strip()][-lines:]
