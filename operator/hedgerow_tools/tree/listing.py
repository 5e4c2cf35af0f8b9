"""Tree list: trees as objects for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from hedgerow_schemas.base import Condition, ContestedField
    from hedgerow_tools.tree.resources import TreeNode


def listed(trees: Iterable[TreeNode], unread: Mapping[str, str]) -> dict[str, Any]:
    """Return the resources with their children, and the kinds that could not be read, with why."""
    return {
        "resources": [_member(tree) for tree in trees],
        "unread": [{"kind": kind, "why": why} for kind, why in unread.items()],
    }


def _member(node: TreeNode) -> dict[str, Any]:
    full = {
        "apiVersion": node.api_version,
        "kind": node.kind,
        "namespace": node.namespace,
        "name": node.name,
        "uid": node.uid,
        "status": node.readiness.verdict,
        "readiness": node.readiness.words,
        "toDecide": node.to_decide,
        "past": node.past,
        "asked": node.asked,
        "changed": node.changed,
        "conditions": [_condition(one) for one in node.conditions],
        "contested": [_conflict(conflict) for conflict in node.conflicts],
        "warning": node.warning,
        "children": [_member(child) for child in node.children],
    }
    return {key: value for key, value in full.items() if value}


def _condition(condition: Condition) -> dict[str, str]:
    told = condition.wire()
    names = ("type", "status", "reason", "message", "lastTransitionTime")
    return {name: told.get(name, "") for name in names}


def _conflict(conflict: ContestedField) -> dict[str, str]:
    """Return a contested field as in a status, without its object, which has it."""
    return {name: value for name, value in conflict.wire().items() if name != "object"}
