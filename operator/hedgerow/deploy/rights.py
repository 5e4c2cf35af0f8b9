"""Rights: those of hedgerow and its users at an API server, and the RBAC rules for them.

The operator uses each of its rights. There is no `update`, since every write is an apply, and there
are no wildcards.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hedgerow.contract import Controller
    from hedgerow.shard import Shard
    from hedgerow_schemas.base import ApiResource, CustomResource, Object, Resource

READ = ("get", "list", "watch")
WATCH = ("list", "watch")
APPLY = ("create", "patch")
CONTRIBUTE = (*READ, "patch")
VERBS = (*READ, *APPLY, "delete", "deletecollection")
"""In the order in which a rule lists them."""

ADMISSION = "admissionregistration.k8s.io"
LEASES = "coordination.k8s.io"


@dataclass(frozen=True, slots=True, order=True)
class Right:
    """One verb on one resource; with `name`, only on objects with this name.

    With `namespace`, only there; otherwise wherever the right is granted.
    """

    group: str
    resource: str
    verb: str
    name: str = ""
    namespace: str = ""


RightSet = frozenset[Right]


def rights(
    group: str, resource: str, verbs: Iterable[str], name: str = "", namespace: str = ""
) -> RightSet:
    """Return the rights to these verbs on one resource."""
    return frozenset(Right(group, resource, verb, name, namespace) for verb in verbs)


def of_controllers(controllers: Iterable[Controller[Resource]]) -> RightSet:
    """Return the rights that the controllers' passes need in the namespaces of their resources.

    Resources are watched, and their status is applied; built-in ones are applied themselves.
    Children are also read by name, because no watch shows somebody else's object with a child's
    name. What it contributes to is never created nor deleted. Events are applied, create-only.
    Nothing is written to a Namespace.
    """
    needed = rights("events.k8s.io", "events", APPLY)
    for controller in controllers:
        api = controller.resource.api
        where = controller.built_in.select.namespace
        needed |= rights(api.group, api.plural, WATCH, namespace=where)
        if controller.is_custom:
            needed |= rights(api.group, f"{api.plural}/status", ("patch",))
        elif controller.writes_resource:
            needed |= rights(api.group, api.plural, CONTRIBUTE, namespace=where)
        for target in controller.contributes:
            needed |= rights(target.kind.api.group, target.kind.api.plural, CONTRIBUTE)
        for kind in controller.owns:
            needed |= rights(kind.api.group, kind.api.plural, (*READ, *APPLY, "delete"))
        for relation in controller.relates:
            kind, where = relation.kind.api, relation.select.namespace
            needed |= rights(kind.group, kind.plural, WATCH, namespace=where)
    return needed


def by_namespace(granted: RightSet) -> dict[str, RightSet]:
    """Return rights by the namespace in which they are to be granted; an empty one means anywhere.

    A right that is granted anywhere is not granted in a namespace once more.
    """
    anywhere = frozenset(right for right in granted if not right.namespace)
    rights_of = {"": anywhere}
    for right in sorted(granted - anywhere):
        if replace(right, namespace="") not in anywhere:
            rights_of[right.namespace] = rights_of.get(right.namespace, frozenset()) | {right}
    return rights_of


def of_cluster() -> RightSet:
    """Return the cluster-wide rights of an operator that is not limited to namespaces.

    It reads whether a namespace allows claims.
    """
    return rights("", "namespaces", ("get",))


def of_namespace(name: str) -> RightSet:
    """Return the right to read a namespace that the operator is limited to."""
    return rights("", "namespaces", ("get",), name)


def of_installation(base: str, shards: Iterable[Shard] = ()) -> RightSet:
    """Return the rights of a replica in the operator's own namespace, by object name.

    The API server authorizes an apply by name even if it creates the object. So no other Lease can
    be written, and no other Secret created or read. Each shard has a Lease; that of the operator
    which serves all namespaces stays writable for it, so that it can release the Lease when it is
    divided. All Leases of the namespace are listed, before anybody begins, for those of another
    division.
    """
    names = (base, *(f"{base}-{shard.suffix}" for shard in shards))
    written = (of_lease(name) | rights(LEASES, "leases", ("delete",), name) for name in names)
    listed = rights(LEASES, "leases", ("list",))
    return listed.union(rights("", "secrets", ("get", *APPLY), f"{base}-serving"), *written)


def of_lease(name: str, namespace: str = "") -> RightSet:
    """Return the rights without which nobody can be elected by a Lease."""
    return rights(LEASES, "leases", ("get", *APPLY), name, namespace)


def of_publishing(base: str) -> RightSet:
    """Return the rights to set `caBundle` in the webhook configuration."""
    return rights(ADMISSION, "validatingwebhookconfigurations", ("get", "patch"), base)


def of_reviews() -> RightSet:
    """Return the rights to ask who a client is, and whether they may read metrics."""
    return rights("authentication.k8s.io", "tokenreviews", ("create",)) | rights(
        "authorization.k8s.io", "subjectaccessreviews", ("create",)
    )


def of_viewers(resources: Iterable[type[CustomResource]]) -> RightSet:
    """Return the rights of users who read the custom resources."""
    return _of_people(resources, READ, READ[:1], READ[:1])


def of_editors(resources: Iterable[type[CustomResource]]) -> RightSet:
    """Return the rights of users who change the custom resources, but not their status."""
    return _of_people(resources, VERBS, READ[:1], ("get", "patch"))


def _of_people(
    resources: Iterable[type[CustomResource]],
    whole: Iterable[str],
    status: Iterable[str],
    scale: Iterable[str],
) -> RightSet:
    granted: RightSet = frozenset()
    for resource in resources:
        api: ApiResource = resource.api
        granted |= rights(api.group, api.plural, whole)
        granted |= rights(api.group, f"{api.plural}/status", status)
        if resource.definition.scale:
            granted |= rights(api.group, f"{api.plural}/scale", scale)
    return granted


def rules(granted: RightSet) -> list[Object]:
    """Return rights as RBAC rules: one for all resources of a group with the same verbs.

    Names of objects with the same rights are in one rule.
    """
    verbs: dict[tuple[str, str, str], set[str]] = {}
    for right in sorted(granted, key=_in_order):
        verbs.setdefault((right.group, right.name, right.resource), set()).add(right.verb)
    resources: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
    for (group, name, resource), given in verbs.items():
        key = group, name, tuple(verb for verb in VERBS if verb in given)
        resources.setdefault(key, []).append(resource)
    names: dict[tuple[str, tuple[str, ...], tuple[str, ...], bool], list[str]] = {}
    for (group, name, ordered), those in resources.items():
        names.setdefault((group, tuple(those), ordered, bool(name)), []).append(name)
    return [
        {
            "apiGroups": [group],
            "resources": list(those),
            **({"resourceNames": named} if is_named else {}),
            "verbs": list(ordered),
        }
        for (group, those, ordered, is_named), named in names.items()
    ]


def _in_order(right: Right) -> tuple[str, str, str, int, str]:
    """Return the sort key of a right; `shard-10` comes after `shard-2`."""
    return right.group, right.resource, right.verb, len(right.name), right.name
