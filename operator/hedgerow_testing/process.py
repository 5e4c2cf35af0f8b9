"""Process: the operator under test, of any language, started as its user starts it."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from subprocess import TimeoutExpired
from typing import TYPE_CHECKING, Protocol, Self

from hedgerow_testing.supervisor import Supervised
from hedgerow_testing.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from hedgerow_testing.api import Object

_KIB = 1024


class OperatorProcess:
    """One process, its children included; its output is in a file.

    It ends with the test, and with the test run even if that is killed.
    """

    def __init__(
        self,
        command: Sequence[str | Path],
        *,
        kubeconfig: Path,
        log: Path,
        user: str = "",
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> None:
        self._command = [str(part) for part in command]
        self.user, self.log, self.kubeconfig = user, log, kubeconfig
        own = {"KUBECONFIG": str(kubeconfig), "PYTHONUNBUFFERED": "1"}
        self._environment = {**os.environ, **own, **(env or {})}
        self._cwd = cwd
        self._process: Supervised | None = None
        self._begins = 0

    def __enter__(self) -> Self:
        """Start it, if it is not running yet; nothing of it goes on if it does not start."""
        if not self.running:
            try:
                self.start()
            except BaseException:
                # `__exit__` is not called then.
                self.kill()
                raise
        return self

    def __exit__(self, *_: object) -> None:
        """End it without a grace period."""
        self.kill()

    def start(self, until: Callable[[], object] | str = "", *, within: float = 60.0) -> Self:
        """Start it and wait until its output has a text, or until a condition holds.

        Raises AssertionError with the end of its output if it ends before that, or if the time is
        over.
        """
        self.kill()
        self._begins = len(self._text())
        self._process = Supervised(self._command, self._environment, self._cwd, self.log)
        self.wait_for(until, within=within)
        return self

    def wait_for(self, until: Callable[[], object] | str, *, within: float = 60.0) -> None:
        """Wait until its output has a text, or until a condition holds, while it runs."""
        look = (lambda: until in self.output) if isinstance(until, str) else until
        try:
            eventually(lambda: look() or not self.running, within, f"wait for {until!r}")
        except AssertionError as error:
            raise self._failed(str(error)) from None
        if not self.running:
            raise self._failed(f"it ended with exit code {self._started().code()}")

    def stop(self, number: int = signal.SIGTERM, *, within: float = 60.0) -> int:
        """Send a signal and return the exit code. Raises TimeoutExpired if it goes on."""
        process = self._started()
        process.send(number)
        try:
            eventually(lambda: process.code() is not None, within)
        except AssertionError:
            raise TimeoutExpired(self._command, within) from None
        code = process.code()
        assert code is not None  # noqa: S101 - as was waited for
        return code

    def kill(self) -> None:
        """End it and its children at once; nothing happens if they have ended."""
        if self._process is not None:
            self._process.end()

    def release(self) -> None:
        """Let it go on, whatever becomes of this program; nothing here ends it any more."""
        self._started().release()
        self._process = None

    @property
    def running(self) -> bool:
        """Whether it was started and has not ended."""
        return self._process is not None and self._process.code() is None

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._started().pid

    @property
    def output(self) -> str:
        """Its output since the last start, to stdout and stderr."""
        return self._text()[self._begins :]

    @property
    def cpu(self) -> float:
        """The seconds of CPU it has used since the last start, threads included (Linux only)."""
        fields = Path(f"/proc/{self.pid}/stat").read_text("ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def peak(self) -> int:
        """The most resident memory in bytes since the last start (Linux only)."""
        lines = Path(f"/proc/{self.pid}/status").read_text("ascii").splitlines()
        fields = dict(line.split(":", 1) for line in lines)
        return int(fields["VmHWM"].split()[0]) * _KIB

    def _started(self) -> Supervised:
        if self._process is None:
            raise AssertionError(f"not started: {' '.join(self._command)}")
        return self._process

    def _failed(self, why: str) -> AssertionError:
        last = "\n".join(self.output.splitlines()[-20:])
        return AssertionError(f"{' '.join(self._command)}: {why}\n{last}")

    def _text(self) -> str:
        return self.log.read_text("utf-8", errors="replace") if self.log.exists() else ""


class StartOperator(Protocol):
    """The type of the fixture `operator_process`."""

    def __call__(
        self,
        command: Sequence[str | Path],
        *,
        until: Callable[[], object] | str | None = None,
        within: float = 60.0,
        user: str = "",
        rules: Sequence[Object] | None = None,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> OperatorProcess:
        """Start an operator as a user of its own, and return it once it is ready.

        It is ready when its output has the text `until`, when that condition holds, or, without
        one, when it has opened a watch. It finds the sandbox by KUBECONFIG, and may do all there,
        or only what the `rules` of a ClusterRole grant. It ends with the test.
        """
        ...
