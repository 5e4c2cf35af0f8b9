"""Install: `hedgerow install` and `hedgerow uninstall`, and what they print."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import anyio
import typer

from hedgerow.cli.connecting import Context, Kubeconfig, connected
from hedgerow.cli.exits import Exit
from hedgerow.cli.install import definitions
from hedgerow.cli.install.definitions import DefinitionChange, field_manager
from hedgerow.cli.options import controllers_option, dry_run_option, output_option
from hedgerow.cli.output import echo_data, echo_lines
from hedgerow.cli.program import program_name, registry, say, typed
from hedgerow.manifest import to_yaml
from hedgerow.settings import Settings
from hedgerow.terminal import Terminal, one_line
from hedgerow.version import untested

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.console import Console

    from hedgerow.kube.cluster import Cluster
    from hedgerow_schemas.base import CustomResource

    Resources = Sequence[type[CustomResource]]

Plain = Annotated[
    bool,
    typer.Option(
        "--plain",
        help="Leave the descriptions of Kubernetes's own types out; they make `kubectl explain`"
        " tell more and the definition five times as large.",
    ),
]
DryRun = Annotated[
    bool, dry_run_option("Print the definitions as YAML and, on standard error, what would happen.")
]
DeleteResources = Annotated[
    bool,
    typer.Option(
        "--delete-resources",
        help="Delete every custom resource too, in all namespaces, and with them their children.",
    ),
]


Output = Annotated[
    Literal["text", "json"],
    output_option("json: what happened to each definition; with --dry-run, in place of the YAML."),
]
WhichControllers = Annotated[
    list[str] | None, controllers_option("Only the custom resources of these controllers")
]


def install_command(
    *,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    controllers: WhichControllers = None,
    plain: Plain = False,
    dry_run: DryRun = False,
    output: Output = "text",
) -> None:
    """Install the custom resources by server-side apply, and wait until they are served.

    Nothing is forced: a definition that another field manager holds is shown and left as it
    is. Run twice, the second run changes nothing. Exit code 3 means a conflict.

    With -o json, `definitions` has for each one its `name`, the `action` (created, configured,
    unchanged or conflicted), its size in `bytes`, and as `conflicts` each `path` that another
    `manager` holds. `dryRun` says whether it was only tried.

    By hand: hedgerow install --dry-run | kubectl apply --server-side
    --field-manager=hedgerow-install -f -
    """
    names = Settings(controllers=tuple(controllers or ())).controllers
    if told := registry().unknown(names):
        raise typer.BadParameter(f"--controllers: {told}")
    installed = registry().limited(names).resources
    resources = tuple(definitions.rendered(installed, program_name(), say))

    lacking = Exit.FAILED if len(resources) < len(installed) else Exit.DONE
    if not resources:
        if not lacking:
            say(f"nothing to install: no custom resource belongs to {', '.join(names)}")
        if output == "json":
            echo_data(as_data((), dry_run=dry_run))
        raise typer.Exit(lacking)

    async def carry_out() -> int:
        async with connected(kubeconfig, context) as cluster:
            return await run_install(
                cluster, resources, plain=plain, dry_run=dry_run, output=output
            )

    raise typer.Exit(anyio.run(carry_out) or lacking)


def uninstall_command(
    *,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    delete_resources: DeleteResources = False,
) -> None:
    """Remove the custom resources' definitions, and wait until they are gone.

    The command removes the definitions of opt-in controllers as well.

    It refuses, and deletes nothing, while any custom resource exists, or if somebody else installed
    a definition. Before it looks for resources the last time, it makes the definitions refuse new
    ones. One kind of resource can still be lost: the API server had accepted it before that, and
    stores it more than three seconds later, because an admission webhook kept it waiting.

    By hand: kubectl delete customresourcedefinition bluegreens.app.demo.kakao.com
    memcacheds.memcached.cache.example.com cronjobs.batch.tutorial.kubebuilder.io
    """
    resources = registry().resources

    async def carry_out() -> int:
        async with connected(kubeconfig, context) as cluster:
            return await run_uninstall(cluster, resources, delete_resources=delete_resources)

    raise typer.Exit(anyio.run(carry_out))


async def run_install(
    cluster: Cluster,
    resources: Resources,
    *,
    plain: bool,
    dry_run: bool,
    output: str = "text",
    out: Console | None = None,
) -> int:
    """Install and print what changed; return the exit code. Raises InstallError and KubeError."""
    if warning := untested(await cluster.get("/version")):
        say(warning)
    aside = Terminal(stderr=True)
    shown = aside if dry_run else out or Terminal()
    with aside.status("applying the definitions and waiting until they are served"):
        changes = await definitions.install(
            cluster, resources, plain=plain, dry_run=dry_run, program=program_name()
        )
    if output == "json":
        echo_data(as_data(changes, dry_run=dry_run))
    else:
        if dry_run:
            echo_lines(to_yaml(*(change.definition for change in changes)), nl=False)
        for change in changes:
            _say(shown, *told(change, plain=plain, dry_run=dry_run))
    return Exit.CONFLICT if any(change.conflicts for change in changes) else Exit.DONE


async def run_uninstall(
    cluster: Cluster,
    resources: Resources,
    *,
    delete_resources: bool,
    out: Console | None = None,
) -> int:
    """Uninstall and print what changed; return the exit code. Raises InstallError and KubeError."""
    with Terminal(stderr=True).status("deleting the definitions and waiting until they are gone"):
        changes = await definitions.uninstall(
            cluster, resources, delete_resources=delete_resources, program=program_name()
        )
    _say(out or Terminal(), *(str(change) for change in changes))
    return Exit.DONE


def as_data(changes: Iterable[DefinitionChange], *, dry_run: bool) -> dict[str, Any]:
    """Return what happened to each definition, for programs."""
    return {"dryRun": dry_run, "definitions": [_listed(change) for change in changes]}


def _listed(change: DefinitionChange) -> dict[str, Any]:
    return {
        "name": change.name,
        "action": change.action,
        "bytes": definitions.size(change.definition),
        "conflicts": [{"path": held.path, "manager": held.manager} for held in change.conflicts],
    }


def told(change: DefinitionChange, *, plain: bool, dry_run: bool = False) -> Iterable[str]:
    """Yield the lines of a change: what happened, the conflicts, and how to take these over."""
    kind = "without upstream descriptions" if plain else "described by this cluster's OpenAPI"
    size = f"{definitions.size(change.definition) / 1000:.0f} kB"
    yield f"{change}{' (dry run)' if dry_run else ''}: {size}, {kind}"
    for held in change.conflicts:
        yield f"  {held.path} is held by {held.manager} with another value: left as it is"
    if change.conflicts:
        option = " --plain" if plain else ""
        yield (
            f"  to take it over: {typed()} install --dry-run{option} | kubectl apply"
            f" --server-side --force-conflicts --field-manager={field_manager(program_name())} -f -"
        )


def _say(console: Console, *lines: str) -> None:
    for line in lines:
        console.print(one_line(line), soft_wrap=True)
