"""Killed: a program that gets SIGKILL once something can be observed; frozen: one without time."""

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psutil

from hedgerow_testing.waiting import eventually


def killed(script: str, *arguments: object, once: Callable[[], object]) -> None:
    """Run a script, kill it without warning once the condition holds, and wait until it is gone."""
    command = [sys.executable, "-c", script, *map(str, arguments)]
    with subprocess.Popen(command) as program:
        try:
            eventually(once)
        finally:
            program.send_signal(signal.SIGKILL)


@contextmanager
def frozen(pid: int) -> Iterator[None]:
    """Have a process do nothing meanwhile; nothing closes."""
    process = psutil.Process(pid)
    process.suspend()
    eventually(lambda: process.status() == psutil.STATUS_STOPPED, what="frozen")
    try:
        yield
    finally:
        process.resume()
