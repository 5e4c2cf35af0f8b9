"""Broken pipes: if the reader of the output exits, such as `head`, the command ends normally."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator


@contextmanager
def quiet() -> Generator[None]:
    """Print in this context; it ends early and without an error if nobody reads any more.

    Libraries turn a broken pipe into an exit with code 1, which would look like a failure.
    """
    try:
        yield
        sys.stdout.flush()
    except (BrokenPipeError, SystemExit) as error:
        if not _is_broken_pipe(error):
            raise
        silence()


def silence() -> None:
    """Discard output that is not flushed yet; otherwise the interpreter complains at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.__stdout__.fileno() if sys.__stdout__ else nowhere)
    os.close(nowhere)


def _is_broken_pipe(error: BaseException) -> bool:
    return isinstance(error, BrokenPipeError) or isinstance(error.__context__, BrokenPipeError)
