"""Status: which parts of a sandbox run, and the resources that they use."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ComponentStatus:
    """One server: `pid` is None if it does not run, `memory` is resident memory in bytes."""

    name: str
    pid: int | None
    running: bool
    healthy: bool
    memory: int


@dataclass(frozen=True, slots=True)
class SandboxStatus:
    """A sandbox; without a cluster `server`, `version` and `components` are empty.

    `version` is what the API server called itself, such as "1.37.2"; `disk` is in bytes.
    """

    directory: Path
    server: str = ""
    version: str = ""
    components: tuple[ComponentStatus, ...] = ()
    disk: int = 0

    @property
    def up(self) -> bool:
        """Whether there are components, and all are healthy."""
        return bool(self.components) and all(c.healthy for c in self.components)

    @property
    def memory(self) -> int:
        """The resident memory of all components, in bytes."""
        return sum(component.memory for component in self.components)


def disk(directory: Path) -> int:
    """Return the bytes that the files below a directory occupy; vanished files do not count."""
    total = 0
    for path in directory.rglob("*"):
        try:
            total += path.lstat().st_blocks * 512
        except FileNotFoundError:
            continue
    return total
