"""Program: what the whole command line is about: its controllers, and whether to show details."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from collections.abc import Generator

    from hedgerow.registry import Registry


@dataclass
class Program:
    """A call of the command line; without a registry its controllers are those installed."""

    registry: Registry | None = None
    debug: bool = False


_called: ContextVar[Program] = ContextVar("hedgerow_program")


@contextmanager
def called(program: Program) -> Generator[None]:
    """Be that program meanwhile."""
    token = _called.set(program)
    try:
        yield
    finally:
        _called.reset(token)


def program() -> Program:
    """Return what this call was made with; a new one outside of any call."""
    return _called.get(None) or Program()


def registry() -> Registry:
    """Return the controllers of this program; one that cannot be loaded is told in one line."""
    call = program()
    if call.registry is None:
        from hedgerow.registry import installed  # noqa: PLC0415 - it imports every controller

        call.registry = installed(lambda line: typer.echo(f"hedgerow: {line}", err=True))
    return call.registry
