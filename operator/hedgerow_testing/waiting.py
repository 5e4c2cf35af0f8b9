"""Waiting: for a fact, with a deadline, and for as long as a fact has to hold."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
_PAUSE = threading.Event()
SHORTEST, LONGEST = 0.05, 0.25
"""Seconds between two looks: at first, and after some seconds."""
WITHIN = 90.0
"""Seconds: well beyond the half minute after which a name that another object has is read again."""


def eventually(look: Callable[[], T | None], within: float = WITHIN, what: str = "") -> T:
    """Return the first truthy answer of `look`, which is called ever more seldom.

    Raises AssertionError with its last answer if there is none within so many seconds.
    """
    began = time.monotonic()
    while True:
        last = look()
        if last:
            return last
        waited = time.monotonic() - began
        if waited >= within:
            raise AssertionError(f"not within {within} s: {what or look} ({last!r})")
        _PAUSE.wait(min(max(SHORTEST, waited / 10), LONGEST))


def throughout(hold: Callable[[], object], seconds: float, what: str = "") -> None:
    """Raise AssertionError as soon as `hold` returns something, for so many seconds."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        broken = hold()
        if broken:
            raise AssertionError(f"{what}: {broken!r}")
        _PAUSE.wait(0.25)
