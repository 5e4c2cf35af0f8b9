"""Prepared: what takes longer than a test may, made before the first one."""

from __future__ import annotations

import json
import secrets
import sys
from dataclasses import dataclass
from pathlib import Path

import anyio

from e2e.node import programs
from e2e.node.images import CACHE, Images
from e2e.node.machine import why_not
from hedgerow_testing.sandbox.leash import MARK, Leash
from hedgerow_testing.sandbox.locks import Progress, exclusive


@dataclass(frozen=True)
class Prepared:
    """The programs by their names, and the archive of all images."""

    programs: dict[str, Path]
    images: Path


async def prepare(progress: Progress) -> Prepared:
    """Build what is missing; several that want it at once wait for one."""
    mark = secrets.token_hex(16)
    with Leash(mark):
        found = await programs.find(progress, {MARK: mark})
    CACHE.mkdir(parents=True, exist_ok=True)
    async with exclusive(CACHE / "lock", progress, what="builds images"):
        with Images.on(progress) as images:
            return Prepared(found, images.all())


def read(file: Path) -> Prepared:
    """Return what `task test` has just prepared, and written to a file."""
    found = json.loads(file.read_text("utf-8"))
    programs = {name: Path(path) for name, path in found["programs"].items()}
    return Prepared(programs, Path(found["images"]))


def write(found: Prepared, file: Path) -> None:
    """Write it for `read`."""
    programs = {name: str(path) for name, path in found.programs.items()}
    file.write_text(json.dumps({"programs": programs, "images": str(found.images)}), "utf-8")


if __name__ == "__main__":
    if reason := why_not():
        print(f"tests/e2e: no real node here: {reason}")
    else:
        write(anyio.run(prepare, print), Path(sys.argv[1]))
