"""Install: `hedgerow install` and `hedgerow uninstall`, and what they print."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import anyio
import typer

from hedgerow.cli.connecting import chosen_cluster, connected, of_cluster
from hedgerow.cli.exits import Exit
from hedgerow.cli.install import definitions
from hedgerow.cli.install.definitions import DefinitionChange, field_manager
from hedgerow.cli.install.objects import grant, operate, revoke
from hedgerow.cli.install.operator_objects import checked_image, operator_objects
from hedgerow.cli.options import controllers_option
from hedgerow.cli.output import echo_lines
from hedgerow.cli.program import program_name, registry, say, typed
from hedgerow.cli.terminal import Terminal, one_line
from hedgerow.deploy.manifest import to_yaml
from hedgerow.settings import Settings
from hedgerow.texts import command_line
from hedgerow.version import untested

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rich.console import Console

    from hedgerow.cli.install.objects import ObjectChange
    from hedgerow.kube.cluster import Cluster
    from hedgerow_schemas.base import CustomResource

    Resources = Sequence[type[CustomResource]]

Image = Annotated[
    str | None,
    typer.Option(
        metavar="IMAGE",
        help="Install the operator too, with this image: what `hedgerow manifests` prints.",
        show_default=False,
    ),
]
DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run",
        help="Print the definitions as YAML and, on standard error, what would happen.",
    ),
]
Breaking = Annotated[
    bool,
    typer.Option(
        "--breaking",
        help="Apply a definition even if objects that are there lose fields by it, or become"
        " invalid.",
    ),
]
DeleteResources = Annotated[
    bool,
    typer.Option(
        "--delete-resources",
        help="Delete every custom resource too, in all namespaces, and with them their children.",
    ),
]

WhichControllers = Annotated[
    list[str] | None, controllers_option("Only the custom resources of these controllers")
]


@of_cluster
def install_command(
    *,
    image: Image = None,
    controllers: WhichControllers = None,
    breaking: Breaking = False,
    dry_run: DryRun = False,
) -> None:
    """Install the custom resources by server-side apply, and wait until they are served.

    With them come the ClusterRoles of viewers and editors, which Kubernetes aggregates to `view`,
    `edit` and `admin`, and with --image the operator, for all namespaces; `hedgerow manifests` has
    it in other forms. An object that somebody else has made is left as it is.

    Nothing is forced: a definition that another field manager holds is shown and left as it
    is. Run twice, the second run changes nothing. Exit code 3 means a conflict.

    A definition by which objects that are there would lose fields, or become invalid, is refused
    with what it is and the first of these objects; --breaking applies it. A new CEL rule counts as
    one that they break, since only the API server can try it. Exit code 1 means that one is
    refused.

    - `hedgerow install --dry-run | kubectl apply --server-side
      --field-manager=hedgerow-install -f -` does it by hand
    """
    settings = Settings(controllers=tuple(controllers or ()))
    names = settings.controllers
    if problem := registry().unknown(names):
        raise typer.BadParameter(f"--controllers: {problem}")
    wanted = registry().limited(names).resources
    resources = tuple(definitions.rendered(wanted, program_name(), say))

    operator = operator_objects(checked_image(image), "cluster", settings) if image else []
    lacking = Exit.FAILED if len(resources) < len(wanted) else Exit.DONE
    if not resources and not lacking and not operator:
        say(f"nothing to install: no custom resource belongs to {', '.join(names)}")

    async def carry_out() -> tuple[Sequence[DefinitionChange], Sequence[ObjectChange]]:
        async with connected() as cluster:
            changes = await installed(cluster, resources, dry_run=dry_run, breaking=breaking)
            known, name = registry().resources, program_name()
            roles = await grant(cluster, resources, known, dry_run=dry_run, program=name)
            applied = {role.name for role in roles}
            rest = [obj for obj in operator if obj["metadata"]["name"] not in applied]
            return changes, roles + await operate(cluster, rest, dry_run=dry_run, program=name)

    changes, objects = anyio.run(carry_out) if resources or operator else ((), ())
    again = Again(tuple(controllers or ()), image)
    show(changes, objects, again, dry_run=dry_run)
    actions = {change.action for change in (*changes, *objects)}
    if "refused" in actions:
        raise typer.Exit(Exit.FAILED)
    raise typer.Exit(Exit.CONFLICT if "conflicted" in actions else lacking)


@of_cluster
def uninstall_command(
    *,
    delete_resources: DeleteResources = False,
) -> None:
    """Remove the custom resources' definitions, and wait until they are gone.

    The ClusterRoles of viewers and editors go with them, and the operator that `install --image`
    made, but for its namespace; nothing that somebody else has made does.

    The command removes the definitions of opt-in controllers as well.

    It refuses, and deletes nothing, while any custom resource exists, or if somebody else installed
    a definition. What is created in the moment between that look and the deletion is lost with its
    definition.

    - `kubectl delete customresourcedefinition bluegreens.app.demo.kakao.com
      memcacheds.memcached.cache.example.com cronjobs.batch.tutorial.kubebuilder.io` does it by
      hand, and deletes every resource of these kinds
    """
    resources = registry().resources

    operator = operator_objects("-", "cluster", Settings())
    removed = [obj for obj in reversed(operator) if obj["kind"] != "Namespace"]

    async def carry_out() -> Sequence[DefinitionChange | ObjectChange]:
        async with connected() as cluster:
            gone = await uninstalled(cluster, resources, delete_resources=delete_resources)
            return *gone, *await revoke(cluster, removed, program=program_name())

    _say(Terminal(), *map(str, anyio.run(carry_out)))


async def installed(
    cluster: Cluster, resources: Resources, *, dry_run: bool, breaking: bool = False
) -> Sequence[DefinitionChange]:
    """Install, with a spinner; return what changed. Raises InstallError and KubeError."""
    if warning := untested(await cluster.get("/version")):
        say(warning)
    words = "applying the definitions and waiting until they are served"
    with Terminal(stderr=True).status(words):
        return await definitions.install(
            cluster, resources, dry_run=dry_run, breaking=breaking, program=program_name()
        )


async def uninstalled(
    cluster: Cluster, resources: Resources, *, delete_resources: bool
) -> Sequence[DefinitionChange]:
    """Uninstall, with a spinner; return what changed. Raises InstallError and KubeError."""
    with Terminal(stderr=True).status("deleting the definitions and waiting until they are gone"):
        return await definitions.uninstall(
            cluster, resources, delete_resources=delete_resources, program=program_name()
        )


@dataclass(frozen=True, slots=True)
class Again:
    """What was typed with `install`, and has to be typed with it once more."""

    controllers: tuple[str, ...] = ()
    image: str | None = None

    def command(self, *options: str) -> str:
        """Return the command with these options."""
        chosen = [word for name in self.controllers for word in ("--controllers", name)]
        chosen += ["--image", self.image] if self.image else []
        return command_line(typed(), "install", *options, *chosen, *self._cluster())

    def taking_over(self) -> str:
        """Return the command that takes over what other field managers hold."""
        printed = self.command("--dry-run")
        manager = f"--field-manager={field_manager(program_name())}"
        forced = ("--server-side", "--force-conflicts", manager, *self._cluster(), "-f", "-")
        return f"{printed} | {command_line('kubectl', 'apply', *forced)}"

    def _cluster(self) -> Iterator[str]:
        cluster = chosen_cluster()
        options = ("--kubeconfig", cluster.kubeconfig), ("--context", cluster.context)
        return (word for option, value in options if value for word in (option, value))


_ALONE = Again()


def show(
    changes: Sequence[DefinitionChange],
    objects: Sequence[ObjectChange] = (),
    again: Again = _ALONE,
    *,
    dry_run: bool,
) -> None:
    """Print what an installation changed, or would change."""
    if dry_run:
        # Whoever applies what is printed applies nothing by which objects would lose something.
        printed = (change.definition for change in changes if change.action != "refused")
        echo_lines(to_yaml(*printed, *(obj.body for obj in objects if obj.body)), nl=False)
    shown = Terminal(stderr=dry_run)
    for change in changes:
        _say(shown, *change_lines(change, again, dry_run=dry_run))
    for obj in objects:
        _say(shown, *object_lines(obj, again, dry_run=dry_run))


def change_lines(
    change: DefinitionChange, again: Again = _ALONE, *, dry_run: bool = False
) -> Iterable[str]:
    """Yield the lines of a change: what happened, conflicts and losses, and what to do of them."""
    size = f"{definitions.size(change.definition) / 1000:.0f} kB"
    yield f"{change}{' (dry run)' if dry_run else ''}: {size}"
    for held in change.conflicts:
        yield f"  {held.path} is held by {held.manager} with another value: left as it is"
    for loss in change.losses:
        more = ", …" if loss.count > len(loss.objects) else ""
        yield f"  {loss.what} ({loss.count} of its objects: {', '.join(loss.objects)}{more})"
    if change.action == "refused":
        yield (
            "  objects would lose something, so it is left as it is; to apply it all the same:"
            f" `{again.command('--breaking')}`"
        )
    if change.conflicts:
        yield f"  to take it over: `{again.taking_over()}`"


def object_lines(
    change: ObjectChange, again: Again = _ALONE, *, dry_run: bool = False
) -> Iterable[str]:
    """Yield the lines of an object: what happened to it, and why nothing did."""
    yield f"{change}{' (dry run)' if dry_run else ''}{_NOT_APPLIED.get(change.action, '')}"
    for held in change.conflicts:
        yield f"  {held.path} is held by {held.manager} with another value: left as it is"
    if change.conflicts:
        yield f"  to take it over: `{again.taking_over()}`"


_NOT_APPLIED = {
    "foreign": ": somebody else has made it, and it is left as it is",
    "forbidden": ": you may not write it; without the roles, who has `view` sees none of the kinds",
}


def _say(console: Console, *lines: str) -> None:
    for line in lines:
        console.print(one_line(line), soft_wrap=True)
