"""Owners, as typed: `hedgerow owners KIND/NAME`, who holds each field of an object."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

import anyio
import typer

from hedgerow.cli.connecting import connected
from hedgerow.cli.discovery import group_versions
from hedgerow.cli.options import output_option
from hedgerow.cli.output import echo_data, echo_lines
from hedgerow.cli.program import program_name, registry, say, typed
from hedgerow.cli.targets import located, parted, read_target
from hedgerow.kube.errors import Forbidden, Missing
from hedgerow.objects import metadata, ref_of
from hedgerow.plan.status import reader_of
from hedgerow.runtime.clock import SystemClock
from hedgerow_schemas.base import View
from hedgerow_tools.fields import selection
from hedgerow_tools.fields.field_tree import owners
from hedgerow_tools.fields.selection import NO_DISPUTES, Disputes
from hedgerow_tools.fields.unserved import unserved
from hedgerow_tools.objects.managing import (
    answering_controller,
    is_of,
    managing_resource,
)
from hedgerow_tools.objects.selection import ChosenObjects, selecting
from hedgerow_tools.objects.structures import Structures
from hedgerow_tools.owners import many
from hedgerow_tools.owners.view import owners_view

if TYPE_CHECKING:
    from hedgerow.contract import Controller
    from hedgerow.kube.cluster import Cluster
    from hedgerow_schemas.base import Object
    from hedgerow_tools.fields.field_tree import Ownership
    from hedgerow_tools.owners.view import OwnersView

OwnersFormat = Literal["tree", "json", "yaml", "html"]

FieldManager = Annotated[
    str,
    typer.Option(
        "--manager",
        metavar="NAME",
        help="Show only the fields of this field manager; a glob such as 'kubectl*' may be given.",
        show_default="all",
    ),
]
Contested = Annotated[bool, typer.Option("--contested", help="Show only contested fields.")]
ByManager = Annotated[
    bool,
    typer.Option(
        "--by-manager",
        help="Of all objects of the namespace, or those named: how many fields each manager holds,"
        " and what is left over from former ones.",
    ),
]
Output = Annotated[
    OwnersFormat,
    output_option("html is one file without references, with a colour per manager."),
]


@selecting
def owners_command(
    chosen: ChosenObjects,
    *,
    by_manager: ByManager = False,
    manager: FieldManager = "",
    contested: Contested = False,
    output: Output = "tree",
) -> None:
    """Show who holds each field of an object: manager, operation, subresource and age.

    The output has every field once, with all of its managers. Nobody holds an unowned field: it is
    a default, or its holder let go of it. A field is contested if the hedgerow resource that
    controls the object declares another value, as its status.contested reports. Below the fields
    are the commands that settle the conflict, with --contested those for each field. Values of
    Secrets are never shown.

    With --by-manager, the command counts the fields that each manager holds of all objects of a
    namespace, or of those that are named. Below are leftovers: managers that are one
    thing under several names, such as client-side apply where somebody applies on the server now,
    the replicas of an autoscaler that is gone, and fields of API versions that the server does not
    serve; each with the command that settles it.

    - `kubectl get deployment web -o yaml --show-managed-fields` shows what the API server has
    """
    if by_manager:
        if manager or contested or output == "html":
            raise typer.BadParameter(
                "--by-manager goes without --manager and --contested, and with --output tree, json"
                " or yaml"
            )
        some = chosen if chosen.given else replace(chosen, everything=True)

        async def count() -> many.OwnersCount:
            ready = await some.loaded()
            async with connected() as cluster:
                return await many.count(cluster, ready)

        many.show(anyio.run(count), output)
        return
    if len(chosen.names) != 1 or chosen.given != 1 or chosen.all_namespaces:
        raise typer.BadParameter(
            "name one KIND/NAME, such as deployment/web, or several objects with --by-manager"
        )
    kind, name = parted(chosen.names[0])

    versions: list[str] = []
    hidden: list[str] = []

    async def carry_out() -> tuple[Object, Ownership, Disputes]:
        async with connected() as cluster:
            ref = await located(cluster, (kind, name))
            live = await read_target(cluster, ref)
            versions.extend(await _unserved(cluster, live))
            structure = await Structures(cluster).of(ref.api)
            declarer = await _declarer(cluster, live, hidden, required=contested)
            if declarer is None:
                return live, owners(live, structure=structure), NO_DISPUTES
            controller, resource = declarer
            reader = reader_of(controller)
            whole = owners(live, selection.contested_in(live, resource, reader), structure)
            listed = selection.disputes(
                live,
                resource,
                ref_of(controller.resource.api, resource),
                program_name(),
                reader=reader,
                command=typed(),
            )
            return live, whole, listed

    live, whole, disputes = anyio.run(carry_out)
    shown = selection.choose(whole, manager, contested=contested)
    said = selection.nothing(manager, contested=contested, hidden=bool(hidden))
    view = owners_view(live, whole, shown, disputes, versions)
    _print(view, said, output, all_told=contested)


async def _unserved(cluster: Cluster, live: Object) -> list[str]:
    """Return the versions of managed fields that the server does not serve; usually none."""
    written: list[Object] = metadata(live).get("managedFields") or []
    if not unserved(written, {live["apiVersion"]}):
        return []
    gone = unserved(written, set(await group_versions(cluster)))
    return sorted({entry["apiVersion"] for entry in gone})


async def _declarer(
    cluster: Cluster, live: Object, hidden: list[str], *, required: bool = False
) -> tuple[Controller[Any], Object] | None:
    """Return the hedgerow resource that controls the object, or that the object itself is.

    Otherwise return the one that may contribute to it, if any; each with its controller. What may
    not be read is left out, counted, and added to what is `hidden`. Raises Missing if the resource
    is `required` and its kind is not served.
    """
    meant, name = answering_controller(live), ""
    if meant is None:
        meant, name = _contributor(live)
    if meant is None:
        return None
    try:
        if name:
            resource = await cluster.read_object(meant.resource.api, name, View(live).namespace)
        else:
            managing = await managing_resource(cluster, live, meant)
            resource = managing.object if managing else None
    except Forbidden as error:
        kind = meant.resource.api.kind
        hidden.append(kind)
        say(
            f"1 kind is left out, which you may not read here: {kind}; {error}; {selection.UNKNOWN}"
        )
        return None
    except Missing as error:
        if required:
            raise
        say(f"contested fields are not marked: {error}")
        return None
    return (meant, resource) if resource else None


def _contributor(live: Object) -> tuple[Controller[Any] | None, str]:
    """Return the controller and name of the resource that may contribute to an object, if any."""
    for controller in registry().controllers:
        for target in controller.contributes:
            view = target.kind(live)
            if not is_of(target.kind.api, live["apiVersion"], live["kind"]):
                continue
            key = target.of(view) if target.concerns(view) else None
            if key is not None and key[0] == view.namespace:
                return controller, key[1]
    return None, ""


def _print(view: OwnersView, nothing: str, output: OwnersFormat, *, all_told: bool) -> None:
    """Print in the requested format; each format is imported only when it is used."""
    # ruff: noqa: PLC0415
    if output in {"json", "yaml"}:
        echo_data(view, output)
        return
    from hedgerow_tools.owners.report import notes

    now, remarks = SystemClock().now(), notes(view, nothing, all_told=all_told)
    if output == "tree":
        from hedgerow_tools.owners.terminal import show

        show(view, remarks, now)
        return
    from hedgerow_tools.owners.page_html import draw

    echo_lines(draw(view, remarks, now), nl=False)
