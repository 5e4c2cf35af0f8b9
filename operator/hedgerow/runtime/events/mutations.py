"""Mutations: which webhooks and policies may have rewritten what we applied."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hedgerow.kube.errors import KubeError
from hedgerow_schemas.base import ApiResource, View

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from hedgerow.kube.cluster import Cluster
    from hedgerow.objects import ObjectRef
    from hedgerow_schemas.base import Object

GROUP = "admissionregistration.k8s.io"
WEBHOOKS = ApiResource(
    f"{GROUP}/v1",
    "MutatingWebhookConfiguration",
    "mutatingwebhookconfigurations",
    namespaced=False,
)
POLICIES = tuple(
    ApiResource(f"{GROUP}/{version}", "MutatingAdmissionPolicy", "mutatingadmissionpolicies", False)
    for version in ("v1", "v1beta1")
)
MOST = 8


async def candidates(cluster: Cluster, ref: ObjectRef) -> str:
    """Return the names of webhooks and policies whose rules match an object, if we may read them.

    It is empty if there are none: the API server itself changed the object. It does not record
    which of them it was. Raises nothing: without the right to read them, the report leaves the
    names out.
    """
    found: list[str] = []
    try:
        for kind in (WEBHOOKS, *POLICIES):
            found += await _matching(cluster, kind, ref)
    except KubeError as error:
        found.append(f"others that may not be read ({type(error).__name__})")
    names = list(dict.fromkeys(found))
    more = f" and {len(names) - MOST} more" if len(names) > MOST else ""
    return ", ".join(names[:MOST]) + more


async def _matching(cluster: Cluster, kind: ApiResource, ref: ObjectRef) -> list[str]:
    try:
        listing = await cluster.list(kind)
    except KubeError as error:
        if getattr(error, "served", True):
            raise
        return []  # this server does not have the kind
    return [
        f"{kind.kind}/{View(item).name}"
        for item in listing.items
        if any(_matches(rule, ref) for rule in _rules(View(item)))
    ]


def _rules(item: View) -> Iterator[Object]:
    """Yield the rules of a webhook configuration, or of a policy."""
    for webhook in item.items("webhooks"):
        yield from View(webhook).items("rules")
    yield from item.items("spec", "matchConstraints", "resourceRules")


def _matches(rule: Object, ref: ObjectRef) -> bool:
    return _has(rule.get("apiGroups"), ref.api.group) and _has(
        rule.get("resources"), ref.api.plural, "*/*"
    )


def _has(names: Iterable[Any] | None, *wanted: str) -> bool:
    return any(name in (*wanted, "*") for name in names or ())
