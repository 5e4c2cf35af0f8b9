"""Eventually: waiting for a fact, with a deadline, and for silence, with a length."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
_PAUSE = threading.Event()


def eventually(look: Callable[[], T], within: float = 30.0, what: str = "") -> T:
    """Return the first truthy answer of `look`; fail with its last answer after the deadline."""
    deadline = time.monotonic() + within
    while True:
        last = look()
        if last:
            return last
        assert time.monotonic() < deadline, f"not within {within} s: {what or look} ({last!r})"
        _PAUSE.wait(0.05)


def throughout(hold: Callable[[], object], seconds: float, what: str = "") -> None:
    """Fail as soon as `hold` gives something during that many seconds."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        broken = hold()
        assert not broken, f"{what}: {broken!r}"
        _PAUSE.wait(0.25)
