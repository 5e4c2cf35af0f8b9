"""Confined: a process whose memory the kernel bounds, as it does a container's."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hedgerow_testing.waiting import eventually

_ROOT = Path("/sys/fs/cgroup")
_V1 = _ROOT / "memory"


class Cgroup:
    """A cgroup of this machine with a limit of memory, of version 1 or 2."""

    def __init__(self, path: Path, limit: int) -> None:
        self._path = path
        self._is_v1 = path.is_relative_to(_V1)
        bound = "memory.limit_in_bytes" if self._is_v1 else "memory.max"
        (path / bound).write_text(str(limit))

    @property
    def procs(self) -> Path:
        """The file in which a process writes its id to come into it."""
        return self._path / "cgroup.procs"

    @property
    def peak(self) -> int:
        """The most bytes that it had so far, what the kernel keeps of files included."""
        name = "memory.max_usage_in_bytes" if self._is_v1 else "memory.peak"
        return int((self._path / name).read_text())

    @property
    def killed(self) -> int:
        """How often the kernel has killed a process of it for want of memory."""
        name = "memory.oom_control" if self._is_v1 else "memory.events"
        lines = (line.split() for line in (self._path / name).read_text().splitlines())
        return int(dict(lines)["oom_kill"])

    def remove(self) -> None:
        eventually(self._removed, what="the processes of the cgroup are gone")

    def _removed(self) -> bool:
        try:
            self._path.rmdir()
        except OSError:
            return False
        return True


@contextmanager
def confined(limit: int) -> Iterator[Cgroup]:
    """Return a fresh cgroup; the test is skipped where this user can make none."""
    above = _V1 if _V1.is_dir() else _ROOT
    path = above / f"hedgerow-test-{secrets.token_hex(4)}"
    try:
        path.mkdir()
        cgroup = Cgroup(path, limit)
    except OSError as error:
        pytest.skip(f"no cgroup with a limit of memory can be made here: {error}")
    try:
        yield cgroup
    finally:
        cgroup.remove()
