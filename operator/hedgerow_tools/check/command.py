"""Check, as typed: `hedgerow check`, a line for each thing that an installation needs."""

from __future__ import annotations

from typing import Annotated

import anyio
import typer

from hedgerow.cli.connecting import chosen_cluster, connected, of_cluster
from hedgerow.cli.exits import Exit
from hedgerow.cli.flags import check as check_controllers
from hedgerow.cli.options import controllers_option
from hedgerow.cli.output import echo
from hedgerow.cli.program import program_name, registry, typed
from hedgerow.settings import Settings
from hedgerow.texts import escaped

WhichControllers = Annotated[list[str] | None, controllers_option("Check for these controllers")]
Namespaces = Annotated[
    list[str] | None,
    typer.Option(
        "--namespace",
        "-n",
        metavar="NAMESPACE,…",
        help="The namespaces to which the operator is limited; commas or repeated.",
        show_default="all",
    ),
]
Instance = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="The name of the installation, if the cluster has several.",
        envvar="HEDGEROW_INSTANCE",
        show_default="none",
    ),
]
SystemNamespace = Annotated[
    str | None,
    typer.Option(
        metavar="NAMESPACE",
        help="The operator's own namespace, where its Leases are.",
        envvar="HEDGEROW_SYSTEM_NAMESPACE",
        show_default="that of the program: hedgerow-system",
    ),
]


@of_cluster
def check_command(
    *,
    controllers: WhichControllers = None,
    namespace: Namespaces = None,
    instance: Instance = "",
    system_namespace: SystemNamespace = None,
) -> None:
    """Check what an installation needs, a line for each thing; nothing is changed.

    - the context and the version of the API server
    - each definition: whether it is installed, and that of this version
    - who runs the operator, as the Lease says: an operator without leader election has none
    - the rights that the controllers need and that you lack

    What is missing is marked with ✗. Exit code 0: nothing is missing; 1: something is, or it cannot
    be found out.

    - `kubectl get crd -l app.kubernetes.io/part-of=hedgerow` lists the definitions
    - `kubectl get lease -n hedgerow-system` shows who leads
    - `kubectl auth can-i --list` lists your own rights; with
      `--as system:serviceaccount:hedgerow-system:hedgerow`, those of the operator
    """
    from hedgerow.kube.kubeconfig import choose  # noqa: PLC0415
    from hedgerow_tools.check.state import state  # noqa: PLC0415 - not needed for the help

    given = {} if system_namespace is None else {"system_namespace": system_namespace}
    settings = Settings.model_validate(
        {
            "program": program_name(),
            "instance": instance,
            "controllers": tuple(controllers or ()),
            "namespaces": tuple(namespace or ()),
            **given,
        }
    )
    if problem := registry().unknown(settings.controllers):
        raise typer.BadParameter(f"--controllers: {problem}")
    check_controllers(settings.controllers, settings.namespaces)

    async def carry_out() -> bool:
        is_well = True
        async with connected() as cluster:
            chosen = chosen_cluster()
            used = (await choose(chosen.kubeconfig, chosen.context)).context
            echo(escaped(f"✓ context: {used or 'that of this pod'}, {cluster.server}"))
            async for line in state(cluster, settings, registry(), typed()):
                echo(escaped(str(line)))
                is_well &= line.is_well
        return is_well

    raise typer.Exit(Exit.DONE if anyio.run(carry_out) else Exit.FAILED)
