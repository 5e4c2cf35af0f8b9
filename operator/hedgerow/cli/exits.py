"""Exits: how a command ends: its exit codes, SIGTERM before it works, and readers that go away."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import contextmanager
from enum import IntEnum
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Generator

COMMAND_PATH = "command_path"
"""An attribute of errors: the command that raised them."""


class Exit(IntEnum):
    """An exit code; scripts may rely on it."""

    DONE = 0
    FAILED = 1
    """The command was tried and failed, or found something wrong."""
    USAGE = 2
    """The command line or its settings are invalid; nothing was tried."""
    CONFLICT = 3
    """Another field manager holds a field that would be applied, and keeps it."""
    NO_CLUSTER = 4
    """No API server answers, or it does not accept these credentials."""
    PARTIAL = 5
    """About some of what was asked the API server gave no answer in time."""
    INTERRUPTED = 130
    """SIGINT, after cleaning up; other signals also exit with 128 plus their number."""


class CommandError(Exception):
    """Why a command ends without having done what it was asked, with the remedy, as one line."""

    def __init__(self, line: str, exit_code: Exit = Exit.FAILED) -> None:
        super().__init__(line)
        self.exit_code = exit_code


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
