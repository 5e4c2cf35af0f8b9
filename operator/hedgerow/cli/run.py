"""Run: the operator in the foreground, with what it lacks said before it begins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import anyio
import typer

from hedgerow import app, preflight
from hedgerow.runtime.logs import configure
from hedgerow.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterable

Names = Annotated[
    list[str] | None,
    typer.Option(
        "--controllers",
        metavar="NAME,…",
        help="Run these controllers only; commas or repeated.",
        show_default="all",
    ),
]
Namespaces = Annotated[
    list[str] | None,
    typer.Option(
        "--namespace",
        "-n",
        metavar="NAMESPACE",
        help="Look at this namespace only; may be repeated. Needs no cluster-wide permission.",
        show_default="all",
    ),
]
Instance = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="Tell this installation from another in the same cluster: it becomes part of the"
        " field managers and of the label on children.",
        show_default="none",
    ),
]
Kubeconfig = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Kubeconfig to use.",
        show_default="$KUBECONFIG, ~/.kube/config, the pod's own",
    ),
]
Context = Annotated[
    str | None,
    typer.Option("--context", metavar="NAME", help="Context to use.", show_default="current"),
]
LogFormat = Annotated[
    Literal["auto", "human", "json"],
    typer.Option(help="Log for people or as JSON lines; auto: for people on a terminal."),
]


def run(  # noqa: PLR0917 - the parameters are the command's flags, never positional
    context: typer.Context,
    controllers: Names = None,
    namespace: Namespaces = None,
    instance: Instance = "",
    kubeconfig: Kubeconfig = None,
    kube_context: Context = None,
    log_format: LogFormat = "auto",
) -> None:
    """Run the operator in the foreground until Ctrl-C or SIGTERM.

    It writes by unforced server-side apply only. What another field manager holds is reported on
    the resource and never overwritten; no object that it does not own is ever changed. It
    waits for what is missing: custom resources that are not installed yet (`hedgerow install`),
    permissions that are not granted yet, an API server that is away.

    - `hedgerow run` runs all controllers in all namespaces
    - `hedgerow run -n shop -n shop-test` looks at two namespaces and no other
    - `hedgerow run --context kind-dev --debug` runs on another cluster, and logs every detail
    """
    settings = Settings(
        controllers=_known(controllers or ()),
        namespaces=tuple(namespace or ()),
        instance=instance,
        kubeconfig=kubeconfig,
        context=kube_context,
        log_format=log_format,
        debug=bool(context.obj),
    )
    configure(settings.log_format, debug=settings.debug)

    async def operate() -> None:
        await preflight.look(settings)
        await app.run(settings)

    anyio.run(operate)


def _known(given: Iterable[str]) -> tuple[str, ...]:
    """Split the names at commas; raises BadParameter for one that is no controller's."""
    names = tuple(name for part in given for name in part.split(",") if name)
    for name in names:
        if name not in app.CONTROLLERS:
            there_are = ", ".join(app.CONTROLLERS)
            raise typer.BadParameter(f"no controller is called {name!r}; there are: {there_are}")
    return names
