"""Operator: `hedgerow run` as a process of its own, as a user starts it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import psutil

from hedgerow.testing.waiting import eventually

PORTLESS = ("--metrics-bind-address", "0", "--health-probe-bind-address", "0")
"""Any number of operators run side by side: none of them may want a port."""
QUIET = ("--events", "warnings")
"""Tests count writes; Normal Events, of which some are left out, have tests of their own."""


class Operator:
    """One operator process; its log is JSON lines in a file."""

    def __init__(
        self,
        kubeconfig: Path,
        log: Path,
        *flags: str,
        procs: Path | None = None,
        **environment: str,
    ) -> None:
        """Lay it out; with `procs`, its cgroup is the one to which that file belongs."""
        self._log = log
        self._environment = environment
        self._command = [
            *(sys.executable, "-m", "hedgerow", "run", "--log-format", "json"),
            *("--kubeconfig", str(kubeconfig), *PORTLESS, *QUIET, *flags),
        ]
        if procs:
            entered = 'echo $$ > "$0" && exec "$@"'
            self._command = ["sh", "-c", entered, str(procs), *self._command]
        self._process: subprocess.Popen[bytes] | None = None
        self._begins = 0

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait(10)

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Have it do nothing meanwhile, as a process that gets no time does; nothing closes."""
        assert self._process is not None
        process = psutil.Process(self._process.pid)
        process.suspend()
        eventually(lambda: process.status() == psutil.STATUS_STOPPED, what="frozen")
        try:
            yield
        finally:
            process.resume()

    @property
    def peak(self) -> int:
        """The most resident memory in bytes that it had since the last start."""
        assert self._process is not None
        lines = Path(f"/proc/{self._process.pid}/status").read_text("ascii").splitlines()
        found = dict(line.split(":", 1) for line in lines)
        return int(found["VmHWM"].split()[0]) * 1024

    @property
    def running(self) -> bool:
        return self._process is not None and not self._ended()

    def start(self) -> None:
        """Start it and wait until its caches are filled."""
        self._begins = len(self._text())
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **self._environment},
            )
        # One that must be elected may first have to wait for a Lease to run out.
        filled = "caches are filled"
        eventually(lambda: self.logged(filled) or self._ended(), within=90, what="start")
        assert self._process.poll() is None, self._text()

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Send a signal and give the exit code."""
        assert self._process is not None
        self._process.send_signal(number)
        return self._process.wait(60)

    def logged(self, event: str) -> list[dict[str, Any]]:
        """Return the log's entries of that event since the last start."""
        return [entry for entry in self.entries() if entry.get("event") == event]

    def entries(self) -> list[dict[str, Any]]:
        """Return every log entry since the last start."""
        lines = self._text()[self._begins :].splitlines()
        return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]

    def complaints(self) -> list[dict[str, Any]]:
        """Return what was logged as a warning or worse since the last start."""
        return [entry for entry in self.entries() if entry.get("level") not in ("info", "debug")]

    def _ended(self) -> bool:
        return self._process is not None and self._process.poll() is not None

    def _text(self) -> str:
        return self._log.read_text("utf-8") if self._log.exists() else ""
