"""Leash: ends all processes with a mark once the program that holds the leash is gone.

It runs as a program of its own, so it survives a SIGKILL of its holder. It needs only the standard
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
"""The environment variable with the sandbox's identity, set in every process of a sandbox."""

_RELEASED = b"released"
_CALM = 2
_PAUSE = 0.05
PATIENCE = 10.0


class Leash:
    """While it is held, the marked processes end with this program, however that ends."""

    def __init__(self, mark: str) -> None:
        # Isolated and without site-packages: it starts quickly and runs no code of the user.
        command = [sys.executable, "-I", "-S", __file__, mark]
        self.watcher = Popen(
            command, stdin=PIPE, stdout=DEVNULL, stderr=DEVNULL, start_new_session=True
        )

    def __enter__(self) -> Self:
        """Hold the leash during a block."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Release the leash."""
        self.release()

    def release(self) -> None:
        """Release the leash: the marked processes may outlive this program from now on."""
        try:
            self.watcher.communicate(_RELEASED, timeout=PATIENCE)
        except TimeoutExpired:
            self.watcher.kill()
            self.watcher.wait()


def marked(mark: str, proc: Path = Path("/proc")) -> list[int]:
    """Return the pids of the processes with this mark; empty if there is no /proc."""
    wanted = f"{MARK}={mark}".encode()
    return [int(p.name) for p in proc.glob("[1-9]*") if wanted in _environment(p)]


def end(mark: str) -> None:
    """Kill all processes with the mark until none is left."""
    calm = 0  # a process that is just forking may be missed once, so check again
    while calm < _CALM:
        pids = marked(mark)
        calm = 0 if pids else calm + 1
        for pid in pids:
            kill(pid, signal.SIGKILL)
        time.sleep(_PAUSE)


def kill(pid: int, number: int) -> bool:
    """Send a signal; return False if there is no such process, or it is not ours."""
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _environment(process: Path) -> list[bytes]:
    """Return a process's environment; empty for a zombie, or if it cannot be read."""
    try:
        return (process / "environ").read_bytes().split(b"\0")
    except OSError:
        return []


def main(arguments: list[str]) -> None:
    """Wait until the holder releases the leash or dies."""
    if sys.stdin.buffer.read() != _RELEASED:
        end(arguments[0])


if __name__ == "__main__":
    main(sys.argv[1:])
