"""Owners, as typed: `hedgerow owners KIND/NAME`, who holds each field of an object."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import anyio
import typer

from hedgerow.cli.candidates import objects
from hedgerow.cli.connecting import Context, Kubeconfig, connected
from hedgerow.cli.options import Namespace
from hedgerow.cli.output import echo_data, echo_lines
from hedgerow.cli.owners import selection
from hedgerow.cli.owners.selection import NO_DISPUTES, Disputes
from hedgerow.cli.program import program_name, registry, say, typed
from hedgerow.cli.targets import joined, located, parted, read
from hedgerow.fields.owners import owners
from hedgerow.kube.errors import Forbidden, Missing
from hedgerow.objects import ObjectRef, Salvaged, annotation, controller_of, metadata, ref_of
from hedgerow.plan.status_annotation import STATUS_ANNOTATION
from hedgerow.runtime.clock import SystemClock

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hedgerow.fields.owners import Ownership
    from hedgerow.kube.cluster import Cluster
    from hedgerow_schemas.base import ApiResource, Object

Format = Literal["tree", "json", "yaml", "svg", "html"]

Target = Annotated[
    list[str],
    typer.Argument(
        metavar="KIND/NAME",
        autocompletion=objects,
        help="The object, its kind as kubectl takes it: deploy/web, ingresses/web,"
        " certificate.cert-manager.io/web; or as two words: deploy web.",
        show_default=False,
    ),
]
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
Output = Annotated[
    Format,
    typer.Option(
        "--output",
        "-o",
        help="svg and html are one file each, without references, with a colour per manager.",
    ),
]


def owners_command(
    target: Target,
    *,
    namespace: Namespace = None,
    manager: FieldManager = "",
    contested: Contested = False,
    output: Output = "tree",
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Show who holds each field of an object: manager, operation, subresource and age.

    The output has every field once, with all of its managers. Nobody holds an unowned field: it is
    a default, or its holder let go of it. A field is contested if the hedgerow resource that
    controls the object declares another value, as its status.contested reports. Below the fields
    are the commands that settle the conflict, with --contested those for each field. Values of
    Secrets are never shown.

    By hand: kubectl get KIND NAME -o yaml --show-managed-fields
    """
    kind, name = parted(joined(target))

    async def carry_out() -> tuple[Object, Ownership, Disputes]:
        async with connected(kubeconfig, context) as cluster:
            live = await _read(cluster, kind, name, namespace or cluster.namespace)
            found = await _declarer(cluster, live, required=contested)
            if found is None:
                return live, owners(live), NO_DISPUTES
            owner, resource = found
            custom = _ours(owner.api.group_version, owner.api.kind) is not None
            whole = owners(live, selection.contested_in(live, resource, custom=custom))
            told = selection.disputes(
                live,
                resource,
                owner,
                program_name(),
                custom=custom,
                all_told=contested,
                command=typed(),
            )
            return live, whole, told

    live, whole, disputes = anyio.run(carry_out)
    chosen = selection.choose(whole, manager, contested=contested)
    _print(live, whole, chosen, disputes, output)


async def _read(cluster: Cluster, kind: str, name: str, namespace: str) -> Object:
    place = await located(cluster, (kind, name), namespace)
    live = await read(cluster, place)
    if isinstance(live, Salvaged):
        say(
            f"{place} cannot be read exactly: parts of it are not JSON, or nested too"
            f" deep, and are left out or replaced here, most likely in metadata.managedFields"
        )
    return live


async def _declarer(
    cluster: Cluster, live: Object, *, required: bool = False
) -> tuple[ObjectRef, Object] | None:
    """Return the hedgerow resource that controls the object, or that the object itself is.

    Otherwise return the one that may claim fields of it, if any. Raises KubeError if that resource
    is `required` and may not be read.
    """
    own = _ours(live["apiVersion"], live["kind"])
    if own:
        return ref_of(own, live), live
    owner = controller_of(live)
    api = _ours(owner.get("apiVersion", ""), owner.get("kind", ""))
    if api is not None:
        resource = await _resource(cluster, api, owner["name"], live, required=required)
        if resource is None or metadata(resource).get("uid") != owner["uid"]:
            return None
        return ref_of(api, resource), resource
    built_in = _built_in(live["apiVersion"], live["kind"])
    if built_in and annotation(live, STATUS_ANNOTATION):
        return ref_of(built_in, live), live
    api, name = _claimant(live)
    if api is None:
        return None
    resource = await _resource(cluster, api, name, live, required=required)
    return (ref_of(api, resource), resource) if resource else None


async def _resource(
    cluster: Cluster, api: ApiResource, name: str, live: Object, *, required: bool
) -> Object | None:
    """Return the resource of an object in its namespace; None if there is none to be read.

    Raises KubeError if it may not be read and is `required`.
    """
    try:
        return await cluster.read(api, name, metadata(live).get("namespace", ""))
    except (Forbidden, Missing) as error:
        if required:
            raise
        say(f"contested fields are not marked: {error}")
        return None


def _claimant(live: Object) -> tuple[ApiResource | None, str]:
    """Return the kind and name of the resource that may claim fields of an object, if any."""
    for controller in registry().controllers:
        for claimable in controller.claims:
            view = claimable.kind(live)
            if _among((claimable.kind.api,), live["apiVersion"], live["kind"]) is None:
                continue
            key = claimable.of(view) if claimable.concerns(view) else None
            if key is not None and key[0] == view.namespace:
                return controller.resource.api, key[1]
    return None, ""


def _ours(group_version: str, kind: str) -> ApiResource | None:
    return _among((resource.api for resource in registry().resources), group_version, kind)


def _built_in(group_version: str, kind: str) -> ApiResource | None:
    found = (one.resource.api for one in registry().controllers if not one.is_custom)
    return _among(found, group_version, kind)


def _among(apis: Iterable[ApiResource], group_version: str, kind: str) -> ApiResource | None:
    group = group_version.rpartition("/")[0]
    return next((api for api in apis if (api.group, api.kind) == (group, kind)), None)


def _print(
    live: Object, whole: Ownership, chosen: Ownership, disputes: Disputes, output: Format
) -> None:
    """Print in the requested format; each format is imported only when it is used."""
    # ruff: noqa: PLC0415
    now = SystemClock().now()
    if output in {"json", "yaml"}:
        from hedgerow.cli.owners import listing as owners_list

        echo_data(owners_list.listed(live, chosen, disputes), output)
        return
    from hedgerow.cli.owners.report import page

    told = page(live, whole, chosen, now, disputes)
    if output == "tree":
        from hedgerow.cli.owners.terminal import show

        show(told)
        return
    from hedgerow.cli.owners import page_html as owners_html
    from hedgerow.cli.owners import page_svg as owners_svg

    draw = owners_svg.draw if output == "svg" else owners_html.draw
    echo_lines(draw(told), nl=False)
