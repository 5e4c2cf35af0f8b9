"""Watch, as typed: `hedgerow watch [KIND]`, what is added, updated and deleted, and by whom."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Literal

import anyio
import typer

from hedgerow.cli import exits
from hedgerow.cli.candidates import kinds
from hedgerow.cli.connecting import connected, of_namespace
from hedgerow.cli.options import all_namespaces_option, output_option, selector_option
from hedgerow_tools.interrupts import EXIT_BY_SIGNAL, until_signal

if TYPE_CHECKING:
    from hedgerow.kube.cluster import Cluster
    from hedgerow_tools.watch.lines import Printer

WatchFormat = Literal["text", "json"]

Kind = Annotated[
    str,
    typer.Argument(
        metavar="KIND[/NAME]",
        autocompletion=kinds,
        help="What to watch, as kubectl takes it: pods, deploy, deployments.apps, deploy/web.",
    ),
]
AllNamespaces = Annotated[bool, all_namespaces_option("Watch in all namespaces.")]
Selector = Annotated[str, selector_option("Watch only objects", default="all")]
Output = Annotated[WatchFormat, output_option("json is one object a line, for programs.")]


@of_namespace
def watch_command(
    kind: Kind = "pods",
    *,
    all_namespaces: AllNamespaces = False,
    selector: Selector = "",
    output: Output = "text",
) -> None:
    """Print each object that is added, updated or deleted, with what changed and by whom.

    The command goes on until Ctrl-C. First it reads the existing objects and prints `synced`. An
    update names the changed fields, and the field managers that wrote them if the managed fields
    record them. After a lost connection, a restarted server or an expired version the command lists
    the objects again: it prints each deletion that happened meanwhile once, and invents none. It
    never prints values.

    - `kubectl get deployments --watch -o yaml --show-managed-fields` shows whole objects to compare
    """
    word, slash, name = kind.partition("/")
    if not word or "/" in name or bool(slash) != bool(name):
        raise typer.BadParameter(f"{kind!r} is no KIND[/NAME], such as pods or deployment/web")
    if name and all_namespaces:
        raise typer.BadParameter("an object has one namespace: leave out --all-namespaces")

    async def carry_out() -> int:
        from hedgerow.cli.targets import found_kind
        from hedgerow.runtime.clock import SystemClock
        from hedgerow_tools.watch.lines import Printer, Scope

        async with connected() as cluster:
            api = await found_kind(cluster, word)
            everywhere = all_namespaces or not api.namespaced
            scope = Scope(api, "" if everywhere else cluster.namespace)
            printer = Printer(scope, SystemClock(), for_programs=output == "json")
            return await _watch(cluster, printer, selector, name)

    number = anyio.run(carry_out)
    if number:
        raise typer.Exit(EXIT_BY_SIGNAL + number)


async def _watch(cluster: Cluster, printer: Printer, selector: str, name: str) -> int:
    """Print until a signal, and return its number; 0 if nobody reads the output any more."""
    # ruff: noqa: PLC0415
    from hedgerow.kube.errors import Invalid
    from hedgerow_tools.watch.informer import inform

    scope = printer.scope

    async def watch() -> None:
        where = cluster, scope.api, scope.namespace
        await inform(*where, labels=selector, name=name, printer=printer)

    number = 0
    try:
        number = await until_signal(watch)
    except BrokenPipeError:
        exits.silence()
    except Invalid as error:
        if selector and error.code == HTTPStatus.BAD_REQUEST:
            raise typer.BadParameter(f"--selector: {error.message}") from error
        raise
    return number
