"""Cache: the binaries of earlier runs; only one program at a time makes an entry."""

import os
import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import anyio
import anyio.to_thread

from hedgerow_testing.sandbox.files import check_private, make
from hedgerow_testing.sandbox.locks import Progress, exclusive
from hedgerow_testing.sandbox.pins import Module
from hedgerow_testing.sandbox.toolchain import platform_name

_REMEDY = "set XDG_CACHE_HOME to a directory that you alone can write to, or mend its rights"


@dataclass(frozen=True, slots=True)
class BinaryCache:
    """Built binaries, keyed by their sources, and downloaded binaries apart from them.

    After a module changes, old binaries are never found.
    """

    root: Path

    def check(self) -> None:
        """Raise SandboxError if others may change the directory, which may be missing."""
        with suppress(FileNotFoundError):
            check_private(self.root, [path.name for path in self.root.iterdir()], _REMEDY)

    def entry(self, module: Module) -> Path:
        """Return the directory of a module's built binaries; it may not exist."""
        return self.root / f"{module.title}-{platform_name()}-{module.digest}"

    def downloads(self, module: Module) -> Path:
        """Return the directory of the downloaded binaries of the same version."""
        return self.root / f"{module.title}-{platform_name()}-downloaded"

    def find(self, module: Module, binary: str) -> Path | None:
        """Return a finished binary, or None."""
        paths = (entry / binary for entry in (self.entry(module), self.downloads(module)))
        return next((path for path in paths if os.access(path, os.X_OK)), None)

    def origin(self, command: Path) -> Path:
        """Return the cached binary behind a link, because the link is deleted with its sandbox."""
        target = command.resolve()
        return target if target.is_relative_to(self.root.resolve()) else command


@asynccontextmanager
async def workplace(entry: Path, progress: Progress, *, what: str) -> AsyncGenerator[Path]:
    """Yield an empty directory for work on an entry; it is removed afterwards.

    If another program works on the same entry, wait for it; `what` says what that one does.
    """
    make(entry.parent)
    check_private(entry.parent, (), _REMEDY)
    place = entry.with_name(f"{entry.name}.partial")
    async with exclusive(entry.with_name(f"{entry.name}.lock"), progress, what=what):
        # We hold the lock, so anything here was left by a program that was killed.
        await anyio.to_thread.run_sync(_clear, place)
        place.mkdir(exist_ok=True)
        try:
            yield place
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(_clear, place)


def publish(binary: Path, entry: Path) -> None:
    """Move a complete binary into its entry."""
    with binary.open("rb") as file:
        os.fsync(file.fileno())
    entry.mkdir(exist_ok=True)
    binary.replace(entry / binary.name)


def default_cache() -> BinaryCache:
    """Return the user's own cache: $XDG_CACHE_HOME/hedgerow/sandbox, ~/.cache without it."""
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return BinaryCache(caches / "hedgerow" / "sandbox")


def _clear(place: Path) -> None:
    shutil.rmtree(place, ignore_errors=True)
