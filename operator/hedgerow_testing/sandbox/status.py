"""Status: which parts of a sandbox run, and the resources that they use."""

from pathlib import Path

from msgspec import Struct


class ComponentStatus(Struct, frozen=True):
    """One server: `pid` is None if it does not run, `memory` is resident memory in bytes."""

    name: str
    pid: int | None
    running: bool
    healthy: bool
    memory: int


class SandboxStatus(Struct, frozen=True):
    """A sandbox; without a cluster `server`, `version` and `components` are empty.

    It is `up` if there are components, and all are healthy. `version` is what the API server called
    itself, such as "1.37.2"; `disk` and `memory`, the resident one of all components, are in bytes.
    """

    directory: str
    up: bool = False
    server: str = ""
    version: str = ""
    memory: int = 0
    disk: int = 0
    components: tuple[ComponentStatus, ...] = ()


def disk(directory: Path) -> int:
    """Return the bytes that the files below a directory occupy; vanished files do not count."""
    total = 0
    for path in directory.rglob("*"):
        try:
            total += path.lstat().st_blocks * 512
        except FileNotFoundError:
            continue
    return total
