"""Broken pipes: output whose reader leaves, as `head` does, ends a command in good order."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator


@contextmanager
def quiet() -> Generator[None]:
    """Print in this context; it ends early, and without an error, when nobody reads any more.

    Libraries turn a broken pipe into an exit with code 1, which would tell of a failure.
    """
    try:
        yield
        sys.stdout.flush()
    except (BrokenPipeError, SystemExit) as error:
        if not _is_broken_pipe(error):
            raise
        silence()


def silence() -> None:
    """Have what is still to be flushed go nowhere; else the interpreter complains at its exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.__stdout__.fileno() if sys.__stdout__ else nowhere)
    os.close(nowhere)


def _is_broken_pipe(error: BaseException) -> bool:
    return isinstance(error, BrokenPipeError) or isinstance(error.__context__, BrokenPipeError)
