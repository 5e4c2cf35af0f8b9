"""Program: what the whole command line is about: its name, controllers, and level of detail."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hedgerow.cli.output import echo
from hedgerow.objects import PROGRAM, Installation, variable_prefix

if TYPE_CHECKING:
    from collections.abc import Generator

    from hedgerow.registry import Registry


@dataclass
class ProgramCall:
    """A call of the command line; without a registry its controllers are hedgerow's own."""

    registry: Registry | None = None
    debug: bool = False
    name: str = PROGRAM
    command: str = ""
    """How it was called, as in `python guestbook.py`; empty if by its name."""
    logs_json: bool = False
    """Whether standard error is a log of JSON lines, so that whatever is said there is one."""


_called: ContextVar[ProgramCall] = ContextVar("hedgerow_program")


@contextmanager
def called(program: ProgramCall) -> Generator[None]:
    """Be that program meanwhile."""
    token = _called.set(program)
    try:
        yield
    finally:
        _called.reset(token)


def program() -> ProgramCall:
    """Return what this call was made with; a new one outside of any call."""
    return _called.get(None) or ProgramCall()


def program_name() -> str:
    """Return the program's name."""
    return program().name


def typed() -> str:
    """Return how the program was called, as it is typed again in a hint."""
    return program().command or program_name()


def installation(instance: str = "") -> Installation:
    """Return an installation of this program."""
    return Installation(instance, program_name())


def completion_variable(name: str) -> str:
    """Return the variable by which a shell asks the program of this name for completions."""
    return f"_{variable_prefix(name)}COMPLETE"


def field_manager() -> str:
    """Return the field manager of this command line itself."""
    return installation().common_manager("cli")


def say(line: str) -> None:
    """Print a message of one line on standard error; in a log it is a warning."""
    if program().logs_json:
        from hedgerow.runtime.logs import json_log  # noqa: PLC0415 - for commands that log

        json_log().warning(line)
        return
    echo(f"{program_name()}: {line}", err=True)


def registry() -> Registry:
    """Return the controllers of this program."""
    call = program()
    if call.registry is None:
        from hedgerow.registry import ours  # noqa: PLC0415 - it imports every controller

        call.registry = ours()
    return call.registry
