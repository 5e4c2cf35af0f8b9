"""Packages: an operator of somebody else, in a folder of its own, as a process."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType


class Package:
    """A folder with a program, as its author calls it."""

    def __init__(self, program: ModuleType, folder: Path, kubeconfig: Path) -> None:
        self._program = Path(str(program.__file__))
        shutil.copy(self._program, folder)
        self._folder = folder
        self._environment = {**os.environ, "KUBECONFIG": str(kubeconfig), "COLUMNS": "200"}
        self._environment.pop("PYTHONPATH", None)

    def command(self, *words: str) -> list[str]:
        return [sys.executable, self._program.name, *words]

    def call(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*words), cwd=self._folder, env=self._environment, capture_output=True,
            text=True, timeout=120, check=False,
        )  # fmt: skip

    def start(self, log: Path, *words: str) -> subprocess.Popen[bytes]:
        with log.open("wb") as out:
            return subprocess.Popen(
                self.command(*words), cwd=self._folder, env=self._environment, stdout=out,
                stderr=out,
            )  # fmt: skip
