"""Locks: one holder at a time among all programs of this machine; freed if the holder dies."""

import fcntl
import os
from collections.abc import AsyncGenerator, Callable
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path

import anyio

from hedgerow_testing.sandbox.pauses import pauses

Progress = Callable[[str], None]
"""A function that gets one line of progress; called at most every few seconds."""


class LockNotice(str):
    """A line of progress that stays visible where other lines replace one another."""

    __slots__ = ()


def _nothing() -> None:
    """Do nothing."""


@asynccontextmanager
async def exclusive(
    path: Path, progress: Progress, *, what: str, prepare: Callable[[], None] = _nothing
) -> AsyncGenerator[None]:
    """Hold the lock file; wait for another holder, and report that once with its pid.

    `prepare` runs before each attempt, because the other holder may remove the directory. If it
    raises, the wait ends.
    """
    pause, is_reported = pauses(longest=1.0), False
    prepare()
    while (descriptor := _try_lock(path)) is None:
        if not is_reported:
            progress(f"waiting for process {holder(path)}, which {what}")
            is_reported = True
        await anyio.sleep(next(pause))
        prepare()
    try:
        yield
    finally:
        os.close(descriptor)


def _try_lock(path: Path) -> int | None:
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except FileNotFoundError:
        return None
    with ExitStack() as undone:
        undone.callback(os.close, descriptor)
        with suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if is_lock(path, descriptor):
                os.ftruncate(descriptor, 0)
                os.write(descriptor, str(os.getpid()).encode())
                undone.pop_all()
                return descriptor
    return None


def is_lock(path: Path, descriptor: int) -> bool:
    """Return whether the locked file still exists: the last holder may have removed it."""
    try:
        named = path.stat()
    except FileNotFoundError:
        return False
    return os.path.samestat(named, os.fstat(descriptor))


def holder(path: Path) -> str:
    """Return the pid of who holds a lock, as it is written in it; `?` if it is not known."""
    try:
        return path.read_text(encoding="ascii") or "?"
    except OSError:
        return "?"
