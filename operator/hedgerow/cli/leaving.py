"""Leaving: a command that has not started its work yet ends with 0 on SIGTERM."""

from __future__ import annotations

import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Generator


@contextmanager
def leaving_on_sigterm() -> Generator[None]:
    """Exit with 0 on SIGTERM, until other code handles it.

    The first process of a container ignores signals that it has no handler for, pid_namespaces(7).
    """
    before = signal.signal(signal.SIGTERM, _leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _leave(*_: Any) -> NoReturn:
    raise SystemExit(0)
