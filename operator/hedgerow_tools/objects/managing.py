"""Managing: the resource of ours that answers for an object, found in one way by every command."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hedgerow.cli.program import program_name, registry
from hedgerow.fields.managed_fields import all_holders
from hedgerow.objects import controller_of, metadata
from hedgerow.plan.installations import instance_of
from hedgerow_tools.fields.installations import installation_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hedgerow.contract import Controller
    from hedgerow.kube.cluster import Cluster
    from hedgerow_schemas.base import ApiResource, Object


@dataclass(frozen=True, slots=True)
class ManagingResource:
    """A resource of ours with its controller, and the field manager that writes an object for it.

    `itself`: the object is that resource, whose status the controller writes.
    """

    controller: Controller[Any]
    object: Object
    manager: str
    itself: bool

    @property
    def api(self) -> ApiResource:
        """The kind of the resource."""
        return self.controller.resource.api


def answering_controller(live: Object) -> Controller[Any] | None:
    """Return the controller that answers for an object: as its resource, or as a child of one."""
    return controller_of_resource(live) or controller_of_owner(controller_of(live))


async def managing_resource(
    cluster: Cluster, live: Object, controller: Controller[Any] | None = None
) -> ManagingResource | None:
    """Return the resource that answers for an object: itself, or the one that controls it.

    `controller` is the answering one, if it is known. None if there is no resource, or no longer.
    Raises KubeError.
    """
    controller = controller or answering_controller(live)
    if controller is None:
        return None
    itself = is_of(controller.resource.api, live["apiVersion"], live["kind"])
    resource: Object | None = live
    if not itself:
        owner, place = controller_of(live), metadata(live).get("namespace", "")
        api = controller.resource.api
        resource = await cluster.read_object(api, owner["name"], place if api.namespaced else "")
        if resource is None or metadata(resource).get("uid") != owner.get("uid"):
            return None
    ours = installation_of(live, controller.name, program_name())
    manager = ours.field_manager(controller.name)
    return ManagingResource(controller, resource or live, manager, itself)


def controller_of_resource(live: Object) -> Controller[Any] | None:
    """Return the controller whose resource an object is, or None."""
    version, kind = live["apiVersion"], live["kind"]
    known = (c for c in registry().controllers if is_of(c.resource.api, version, kind))
    return next((c for c in known if c.is_custom or is_applied_by(live, c.name)), None)


def controller_of_owner(owner: Mapping[str, Any]) -> Controller[Any] | None:
    """Return the controller of the resource that a controller reference names, or None."""
    version, kind = owner.get("apiVersion", ""), owner.get("kind", "")
    custom = (c for c in registry().controllers if c.is_custom)
    return next((c for c in custom if is_of(c.resource.api, version, kind)), None)


def is_of(api: ApiResource, group_version: str, kind: str) -> bool:
    """Return whether a kind is this one, in whatever version."""
    return (api.group, api.kind) == (group_version.rpartition("/")[0], kind)


def is_applied_by(live: Object, controller: str) -> bool:
    """Return whether a controller applies to a built-in resource; most of a kind are not for it."""
    program = program_name()
    appliers = (holder.manager for holder in all_holders(live) if holder.operation == "Apply")
    return any(
        name.endswith(f"-{controller}") and instance_of(name, program) is not None
        for name in appliers
    )
