"""Leash: ends everything that bears a mark once the one who holds the leash is gone.

Run as a program of its own it outlives a SIGKILL of its holder; it needs nothing but the standard
library, so it starts in a few milliseconds.
"""

import os
import signal
import sys
import time
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen, TimeoutExpired
from types import TracebackType
from typing import Self

MARK = "HEDGEROW_SANDBOX"
"""The environment variable that every process of a sandbox bears, with the sandbox's identity."""

_RELEASED = b"released"
_CALM = 2
_PAUSE = 0.05
_PATIENCE = 10.0


class Leash:
    """While it is held, this program's death, however it comes, ends the marked processes too."""

    def __init__(self, mark: str) -> None:
        # Isolated and without site-packages: quick, and nothing of the user's runs in it.
        command = [sys.executable, "-I", "-S", __file__, mark]
        self._watcher = Popen(
            command, stdin=PIPE, stdout=DEVNULL, stderr=DEVNULL, start_new_session=True
        )

    def __enter__(self) -> Self:
        """Hold it for the length of a block."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Let go."""
        self.release()

    def release(self) -> None:
        """Let go: the marked processes may outlive this program from here on."""
        try:
            self._watcher.communicate(_RELEASED, timeout=_PATIENCE)
        except TimeoutExpired:
            self._watcher.kill()
            self._watcher.wait()


def marked(mark: str, proc: Path = Path("/proc")) -> list[int]:
    """Return the pids of the processes started under this mark; none where there is no /proc."""
    wanted = f"{MARK}={mark}".encode()
    return [int(p.name) for p in proc.glob("[1-9]*") if wanted in _environment(p)]


def end(mark: str) -> None:
    """Kill what bears the mark until nothing does."""
    calm = 0  # a process in the middle of a fork gets away from one look, hence the second
    while calm < _CALM:
        pids = marked(mark)
        calm = 0 if pids else calm + 1
        for pid in pids:
            kill(pid, signal.SIGKILL)
        time.sleep(_PAUSE)


def kill(pid: int, number: int) -> bool:
    """Send a signal; False when there is no such process, or it is not ours."""
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _environment(process: Path) -> list[bytes]:
    """Read one process's environment; a zombie's is empty, another user's is not readable."""
    try:
        return (process / "environ").read_bytes().split(b"\0")
    except OSError:
        return []


def main(arguments: list[str]) -> None:
    """Wait for the holder to let go or to die."""
    if sys.stdin.buffer.read() != _RELEASED:
        end(arguments[0])


if __name__ == "__main__":
    main(sys.argv[1:])
