"""Connecting: which cluster a command is about, as kubectl takes it, and the way there."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from hedgerow.cli.program import program_name
from hedgerow.version import user_agent

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from hedgerow.kube.cluster import Cluster

Kubeconfig = Annotated[
    str | None,
    typer.Option(
        metavar="FILE", help="Kubeconfig to use.", show_default="$KUBECONFIG, ~/.kube/config"
    ),
]
Context = Annotated[
    str | None, typer.Option(metavar="NAME", help="Context to use.", show_default="current")
]


PATIENCE: Final = 60.0
"""Seconds for each request of a command, unless --request-timeout names others."""
_patience: Final = ContextVar("patience", default=PATIENCE)
_ENDLESS: Final = 7 * 24 * 3600.0
"""Stands for no timeout."""


def seconds(text: str) -> float:
    """Return a duration as kubectl takes it: 90, 30s, 1m30s; 0 means none. Raises BadParameter."""
    from hedgerow.schedule.durations import nanoseconds  # noqa: PLC0415 - not needed for the help

    is_number = text.isascii() and text.isdecimal()
    try:
        total = nanoseconds(f"{text}s" if is_number else text) / 1e9
    except ValueError:
        total = -1
    if total < 0:
        raise typer.BadParameter(f"{text!r:.60} is no duration, such as 30s or 2m")
    return min(total, _ENDLESS) or _ENDLESS


def _keep(text: str) -> None:
    _patience.set(seconds(text))


_RequestTimeout = Annotated[
    str,
    typer.Option(
        metavar="DURATION",
        help="How long one request may take, as for kubectl: 30s, 2m; 0 is without end.",
        expose_value=False,
        callback=_keep,
    ),
]


def timeout_options() -> list[Any]:
    """Return --request-timeout, which `connected` reads, for a command that asks a cluster."""
    app = typer.Typer(add_completion=False)
    app.command()(_nothing)
    made: Any = typer.main.get_command(app)
    return made.params


def _nothing(*, request_timeout: _RequestTimeout = f"{PATIENCE:.0f}s") -> None:
    """Have this option."""


def connected(
    kubeconfig: str | None, context: str | None, purpose: str = ""
) -> AbstractAsyncContextManager[Cluster]:
    """Log in; the API server's logs name the version, and `purpose` where there is one.

    What is logged from now on goes to standard error, for people: the output is the command's own.
    """
    from hedgerow.kube.client import connect  # noqa: PLC0415 - not needed for the help
    from hedgerow.runtime import logs  # noqa: PLC0415 - as above

    logs.configure("human")
    agent = user_agent(program_name(), purpose)
    patience = _patience.get()
    return connect(kubeconfig=kubeconfig, context=context, user_agent=agent, patience=patience)
