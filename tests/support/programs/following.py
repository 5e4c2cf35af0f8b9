"""Following: a command that goes on until it is interrupted, with its output in a file."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

from hedgerow_testing.waiting import eventually


class Following:
    """`hedgerow …` as a process of its own."""

    def __init__(self, kubeconfig: Path, out: Path, *words: str) -> None:
        self._out = out
        with out.open("wb") as file, out.with_suffix(".err").open("wb") as err:
            command = [sys.executable, "-m", "hedgerow", *words, "--kubeconfig", str(kubeconfig)]
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=file, stderr=err, env=os.environ
            )

    @property
    def text(self) -> str:
        return self._out.read_text("utf-8")

    @property
    def errors(self) -> str:
        """What it said on standard error."""
        return self._out.with_suffix(".err").read_text("utf-8")

    def says(self, pattern: str, within: float = 30) -> None:
        def said() -> object:
            return re.search(pattern, self.text, re.MULTILINE)

        try:
            eventually(said, within, what=pattern)
        except AssertionError as error:
            error.add_note(f"{self.text}\n{self.errors}")
            raise

    def interrupt(self) -> int:
        self._process.send_signal(signal.SIGINT)
        return self._process.wait(20)

    def kill(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait(10)
