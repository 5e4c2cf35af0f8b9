"""Kept: the namespaces of one node, which a keeper ends together with this program."""

import sys
from pathlib import Path
from subprocess import PIPE, Popen

from e2e.node import keeper

_PATIENCE = 120.0


class Kept:
    """Namespaces whose first process is `pid`; the cgroup goes with them, `directory` after."""

    def __init__(self, directory: Path, log: Path) -> None:
        directory.mkdir(mode=0o700, parents=True)
        # Isolated and without site-packages: quick, and nothing of the user's runs in it.
        command = [sys.executable, "-I", "-S", keeper.__file__, str(directory)]
        with log.open("ab") as output:
            self._keeper = Popen(
                command, stdin=PIPE, stdout=PIPE, stderr=output, start_new_session=True
            )
        assert self._keeper.stdout is not None
        told = self._keeper.stdout.readline().decode().split()
        if not told:
            self.release()
            raise RuntimeError(f"no namespaces: {log.read_text('utf-8')}")
        self.directory = directory
        self.pid = int(told[0])
        self.cgroup = told[1]

    def entering(self) -> list[str]:
        """Return the words before a command that is to run in the namespaces."""
        return ["nsenter", "--target", str(self.pid), *keeper.NAMESPACES, "--"]

    def release(self) -> None:
        """End everything in the namespaces, and wait for that, though not for the directory."""
        assert self._keeper.stdin is not None
        assert self._keeper.stdout is not None
        self._keeper.stdin.close()
        self._keeper.wait(_PATIENCE)
        self._keeper.stdout.close()
