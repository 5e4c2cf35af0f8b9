"""Waiting: for a fact, with a deadline, and for as long as a fact has to hold."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
_PAUSE = threading.Event()


def eventually(look: Callable[[], T | None], within: float = 30.0, what: str = "") -> T:
    """Return the first truthy answer of `look`.

    Raises AssertionError with its last answer if there is none within so many seconds.
    """
    deadline = time.monotonic() + within
    while True:
        last = look()
        if last:
            return last
        if time.monotonic() >= deadline:
            raise AssertionError(f"not within {within} s: {what or look} ({last!r})")
        _PAUSE.wait(0.05)


def throughout(hold: Callable[[], object], seconds: float, what: str = "") -> None:
    """Raise AssertionError as soon as `hold` returns something, for so many seconds."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        broken = hold()
        if broken:
            raise AssertionError(f"{what}: {broken!r}")
        _PAUSE.wait(0.25)
