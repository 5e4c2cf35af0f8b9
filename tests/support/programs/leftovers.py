"""Leftovers: the processes of this machine that have to do with a directory."""

import os
from pathlib import Path

import psutil

from hedgerow_testing.waiting import eventually


def leftovers(directory: Path) -> list[str]:
    """Return the command lines that name the directory; zombies and this program do not count."""
    found: list[str] = []
    for process in psutil.process_iter():
        try:
            line = " ".join(process.cmdline())
            running = process.status() != psutil.STATUS_ZOMBIE
        except psutil.Error:
            continue
        if running and str(directory) in line and process.pid != os.getpid():
            found.append(f"{process.pid} {line[:200]}")
    return found


def nothing_left(directory: Path, within: float = 10.0) -> None:
    """Fail unless soon nothing runs that has to do with the directory."""
    eventually(lambda: not leftovers(directory), within, f"left: {leftovers(directory)}")
