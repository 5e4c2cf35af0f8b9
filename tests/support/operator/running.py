"""Operator: `hedgerow run` as a process of its own, as a user starts it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Self

from hedgerow_testing.process import OperatorProcess
from support.programs.killed import frozen

PORTLESS = ("--metrics-bind-address", "0", "--health-probe-bind-address", "0")
"""Any number of operators run side by side: none of them may want a port."""
QUIET = Path(__file__).with_name("quiet.py")
"""The program: tests count writes, and Normal Events have tests of their own."""


class Operator(OperatorProcess):
    """One operator process; its log is JSON lines in a file."""

    def __init__(
        self,
        kubeconfig: Path,
        log: Path,
        *flags: str,
        procs: Path | None = None,
        normal_events: bool = False,
        **environment: str,
    ) -> None:
        """Lay it out; with `procs`, its cgroup is the one to which that file belongs."""
        program = ("-m", "hedgerow") if normal_events else (str(QUIET),)
        command = [
            *(sys.executable, *program, "run", "--log-format", "json"),
            *("--kubeconfig", str(kubeconfig), *PORTLESS, *flags),
        ]
        if procs:
            entered = 'echo $$ > "$0" && exec "$@"'
            command = ["sh", "-c", entered, str(procs), *command]
        super().__init__(command, kubeconfig=kubeconfig, log=log, env=environment)

    def frozen(self) -> AbstractContextManager[None]:
        """Have it do nothing meanwhile, as a process that gets no time does."""
        return frozen(self.pid)

    def start(self) -> Self:
        """Start it and wait until its caches are filled."""
        # One that must be elected may first have to wait for a Lease to run out.
        return super().start(lambda: self.logged("caches are filled"), within=90)

    def logged(self, event: str) -> list[dict[str, Any]]:
        """Return the log's entries of that event since the last start."""
        return [entry for entry in self.entries() if entry.get("event") == event]

    def entries(self) -> list[dict[str, Any]]:
        """Return every log entry since the last start."""
        lines = self.output.splitlines()
        return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]

    def complaints(self) -> list[dict[str, Any]]:
        """Return what was logged as a warning or worse since the last start."""
        return [entry for entry in self.entries() if entry.get("level") not in ("info", "debug")]


RunAs = Callable[..., Operator]
"""Runs it as a user: takes a sandbox, the user's name, and flags."""
