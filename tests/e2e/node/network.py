"""Network: this thread's stay in another network, so that a client stands on the node itself."""

import ctypes
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

_CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)


@contextmanager
def inside(pid: int) -> Generator[None]:
    """Enter the network of a process; threads and programs started within are in it too.

    A connection stays in the network that it was made in. Threads that ran before are where they
    were, so this is no use to a pool of them.
    """
    before = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    try:
        _enter(Path(f"/proc/{pid}/ns/net"))
        try:
            yield
        finally:
            _set(before)
    finally:
        os.close(before)


def _enter(path: Path) -> None:
    wanted = os.open(path, os.O_RDONLY)
    try:
        _set(wanted)
    finally:
        os.close(wanted)


def _set(namespace: int) -> None:
    if _libc.setns(namespace, _CLONE_NEWNET):
        number = ctypes.get_errno()
        raise OSError(number, f"setns: {os.strerror(number)}")
