"""Judged: hand-made live objects with managed fields, and what a verdict told of them."""

from __future__ import annotations

from typing import Any

from hedgerow.fields.ownership import Leaf, Verdict

Object = dict[str, Any]
OURS, OTHER = "hedgerow-test", "other"
NAME = {"name": "x", "namespace": "default"}


def want(kind: str = "Deployment", version: str = "apps/v1", **body: Any) -> Object:
    return {"apiVersion": version, "kind": kind, "metadata": NAME, **body}


def live(declared: Object, *entries: tuple[str, Object], **body: Any) -> Object:
    """An object with entries "manager", "manager/operation" or "manager/operation/subresource"."""
    metadata = {**declared["metadata"], "uid": "u", "resourceVersion": "7", "generation": 3}
    managed = []
    for who, tree in entries:
        manager, operation, subresource = (*who.split("/"), "", "")[:3]
        managed.append(
            {
                "manager": manager,
                "operation": operation or "Apply",
                "apiVersion": declared["apiVersion"],
                "fieldsV1": tree,
            }
            | ({"subresource": subresource} if subresource else {})
        )
    return {**declared, **body, "metadata": {**metadata, "managedFields": managed}}


def told(verdict: Verdict) -> list[tuple[str, str]]:
    return [(leaf.why, leaf.path) for leaf in verdict.leaves]


def only(verdict: Verdict) -> Leaf:
    (leaf,) = verdict.leaves
    return leaf


def item(*fields: str) -> Object:
    return {".": {}, **{f"f:{field}": {} for field in fields}}
