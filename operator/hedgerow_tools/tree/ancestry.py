"""Ancestry: the resource that an object descends from, of ours or of any other program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hedgerow.cli.discovery import served
from hedgerow.cli.targets import found_kind, read_target
from hedgerow.kube.errors import Forbidden, Missing
from hedgerow.objects import ObjectRef, controller_of, metadata
from hedgerow_tools.objects.listing import listed
from hedgerow_tools.objects.managing import controller_of_owner, controller_of_resource
from hedgerow_tools.tree.look import BELOW
from hedgerow_tools.tree.members.resources import DEEPEST, RootKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from hedgerow.kube.cluster import Cluster
    from hedgerow_schemas.base import ApiResource, Object

HIGHEST: Final = 4
"""The most owners that are read: a Pod, its ReplicaSet, its Deployment, the resource."""


class Root(NamedTuple):
    """The resource of an object: its kind and name, and the object below it as `Kind/name`."""

    kind: RootKind
    name: str
    asked: str


async def root_of(cluster: Cluster, api: ApiResource, name: str, namespace: str) -> Root:
    """Return the root of an object's tree: the resource of ours, or the highest owner.

    Raises CommandError if the object does not exist, and KubeError.
    """
    place = namespace if api.namespaced else ""
    live = await read_target(cluster, ObjectRef(api, place, name))
    below, asked = f"{api.kind}/{name}", ""
    for _ in range(HIGHEST):
        if ours := controller_of_resource(live):
            return Root(RootKind.of(ours), name, asked)
        owner = controller_of(live)
        if ours := controller_of_owner(owner):
            return Root(RootKind.of(ours), owner["name"], below)
        higher = await _owner(cluster, owner, place) if owner else None
        if higher is None:
            break
        api, live = higher
        name, asked = metadata(live)["name"], below
    return Root(await foreign(cluster, api, namespace), name, asked)


async def _owner(
    cluster: Cluster, owner: Mapping[str, Any], place: str
) -> tuple[ApiResource, Object] | None:
    """Return the object that a controller reference names; None if it is gone or not readable."""
    group = owner.get("apiVersion", "").rpartition("/")[0]
    try:
        api = await found_kind(cluster, ".".join(filter(None, (owner["kind"], group))))
        live = await cluster.read_object(api, owner["name"], place if api.namespaced else "")
    except (Forbidden, Missing):
        return None
    is_same = live is not None and metadata(live)["uid"] == owner.get("uid")
    return (api, live) if live and is_same else None


async def foreign(cluster: Cluster, api: ApiResource, namespace: str) -> RootKind:
    """Return a kind that is no controller's of ours, with what descends from its objects.

    What Kubernetes's own kinds are made into is known; of others all objects are looked at.
    """
    if api.group in {"apps", "batch"} and api.kind in BELOW:
        return RootKind(api, ())

    def reduce(item: Object) -> Object:
        return {"uid": metadata(item)["uid"], "owner": controller_of(item).get("uid")}

    listing = await listed(cluster, await served(cluster), reduce, namespace=namespace)
    return RootKind(api, tuple(_below(api, listing.objects)))


def _below(api: ApiResource, objects: Iterable[tuple[ApiResource, Object]]) -> list[ApiResource]:
    """Return the kinds of all objects that descend from those of a kind."""
    rest, kinds = [*objects], set["ApiResource"]()
    level = {item["uid"] for kind, item in rest if kind == api}
    for _ in range(DEEPEST):
        next_level = [(kind, item) for kind, item in rest if item["owner"] in level]
        kinds |= {kind for kind, _ in next_level}
        level = {item["uid"] for _, item in next_level}
    return sorted(kinds, key=lambda kind: (kind.kind, kind.group))
