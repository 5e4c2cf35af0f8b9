"""Killed: a Python program that gets SIGKILL as soon as something can be observed."""

import signal
import subprocess
import sys
from collections.abc import Callable

from hedgerow.testing.waiting import eventually


def killed(script: str, *arguments: object, once: Callable[[], object]) -> None:
    """Run a script, kill it without warning once the condition holds, and wait until it is gone."""
    command = [sys.executable, "-c", script, *map(str, arguments)]
    with subprocess.Popen(command) as program:
        try:
            eventually(once)
        finally:
            program.send_signal(signal.SIGKILL)
