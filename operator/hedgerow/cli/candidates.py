"""Candidates: the kinds and objects of a cluster that a shell offers when Tab is pressed.

A shell waits for them, so that the cluster has a short time to answer. Whatever goes wrong, nothing
is offered and nothing is said.
"""

from __future__ import annotations

import io
import os
import signal
from contextlib import contextmanager, redirect_stderr, suppress
from typing import TYPE_CHECKING, Any, Final

import anyio
import typer  # noqa: TC002 - typer reads the annotations of what completes

from hedgerow.cli.connecting import ClusterChoice, connected

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator

    from hedgerow.kube.cluster import Cluster
    from hedgerow_schemas.base import Object

SECONDS: Final = 2.0
"""After that the process ends: a shell started it for this answer alone."""


def kinds(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the kinds that a word may become."""

    async def ask(cluster: Cluster) -> list[str]:
        from hedgerow.cli.discovery import kinds as served  # noqa: PLC0415 - a shell waits

        return await served(cluster)

    return _asked(ctx, incomplete.lower(), ask)


def objects(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return what may become of KIND/NAME or of the words KIND NAME: kinds, then names."""
    kind, slash, _ = incomplete.partition("/")
    words = [*(ctx.params.get("target") or ())]
    if slash and not words:
        return _named(ctx, incomplete, kind, f"{kind}/")
    if words:
        return _named(ctx, incomplete, words[0]) if len(words) == 1 and "/" not in words[0] else []
    return kinds(ctx, incomplete)


def slashed(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return what may become of KIND/NAME, once the kind is there."""
    kind, slash, _ = incomplete.partition("/")
    return _named(ctx, incomplete, kind, f"{kind}/") if slash else []


def bluegreens(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the names of BlueGreens that a word may become."""
    from hedgerow_schemas.bluegreen import BlueGreen  # noqa: PLC0415 - as below

    return _named(ctx, incomplete, f"{BlueGreen.api.plural}.{BlueGreen.api.group}")


def _named(ctx: typer.Context, incomplete: str, kind: str, prefix: str = "") -> list[str]:
    async def ask(cluster: Cluster) -> list[str]:
        from hedgerow.cli.discovery import find  # noqa: PLC0415 - as above
        from hedgerow.kube.errors import KubeError  # noqa: PLC0415 - as above

        place = "" if ctx.params.get("all_namespaces") else cluster.namespace
        meant = await find(cluster, kind)
        names: list[str] = []
        for api in (meant.api, *meant.others):  # some commands take a word for a kind of ours first
            with suppress(KubeError):
                there = place if api.namespaced else ""
                listing = await cluster.list(api, there, reduce=_name, partial=True)
                names += [prefix + obj["metadata"]["name"] for obj in listing.items]
        return names

    return _asked(ctx, incomplete, ask)


def _name(obj: Object) -> Object:
    return {"metadata": {"name": obj["metadata"]["name"]}}


def _asked(
    ctx: typer.Context, incomplete: str, ask: Callable[[Cluster], Awaitable[list[str]]]
) -> list[str]:
    """Return those of a cluster's candidates that begin so, sorted; none after any error."""
    given: dict[str, Any] = ctx.params
    choice = ClusterChoice(given.get("kubeconfig"), given.get("context"), given.get("namespace"))

    async def answer() -> list[str]:
        async with connected("completion", choice) as cluster:
            return await ask(cluster)

    with _hurried(), redirect_stderr(io.StringIO()), suppress(Exception):
        names = anyio.run(answer)
        fitting = (name for name in names if name.startswith(incomplete) and name.isprintable())
        return sorted(set(fitting))
    return []


def _end(_number: int, _frame: object) -> None:
    os._exit(0)


@contextmanager
def _hurried() -> Generator[None]:
    """End the process in silence if this takes long.

    Cancelling is not enough: looking a name up, or a credential plugin, goes on in a thread that
    the end of the event loop waits for.
    """
    before = signal.signal(signal.SIGALRM, _end)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
