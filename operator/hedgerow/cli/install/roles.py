"""Roles: the rights of people on what is installed, applied without force, and removed safely.

They are the ClusterRoles of the manifests, which Kubernetes aggregates to `view`, `edit` and
`admin`. One of that name that somebody else has made is neither changed nor deleted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from hedgerow.cli.install.definitions import HeldInDefinition, field_manager
from hedgerow.deploy import access
from hedgerow.deploy.names import Names
from hedgerow.fields.managed_fields import managers
from hedgerow.kube.errors import AlreadyExists, Conflict, Forbidden, Stale
from hedgerow.objects import PROGRAM, metadata
from hedgerow_schemas.base import ApiResource, View

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hedgerow.kube.cluster import Cluster
    from hedgerow_schemas.base import CustomResource, Object

CLUSTER_ROLE: Final = ApiResource(access.VERSION, "ClusterRole", "clusterroles", namespaced=False)
_CREATE_ONLY: Final = "1"
"""The resource version with which an apply creates an object, and changes none that is there."""


@dataclass(frozen=True, slots=True)
class RoleChange:
    """What happened to one ClusterRole, or would happen.

    Nothing did if it is `foreign`, somebody else's; if it has `conflicts`; or if it is `forbidden`
    to whoever installs.
    """

    name: str
    action: Literal[
        "created", "configured", "unchanged", "conflicted", "foreign", "forbidden", "deleted"
    ]
    role: Object
    conflicts: tuple[HeldInDefinition, ...] = ()

    def __str__(self) -> str:
        """Return it in kubectl's form: `clusterrole/… created`."""
        return f"clusterrole/{self.name} {self.action}"


async def grant(
    cluster: Cluster,
    wanted: Sequence[type[CustomResource]],
    known: Sequence[type[CustomResource]],
    *,
    dry_run: bool = False,
    program: str = PROGRAM,
) -> list[RoleChange]:
    """Apply the roles of viewers and editors; return what changed.

    They have rights on the resources that are `wanted`, and keep those on other `known` ones that
    they have already: what was installed before stays readable. Raises KubeError.
    """
    names = Names(program=program)
    changes: list[RoleChange] = []
    for make in (access.viewer, access.editor):
        name: str = make(names, ())["metadata"]["name"]
        try:
            live = await cluster.read(CLUSTER_ROLE, name)
            if live is not None and not _is_ours(live, program):
                changes.append(RoleChange(name, "foreign", {}))
                continue
            kept = [one for one in known if one in wanted or _is_in(live, one)]
            changes.append(
                await _apply(cluster, make(names, kept), live, dry_run=dry_run, program=program)
            )
        except Forbidden:
            changes.append(RoleChange(name, "forbidden", {}))
    return changes


async def revoke(cluster: Cluster, *, program: str = PROGRAM) -> list[RoleChange]:
    """Delete the roles that `grant` applied; return what changed. Raises KubeError."""
    names = Names(program=program)
    changes: list[RoleChange] = []
    for make in (access.viewer, access.editor):
        name: str = make(names, ())["metadata"]["name"]
        try:
            live = await cluster.read(CLUSTER_ROLE, name)
            if live is None or not _is_ours(live, program):
                continue
            await cluster.delete(CLUSTER_ROLE, name, uid=metadata(live)["uid"])
            changes.append(RoleChange(name, "deleted", {}))
        except Forbidden:
            changes.append(RoleChange(name, "forbidden", {}))
    return changes


async def _apply(
    cluster: Cluster, role: Object, live: Object | None, *, dry_run: bool, program: str
) -> RoleChange:
    """Apply a role, only as a new one or only to the one that was read."""
    name: str = role["metadata"]["name"]
    guard = {"resourceVersion": _CREATE_ONLY} if live is None else {"uid": metadata(live)["uid"]}
    body = {**role, "metadata": {**role["metadata"], **guard}}
    try:
        applied = await cluster.apply(
            CLUSTER_ROLE, body, manager=field_manager(program), dry_run=dry_run
        )
    except Conflict as conflict:
        if live is None:  # somebody else has made it just now, with other rules
            return RoleChange(name, "foreign", {})
        held = tuple(HeldInDefinition(cause.field, cause.manager) for cause in conflict.causes)
        return RoleChange(name, "conflicted", role, held)
    except (AlreadyExists, Stale):  # somebody else has made it just now
        return RoleChange(name, "foreign", {})
    if applied.created:
        return RoleChange(name, "created", role)
    same = live is not None and _essence(live) == _essence(applied.object)
    return RoleChange(name, "unchanged" if same else "configured", role)


def _essence(role: Object) -> Object:
    return {"rules": role.get("rules"), "labels": metadata(role).get("labels")}


def _is_ours(role: Object, program: str) -> bool:
    return any(holder.manager == field_manager(program) for holder in managers(role))


def _is_in(role: Object | None, resource: type[CustomResource]) -> bool:
    """Return whether a role has rights on a resource."""
    api = resource.api
    rules: Iterable[View] = map(View, View(role or {}).items("rules"))
    return any(
        api.group in rule.items("apiGroups") and api.plural in rule.items("resources")
        for rule in rules
    )
