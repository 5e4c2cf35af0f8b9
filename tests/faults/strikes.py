"""Strikes: what happens to one replica of several, and what ends it."""

from __future__ import annotations

import signal
from collections.abc import Callable

from faults.machine import Operator, World
from faults.troubles import Off

STRIKES = ("killed", "frozen", "cut off", "silent")


def strike(world: World, operator: Operator, fault: str) -> Callable[[], object]:
    """Have something happen to a replica on whose line the trouble is Off; return what ends it."""
    if fault == "killed":
        operator.kill()
        return list
    if fault == "frozen":
        operator.kill(signal.SIGSTOP)
        return lambda: operator.kill(signal.SIGCONT)
    trouble = operator.line.trouble
    assert isinstance(trouble, Off)
    trouble.is_off, trouble.is_silent = True, fault == "silent"
    if fault == "cut off":
        world.proxy.cut(operator.line)

    def end() -> None:
        trouble.is_off = False
        if fault == "silent":
            world.proxy.cut(operator.line)

    return end
