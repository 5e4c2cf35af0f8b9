"""Objects: what an installation has beside the definitions, applied unforced, and removed safely.

They are objects of the manifests: the ClusterRoles of viewers and editors, which Kubernetes
aggregates to `view`, `edit` and `admin`, and with an image the operator. One of that name that
somebody else has made is neither changed nor deleted.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, Literal

from hedgerow.cli.install.definitions import HeldInDefinition, field_manager
from hedgerow.deploy import access
from hedgerow.deploy.names import Names
from hedgerow.fields.managed_fields import all_holders
from hedgerow.kube.errors import AlreadyExists, Conflict, Forbidden, Missing, Stale
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
class ObjectChange:
    """What happened to one object, or would happen.

    Nothing did if it is `foreign`, somebody else's; if it has `conflicts`; or if it is `forbidden`
    to whoever installs.
    """

    name: str
    action: Literal[
        "created", "configured", "unchanged", "conflicted", "foreign", "forbidden", "deleted"
    ]
    body: Object
    conflicts: tuple[HeldInDefinition, ...] = ()
    kind: str = CLUSTER_ROLE.kind

    def __str__(self) -> str:
        """Return it in kubectl's form: `clusterrole/… created`."""
        return f"{self.kind.lower()}/{self.name} {self.action}"


async def grant(
    cluster: Cluster,
    wanted: Sequence[type[CustomResource]],
    known: Sequence[type[CustomResource]],
    *,
    dry_run: bool = False,
    program: str = PROGRAM,
) -> list[ObjectChange]:
    """Apply the roles of viewers and editors; return what changed.

    They have rights on the resources that are `wanted`, and keep those on other `known` ones that
    they have already: what was installed before stays readable. Raises KubeError.
    """
    names = Names(program=program)
    changes: list[ObjectChange] = []
    for make in (access.viewer, access.editor):
        name: str = make(names, ())["metadata"]["name"]
        try:
            live = await cluster.read_object(CLUSTER_ROLE, name)
        except Forbidden:
            changes.append(ObjectChange(name, "forbidden", {}))
            continue
        kept = [kind for kind in known if kind in wanted or _is_in(live, kind)]
        changes.append(await _put(cluster, make(names, kept), dry_run=dry_run, program=program))
    return changes


async def operate(
    cluster: Cluster, objects: Iterable[Object], *, dry_run: bool = False, program: str = PROGRAM
) -> list[ObjectChange]:
    """Apply the objects of an operator, in their order; return what changed. Raises KubeError."""
    return [await _put(cluster, body, dry_run=dry_run, program=program) for body in objects]


async def revoke(
    cluster: Cluster, objects: Iterable[Object] = (), *, program: str = PROGRAM
) -> list[ObjectChange]:
    """Delete the roles and objects that were applied; return what changed. Raises KubeError."""
    roles = [make(Names(program=program), ()) for make in (access.viewer, access.editor)]
    named = {role["metadata"]["name"] for role in roles}
    others = (body for body in objects if body["metadata"]["name"] not in named)
    changes = [await _removed(cluster, body, program) for body in (*others, *roles)]
    return [change for change in changes if change]


async def _removed(cluster: Cluster, body: Object, program: str) -> ObjectChange | None:
    """Delete an object that this program has applied; None if it is not there, or another's."""
    meta, kind = body["metadata"], body["kind"]
    try:
        api = await cluster.resource(body["apiVersion"], kind)
        live = await cluster.read_object(api, meta["name"], meta.get("namespace", ""))
        if live is None or not _is_ours(live, program):
            return None
        uid: str = metadata(live)["uid"]
        await cluster.delete(api, meta["name"], meta.get("namespace", ""), uid=uid)
    except Missing:
        return None
    except Forbidden:
        return ObjectChange(meta["name"], "forbidden", {}, kind=kind)
    return ObjectChange(meta["name"], "deleted", {}, kind=kind)


async def _put(cluster: Cluster, body: Object, *, dry_run: bool, program: str) -> ObjectChange:
    """Apply an object, unless somebody else has made it."""
    meta, kind = body["metadata"], body["kind"]
    change = partial(ObjectChange, meta["name"], kind=kind)
    api = await cluster.resource(body["apiVersion"], kind)
    try:
        live = await cluster.read_object(api, meta["name"], meta.get("namespace", ""))
        if live is not None and not _is_ours(live, program):
            return change("foreign", {})
        return await _apply(cluster, api, body, live, dry_run=dry_run, program=program)
    except Forbidden:
        return change("forbidden", {})
    except Missing:
        if not dry_run:
            raise
        return change("created", body)  # its namespace is not there either yet


async def _apply(
    cluster: Cluster,
    api: ApiResource,
    body: Object,
    live: Object | None,
    *,
    dry_run: bool,
    program: str,
) -> ObjectChange:
    """Apply an object, only as a new one or only to the one that was read."""
    change = partial(ObjectChange, body["metadata"]["name"], kind=api.kind)
    guard = {"resourceVersion": _CREATE_ONLY} if live is None else {"uid": metadata(live)["uid"]}
    guarded = {**body, "metadata": {**body["metadata"], **guard}}
    try:
        applied = await cluster.apply(api, guarded, manager=field_manager(program), dry_run=dry_run)
    except Conflict as conflict:
        if live is None:  # somebody else has made it just now, with other values
            return change("foreign", {})
        held = tuple(HeldInDefinition(cause.field, cause.manager) for cause in conflict.causes)
        return change("conflicted", body, held)
    except (AlreadyExists, Stale):  # somebody else has made it just now
        return change("foreign", {})
    if applied.created:
        return change("created", body)
    same = live is not None and _essence(live) == _essence(applied.object)
    return change("unchanged" if same else "configured", body)


def _essence(live: Object) -> Object:
    """Return what an apply can change; a dry run does not change the resource version."""
    kept = {key: value for key, value in live.items() if key not in {"metadata", "status"}}
    meta = metadata(live)
    return {**kept, "of": {key: meta.get(key) for key in ("labels", "annotations")}}


def _is_ours(role: Object, program: str) -> bool:
    return any(holder.manager == field_manager(program) for holder in all_holders(role))


def _is_in(role: Object | None, resource: type[CustomResource]) -> bool:
    """Return whether a role has rights on a resource."""
    api = resource.api
    rules: Iterable[View] = map(View, View(role or {}).items("rules"))
    return any(
        api.group in rule.items("apiGroups") and api.plural in rule.items("resources")
        for rule in rules
    )
