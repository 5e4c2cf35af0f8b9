"""Owners list: an object's places as JSON values, for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import asdict

from hedgerow.objects import metadata
from hedgerow_tools.fields.selection import NO_DISPUTES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hedgerow.fields.managed_fields import Holder
    from hedgerow.objects import ObjectRef
    from hedgerow_schemas.base import Object
    from hedgerow_tools.fields.field_tree import Node, Ownership
    from hedgerow_tools.fields.selection import Disputes


def listed(
    live: Object,
    chosen: Ownership,
    disputes: Disputes = NO_DISPUTES,
    unserved: Sequence[str] = (),
) -> Object:
    """Return the object, its places as `fields`, and places that are held but missing as `gone`.

    `state` is held, unowned, identity (set by the server alone) or branch: a map, list or item
    that is held itself, without a value here. A contested field also has the declared value and
    the commands that settle it. `unserved` are versions of managed fields that are not served.
    """
    return {
        "object": identity_data(live),
        "fields": [
            {**_field(node), **_disputed(disputes, node.path)}
            for node in chosen.places()
            if _is_told(node)
        ],
        "gone": [
            {"path": one.path, "apiVersion": one.version, "managers": [holder_data(one.holder)]}
            for one in chosen.gone
        ],
        "missing": [
            {"path": path, "contested": owner, **_disputed(disputes, path)}
            for path, owner in chosen.missing
        ],
        **({"unserved": list(unserved)} if unserved else {}),
    }


def identity_data(live: Object) -> Object:
    """Return which object it is, in which version."""
    meta = metadata(live)
    named = {
        name: meta[name] for name in ("namespace", "name", "uid", "resourceVersion") if name in meta
    }
    return {"apiVersion": live["apiVersion"], "kind": live["kind"], **named}


def ref_data(ref: ObjectRef, *, namespace_always: bool = False) -> Object:
    """Return which object a reference is about; without a namespace if it has none."""
    has_namespace = namespace_always or ref.namespace
    return {
        "apiVersion": ref.api.group_version,
        "kind": ref.api.kind,
        **({"namespace": ref.namespace} if has_namespace else {}),
        "name": ref.name,
    }


def _is_told(node: Node) -> bool:
    return node.kind != "branch" or bool(node.holders or node.contested)


def _field(node: Node) -> Object:
    held = "held" if node.holders else "unowned"
    field: dict[str, Any] = {
        "path": node.path,
        "state": node.kind if node.kind != "leaf" else held,
    }
    if node.kind != "branch":
        field["value"] = node.value
    if node.contested:
        field["contested"] = node.contested
    return {**field, "managers": [holder_data(holder) for holder in node.holders]}


def _disputed(disputes: Disputes, path: str) -> Object:
    found = disputes.of(path)
    if found is None:
        return {}
    told = {"reason": found.field.reason, "declared": found.field.declared}
    remedies = [{"effect": one.effect, "command": one.command} for one in found.remedies]
    return {**{name: value for name, value in told.items() if value}, "remedies": remedies}


def holder_data(holder: Holder) -> Object:
    """Return a holder's known attributes."""
    return {name: value for name, value in asdict(holder).items() if value}
