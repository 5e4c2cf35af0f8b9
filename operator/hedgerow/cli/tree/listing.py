"""Tree list: trees as objects for programs."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from hedgerow.cli.owners.listing import holder_data

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from hedgerow.cli.tree.resources import ShownConflict, TreeNode


def listed(trees: Iterable[TreeNode], unread: Mapping[str, str]) -> dict[str, Any]:
    """Return the resources with their children, and the kinds that could not be read, with why."""
    return {
        "resources": [_member(tree) for tree in trees],
        "unread": [{"kind": kind, "why": why} for kind, why in unread.items()],
    }


def _member(node: TreeNode) -> dict[str, Any]:
    conditions = [
        {"type": c.type, "status": c.status, "reason": c.reason, "message": c.message,
         "lastTransitionTime": c.since}
        for c in node.conditions
    ]  # fmt: skip
    full = {
        "apiVersion": node.api_version,
        "kind": node.kind,
        "namespace": node.namespace,
        "name": node.name,
        "uid": node.uid,
        "status": node.readiness.verdict,
        "readiness": node.readiness.words,
        "past": node.past,
        "replica": node.replica,
        "asked": node.asked,
        "changed": holder_data(node.changed) if node.changed else None,
        "conditions": conditions,
        "contested": [_conflict(conflict) for conflict in node.conflicts],
        "warning": node.warning,
        "children": [_member(child) for child in node.children],
    }
    return {key: value for key, value in full.items() if value}


def _conflict(conflict: ShownConflict) -> dict[str, str]:
    """Return what is known of a contested field, in the order of a status."""
    told = asdict(conflict)
    names = ("reason", "declared", "live")
    values = {name: told[name] for name in names if told[name] is not None}
    others = ("manager", "operation", "subresource", "since")
    return {"path": conflict.path, **values, **{name: told[name] for name in others if told[name]}}
