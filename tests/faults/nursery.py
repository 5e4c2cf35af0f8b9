"""Nursery: `hedgerow run` as processes of their own that need not import anything any more.

To start Python and to import the operator takes a second of a core, and a machine full of faults
starts hundreds of operators. So one process imports it once, and forks. What it runs is the very
command, but without Normal Events, each of which would be a place for every fault; and its wall
clock may be set, by a file that holds the seconds it is wrong by.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Self

from hedgerow_testing.waiting import eventually

_DIES_WITH_ITS_PARENT = 1


class Nursery:
    """The process that forks, from outside."""

    def __init__(self) -> None:
        tests = str(Path(__file__).parents[1])
        self._process = subprocess.Popen(
            [sys.executable, "-m", "faults.nursery"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": tests},
        )
        self._lock = threading.Lock()
        self._born: dict[int, int] = {}
        self._ended: dict[int, int] = {}
        self._reader = threading.Thread(target=self._listen, daemon=True)
        self._next = 0

    def __enter__(self) -> Self:
        self._reader.start()
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait(10)
        self._reader.join(10)

    def start(self, arguments: Sequence[str], log: Path, clock: Path | None = None) -> int:
        """Start `hedgerow` with these arguments, and return its pid."""
        assert self._process.stdin
        with self._lock:
            self._next += 1
            number = self._next
            asked = {"number": number, "arguments": list(arguments), "log": str(log)}
            asked["clock"] = str(clock or "")
            self._process.stdin.write(json.dumps(asked).encode() + b"\n")
            self._process.stdin.flush()
        eventually(lambda: number in self._born, what="an operator is born")
        return self._born[number]

    def ended(self, pid: int) -> int | None:
        """Return the exit code of an operator, or None while it runs."""
        return self._ended.get(pid)

    def _listen(self) -> None:
        assert self._process.stdout
        with self._process.stdout as heard:
            for text in heard:
                said = json.loads(text)
                if "number" in said:
                    self._ended.pop(said["pid"], None)  # of an earlier process with this pid
                    self._born[said["number"]] = said["pid"]
                else:
                    self._ended[said["pid"]] = said["code"]


def main() -> None:
    """Import the operator, and fork it whenever told to, until there is nobody to tell."""
    _die_with_parent()
    from hedgerow import cli  # what takes the second
    from hedgerow.cli import run
    from support.operator.quiet import without_normal_events

    assert cli, run
    without_normal_events()
    gc.collect()
    gc.freeze()
    awake, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    heard = b""
    with selectors.DefaultSelector() as selector:
        selector.register(0, selectors.EVENT_READ)
        selector.register(awake, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fd == awake:
                    os.read(awake, 4096)
                    _bury()
                    continue
                chunk = os.read(0, 65536)
                if not chunk:
                    return
                *lines, heard = (heard + chunk).split(b"\n")
                for line in lines:
                    _fork(json.loads(line))


def _say(**said: Any) -> None:
    os.write(1, json.dumps(said).encode() + b"\n")


def _bury() -> None:
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            _say(pid=pid, code=os.waitstatus_to_exitcode(status))


def _fork(asked: dict[str, Any]) -> None:
    pid = os.fork()
    if pid:
        _say(number=asked["number"], pid=pid)
        return
    code = 1
    try:
        code = _live(asked)
    finally:
        os._exit(code)


def _live(asked: dict[str, Any]) -> int:
    """Be an operator, as the command line would be."""
    _die_with_parent()
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    log = os.open(asked["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.closerange(3, 64)
    if asked["clock"]:
        _set_clock(Path(asked["clock"]))
    from hedgerow.cli import main as command

    sys.argv = ["hedgerow", *asked["arguments"]]
    try:
        command()
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    return 0


def _set_clock(file: Path) -> None:
    """Have the wall clock of this process be wrong by as many seconds as a file says."""
    from hedgerow.runtime.clock import SystemClock

    right = SystemClock.now

    def now(self: SystemClock) -> Any:
        wrong = 0.0
        with contextlib.suppress(OSError, ValueError):
            wrong = float(file.read_text("utf-8"))
        return right(self) + timedelta(seconds=wrong)

    SystemClock.now = now  # pyright: ignore[reportAttributeAccessIssue]


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(_DIES_WITH_ITS_PARENT, signal.SIGKILL)


if __name__ == "__main__":
    started = time.monotonic()
    main()
