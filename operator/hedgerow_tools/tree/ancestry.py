"""Ancestry: the resource of ours that an object descends from, or who holds the object instead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hedgerow.cli.exits import CommandError
from hedgerow.cli.program import program_name, registry, typed
from hedgerow.cli.targets import found_kind, read
from hedgerow.fields.managed_fields import managers
from hedgerow.objects import ObjectRef, controller_of, metadata
from hedgerow.texts import command_line, within
from hedgerow_tools.tree.resources import is_ours

if TYPE_CHECKING:
    from hedgerow.contract import Controller
    from hedgerow.kube.cluster import Cluster
    from hedgerow_schemas.base import ApiResource, Object, Resource

DEEPEST: Final = 4
"""The most owners that are read: a Pod, its ReplicaSet, its Deployment, the resource."""


async def resource_of(
    cluster: Cluster, api: ApiResource, name: str, namespace: str
) -> tuple[Controller[Resource], str, str] | None:
    """Return the controller and name of an object's resource, and the object as `Kind/name`.

    None if the object is such a resource itself. Raises CommandError, which says who holds the
    object, if it is neither, and KubeError.
    """
    ours = registry().controllers
    place = namespace if api.namespaced else ""
    live = asked = await read(cluster, ObjectRef(api, place, name))
    if any(_same(each.resource.api, live) and _is_resource(each, live) for each in ours):
        return None
    for _ in range(DEEPEST):
        owner = controller_of(live)
        group = owner.get("apiVersion", "").rpartition("/")[0]
        for controller in ours:
            kind = controller.resource.api
            if controller.is_custom and (kind.group, kind.kind) == (group, owner.get("kind")):
                return controller, owner["name"], f"{api.kind}/{name}"
        if not owner:
            break
        above = await found_kind(cluster, ".".join(filter(None, (owner["kind"], group))))
        found = await cluster.read(above, owner["name"], place if above.namespaced else "")
        if found is None or metadata(found)["uid"] != owner.get("uid"):
            break
        live = found
    if maker := _maker_for_namespace(asked):
        raise CommandError(
            f"{api.kind}/{name} is a child of its Namespace, made by {program_name()}'s {maker}:"
            f" {typed()} tree does not show these; its labels and annotations say what it is made"
            " from"
        )
    holders = ", ".join(dict.fromkeys(one.manager for one in managers(asked))) or "nobody"
    word = ".".join(filter(None, (api.kind.lower(), api.group)))
    told = command_line(typed(), "owners", f"{word}/{name}", *within(place))
    raise CommandError(
        f"no resource of {program_name()} controls {api.kind}/{name}; its fields are held by"
        f" {holders}: see `{told}`"
    )


def _maker_for_namespace(live: Object) -> str:
    """Return the name of the controller that makes an object for its Namespace, if one does."""
    makers = (
        controller.name
        for controller in registry().controllers
        if controller.is_for_namespaces and any(_same(kind.api, live) for kind in controller.owns)
    )
    return next((name for name in makers if is_ours(live, name, program_name())), "")


def _same(api: ApiResource, live: Object) -> bool:
    return (live.get("apiVersion"), live.get("kind")) == (api.group_version, api.kind)


def _is_resource(controller: Controller[Resource], live: Object) -> bool:
    return controller.is_custom or is_ours(live, controller.name, program_name())
