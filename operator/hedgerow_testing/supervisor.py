"""Supervisor: runs one command, and ends all that came of it once its holder lets go, or is gone.

It is a program of its own and a child subreaper: whatever a process below it does with its
environment, session or parents, it stays below it. It needs only the standard library.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from subprocess import DEVNULL, PIPE, STDOUT, Popen, TimeoutExpired
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_SUBREAPER: Final = 36
"""PR_SET_CHILD_SUBREAPER of prctl(2)."""
_RELEASE: Final = b"r"
_LINE: Final = 200
_STEP: Final = 0.05
PATIENCE: Final = 10.0
"""Seconds after which what cannot be killed, such as a program of another user, is left."""


class Supervised:
    """One command, `pid`, under a supervisor; its output is appended to a file. Raises OSError."""

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        directory: Path | None,
        output: Path,
    ) -> None:
        self._process = Popen(
            [sys.executable, "-I", "-S", __file__, str(output), *command],
            stdin=PIPE,
            stdout=PIPE,
            env=environment,
            cwd=directory,
            start_new_session=True,
            bufsize=0,
        )
        assert self._process.stdin  # noqa: S101 - as it was asked for
        assert self._process.stdout  # noqa: S101
        self._told, self._said = self._process.stdin, self._process.stdout
        self._code: int | None = None
        started = self._said.readline().decode().strip()
        os.set_blocking(self._said.fileno(), False)
        if not started.isdecimal():
            self.end()
            raise OSError(0, started)
        self.pid = int(started)

    def code(self) -> int | None:
        """Return the command's exit code; None while it runs."""
        if self._code is None and (line := self._said.read(_LINE)):
            self._code = int(line)
        return self._process.poll() if self._code is None else self._code

    def send(self, number: int) -> None:
        """Send a signal to the command alone, if it has not ended."""
        if self.code() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def processes(self) -> list[int]:
        """Return the processes that came of it."""
        return descendants(self._process.pid)

    def release(self) -> None:
        """Let all of it go on, with nobody above it; it is not told of any more."""
        self._told.write(_RELEASE)
        self._process.wait()
        self._told.close()
        self._said.close()

    def end(self) -> None:
        """Kill all of it; what cannot be killed is left."""
        self._told.close()
        with suppress(TimeoutExpired):
            self._process.wait(2 * PATIENCE)
        self._process.kill()
        self._process.wait()
        self._code = self.code()
        self._said.close()


def descendants(pid: int) -> list[int]:
    """Return the processes below one; zombies are none."""
    below: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[1-9]*/stat"):
        with suppress(OSError):
            # The name before the last parenthesis may have any characters.
            state, parent, *_ = path.read_text(errors="replace").rpartition(")")[2].split()
            if state != "Z":
                below.setdefault(int(parent), []).append(int(path.parent.name))
    pids = list(below.get(pid, ()))
    for child in pids:
        pids += below.get(child, ())
    return pids


def work(processes: Iterable[int]) -> dict[int, float]:
    """Return for how many seconds each thread was at work, where the kernel tells.

    One that waits for a CPU is at work too: on a busy machine that is most of it.
    """
    times: dict[int, float] = {}
    for path in (p for pid in processes for p in Path(f"/proc/{pid}/task").glob("*/schedstat")):
        with suppress(OSError):
            times[int(path.parent.name)] = sum(map(int, path.read_text().split()[:2])) / 1e9
    return times


def main(output: str, *command: str) -> None:
    """Run a command until standard input ends; tell on standard output if it ends before."""
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    try:
        log = os.open(output, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        child = Popen(command, stdin=DEVNULL, stdout=log, stderr=STDOUT, start_new_session=True)
    except OSError as error:
        _say(error.strerror or "it cannot be run")
        return
    _say(str(child.pid))
    while not select.select([0], [], [], _STEP)[0]:
        _reap(child.pid)
    if os.read(0, 1) == _RELEASE:
        return
    deadline = time.monotonic() + PATIENCE
    while _reap(child.pid) and time.monotonic() < deadline:
        for pid in descendants(os.getpid()):
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(_STEP / 10)


def _reap(first: int) -> bool:
    """Collect what has ended, and tell how the first one did; return whether any is left."""
    try:
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            if ended[0] == first:
                _say(str(os.waitstatus_to_exitcode(ended[1])))
    except ChildProcessError:
        return False
    return True


def _say(line: str) -> None:
    with suppress(BrokenPipeError):
        os.write(1, f"{line}\n".encode())


if __name__ == "__main__":
    main(*sys.argv[1:])
