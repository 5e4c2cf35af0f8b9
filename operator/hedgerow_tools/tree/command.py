"""Tree, as typed: `hedgerow tree NAME`, a resource and all that descends from it, live if asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import anyio
import typer

from hedgerow.cli.candidates import objects
from hedgerow.cli.connecting import connected, of_namespace
from hedgerow.cli.exits import CommandError
from hedgerow.cli.options import Watch, all_namespaces_option, output_option
from hedgerow.cli.program import program_name, registry, say, typed
from hedgerow.cli.targets import joined
from hedgerow.kube.errors import Missing
from hedgerow_tools.interrupts import EXIT_BY_SIGNAL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hedgerow.kube.cluster import Cluster
    from hedgerow_tools.tree.look import WatchedTrees
    from hedgerow_tools.tree.members.resources import RootKind

TreeFormat = Literal["tree", "json", "yaml"]

Target = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[KIND/]NAME",
        autocompletion=objects,
        help="Any object, or one below it: deploy/web, or deploy web; of a kind of hedgerow also"
        " demo, if only one kind has that name, or bluegreens for all of a kind.",
        show_default="all of hedgerow's kinds",
    ),
]
AllNamespaces = Annotated[bool, all_namespaces_option("Look in all namespaces.")]
Output = Annotated[TreeFormat, output_option("With --watch, json is one line for each change.")]


@of_namespace
def tree_command(
    target: Target = None,
    *,
    all_namespaces: AllNamespaces = False,
    watch: Watch = False,
    output: Output = "tree",
) -> None:
    """Show objects with their children: readiness, the last change, and conflicts.

    A child's controller reference names its resource, of hedgerow or of any other operator; an
    object leads to the highest one above it. Below each object are its contested fields. The
    command only reads. It reports which kinds it may not read, and leaves them out.

    - `kubectl get deployments,replicasets,pods,jobs,services -o yaml --show-managed-fields` shows
      what the API server has
    """
    from hedgerow_tools.render import following  # noqa: PLC0415 - not needed for the help
    from hedgerow_tools.tree.look import WatchedTrees  # noqa: PLC0415
    from hedgerow_tools.tree.view import TreesView  # noqa: PLC0415

    kind, given = _parted(joined(target or ()))
    watch = watch and following.is_followed(output)

    async def carry_out() -> tuple[WatchedTrees, int]:
        async with connected() as cluster:
            place = "" if all_namespaces else cluster.namespace
            chosen, name, asked = await _chosen(cluster, kind, given, place)
            watched = WatchedTrees(cluster, chosen, place, name, asked)
            try:
                await watched.read_trees(lasting=watch)
            except Missing as error:
                if kind:
                    raise
                raise CommandError(
                    f"none of {program_name()}'s kinds is installed here: run `{typed()} install`,"
                    f" or name any object, as in `{typed()} tree deploy/web`"
                ) from error
            if name:
                _require(watched, chosen, place, name)
            if not watch:
                return watched, 0
            return watched, await following.watch(watched, TreesView(watched), output)

    watched, number = anyio.run(carry_out)
    if not watch:
        if output == "tree" and not watched.has_resources:
            among = " of a kind that you may read" if watched.forbidden else ""
            say(f"there are no resources of {program_name()} here{among}")
        following.print_once(TreesView(watched), output)
    elif number:
        raise typer.Exit(EXIT_BY_SIGNAL + number)


def _parted(target: str) -> tuple[str, str]:
    """Return the kind and the name, each of which may be empty; raises BadParameter.

    A word alone is a kind if it means one of ours, as in kubectl.
    """
    from hedgerow.cli.targets import is_meant  # noqa: PLC0415

    if any(is_meant(controller, target) for controller in registry().controllers):
        return target, ""
    kind, slash, name = target.rpartition("/")
    if "/" in kind or name in {".", ".."} or (slash and not (kind and name)):
        raise typer.BadParameter(f"{target!r} is neither a NAME nor KIND/NAME")
    return kind, name


async def _chosen(
    cluster: Cluster, kind: str, name: str, namespace: str
) -> tuple[Sequence[RootKind], str, str]:
    """Return the kinds to read, the resource's name, and the object asked for below.

    That object is empty if it is the resource itself. Raises CommandError for an object that does
    not exist, and KubeError. The server is asked only about a word that is no name of a kind of
    ours, and about an object of a built-in kind.
    """
    from hedgerow.cli.targets import found_kind, is_meant  # noqa: PLC0415
    from hedgerow_tools.tree.ancestry import foreign, root_of  # noqa: PLC0415
    from hedgerow_tools.tree.members.resources import RootKind  # noqa: PLC0415

    ours = registry().controllers
    if not kind:
        return [RootKind.of(controller) for controller in ours], name, ""
    chosen = next((controller for controller in ours if is_meant(controller, kind)), None)
    if chosen and (chosen.is_custom or not name):
        return [RootKind.of(chosen)], name, ""
    api = chosen.resource.api if chosen else await found_kind(cluster, kind)
    own = next((e for e in ours if e.is_custom and is_meant(e, f"{api.plural}.{api.group}")), None)
    if own:  # by a short name that only the server knows
        return [RootKind.of(own)], name, ""
    if name and (namespace or not api.namespaced):
        root = await root_of(cluster, api, name, namespace)
        return [root.kind], root.name, root.asked
    return [await foreign(cluster, api, namespace)], name, ""


def _require(watched: WatchedTrees, chosen: Sequence[RootKind], place: str, name: str) -> None:
    """Raise CommandError if no kind has the name, and BadParameter if several kinds have it."""
    kinds = list(dict.fromkeys(tree.kind for tree in watched.trees()))
    if len(kinds) > 1:
        either = " and ".join(f"{kind.lower()}/{name}" for kind in kinds)
        raise typer.BadParameter(f"{name!r} could be any of {either}: say which")
    if not kinds:
        if unheld := watched.unheld():
            raise CommandError(
                f"{', '.join(unheld)} exists, and {program_name()} holds no field of it now"
            )
        several = len(chosen) > 1
        what = f"a resource named {name}" if several else f"{chosen[0].api.kind}/{name}"
        where = f" in namespace {place}; name another with -n" if place else ""
        raise CommandError(f"{what} does not exist{where}")
    watched.kinds = tuple(root for root in watched.kinds if root.api.kind == kinds[0])
