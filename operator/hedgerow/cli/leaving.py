"""Leaving: a command that has begun nothing yet ends well on SIGTERM, also while it is imported."""

from __future__ import annotations

import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Generator


@contextmanager
def leaving_on_sigterm() -> Generator[None]:
    """Exit with 0 on SIGTERM, until something else listens to it.

    The first process of a container ignores a signal that it has not asked for, pid_namespaces(7).
    """
    before = signal.signal(signal.SIGTERM, _leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _leave(*_: Any) -> NoReturn:
    raise SystemExit(0)
