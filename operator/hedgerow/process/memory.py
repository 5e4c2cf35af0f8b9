"""Memory: the limit of the process, and how much of it the caches may take."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

from hedgerow.runtime.cache.door import MIB, UNLIMITED

if TYPE_CHECKING:
    from collections.abc import Iterator

RESERVE: Final = 320 * MIB
"""Bytes of the process's limit that are not for caches: 80 MiB for the program, up to 190 MiB for
an admission review, the objects that are decoded, and the temporary memory of passes."""


def most_for_caches(limit: int | None) -> int:
    """Return the bytes for caches if the process may take `limit`; at least a quarter of it."""
    return UNLIMITED if limit is None else max(limit - RESERVE, limit // 4)


ROOT: Final = Path("/")
NO_LIMIT: Final = 2**60
"""Limits from this size on mean no limit: cgroups version 1 writes nearly 2**63 for none."""


def memory_limit(root: Path = ROOT) -> int | None:
    """Return the lowest memory limit of the process's cgroups, in bytes; None without one.

    In a container, its own cgroup may be the root that it sees, whatever the path is.
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
    """Yield the controllers and path of each hierarchy that the process is in (cgroups(7))."""
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
