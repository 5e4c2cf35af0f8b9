"""Shards, as typed: `hedgerow shards`, which replica serves what, live if asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import anyio
import typer

from hedgerow.cli.connecting import Context, Kubeconfig, connected
from hedgerow.cli.exits import CommandError
from hedgerow.cli.interrupts import EXIT_BY_SIGNAL
from hedgerow.cli.options import TableOutput, Watch
from hedgerow.cli.program import program_name, typed
from hedgerow.settings import Settings

if TYPE_CHECKING:
    from hedgerow.cli.shards.look import WatchedShards

SystemNamespace = Annotated[
    str | None,
    typer.Option(
        metavar="NAMESPACE",
        help="The operator's own namespace, where its Leases are.",
        show_default="that of the program: hedgerow-system",
    ),
]
Instance = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="The name of the installation, if the cluster has several.",
        show_default="none",
    ),
]


def shards_command(
    *,
    system_namespace: SystemNamespace = None,
    instance: Instance = "",
    watch: Watch = False,
    output: TableOutput = "table",
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Show which replica of the operator serves which share of the namespaces.

    For operators that run with `--shards`. The command reads the Leases of the replicas in the
    operator's own namespace, and nothing else; a replica is silent if its Lease has run out by this
    machine's clock. Below the table is what nobody serves, and for how long.

    - SLICES: ranges of the hash of a namespace's name, and which part of all hashes they are
    - NAMESPACES, RESOURCES: those that the replica manages; PASSES/S: passes over them
    - LAG: how late its event loop turns; SINCE: when it began

    With -o json, each of `replicas` has these and its `state`, `unserved` has `slices`, `since` and
    `former`, the replica that had them; `assignment` has the `epoch`, `since` and `author` of what
    the `leader` said. With --watch, json is one line for each change.

    By hand: kubectl get leases -n hedgerow-system -l hedgerow.dev/shards=hedgerow -o yaml
    """
    from hedgerow.cli import following  # noqa: PLC0415 - not needed for the help
    from hedgerow.cli.mirror import Mirror  # noqa: PLC0415
    from hedgerow.cli.shards.look import WatchedShards  # noqa: PLC0415
    from hedgerow.cli.shards.view import ShardsView  # noqa: PLC0415

    given = {} if system_namespace is None else {"system_namespace": system_namespace}
    settings = Settings.model_validate({"program": program_name(), "instance": instance, **given})

    async def carry_out() -> tuple[WatchedShards, int]:
        async with connected(kubeconfig, context) as cluster:
            place = settings.system_namespace
            watched = WatchedShards(Mirror(cluster), settings.installation, place)
            await watched.read()
            if not watched.is_shared:
                raise CommandError(
                    f"no replica of {settings.installation.base} in namespace {place} shares the"
                    f" work: `{typed()} run` has --shards for that; --system-namespace and"
                    " --instance name other installations"
                )
            if not watch:
                return watched, 0
            return watched, await following.watch(watched, ShardsView(watched), output)

    watched, number = anyio.run(carry_out)
    if not watch:
        following.print_once(ShardsView(watched), output)
    elif number:
        raise typer.Exit(EXIT_BY_SIGNAL + number)
