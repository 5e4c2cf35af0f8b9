"""Cgroups: how much memory the kernel lets this process have."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT: Final = Path("/")
NO_LIMIT: Final = 2**60
"""Bytes from which on a limit is none: version 1 tells of no limit as of nearly 2**63."""


def memory_limit(root: Path = ROOT) -> int | None:
    """Return the lowest limit of memory in bytes of the process's cgroups; None without one.

    In a container its own cgroup may be the root of those that it sees, whatever it is called.
    """
    limits = [limit for file in _files(root) if (limit := _limit(file)) is not None]
    return min(limits, default=None)


def _files(root: Path) -> Iterator[Path]:
    mounted = root / "sys/fs/cgroup"
    for controllers, path in _memberships(root):
        at, name = mounted, "memory.max"
        if "memory" in controllers.split(","):
            at, name = mounted / "memory", "memory.limit_in_bytes"
        elif controllers:
            continue
        own = PurePosixPath(path.lstrip("/"))
        for part in (own, *own.parents):
            yield at / part / name


def _memberships(root: Path) -> Iterator[tuple[str, str]]:
    """Yield controllers and path of each hierarchy that the process is in (cgroups(7))."""
    try:
        lines = (root / "proc/self/cgroup").read_text("utf-8").splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        yield controllers, path


def _limit(file: Path) -> int | None:
    try:
        text = file.read_text("ascii").strip()
    except OSError:
        return None
    return int(text) if text.isdecimal() and int(text) < NO_LIMIT else None
