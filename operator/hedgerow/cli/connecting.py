"""Connecting: which cluster a command is about, as kubectl takes it, and the way there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

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
    return connect(kubeconfig=kubeconfig, context=context, user_agent=agent)
