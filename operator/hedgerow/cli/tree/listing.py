"""Tree list: trees as objects for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hedgerow.encoding import to_json
from hedgerow.manifest import to_yaml

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from hedgerow.cli.tree.resources import Conflict, TreeNode
    from hedgerow.fields.managed import Holder


def listed(trees: Iterable[TreeNode], unread: Mapping[str, str]) -> dict[str, Any]:
    """Return the resources with their children, and the kinds that could not be read, with why."""
    return {
        "resources": [_member(tree) for tree in trees],
        "unread": [{"kind": kind, "why": why} for kind, why in unread.items()],
    }


def text(found: Mapping[str, Any], output: str = "json", *, part: bool = False) -> str:
    """Return it as JSON or YAML; a `part` of several is one line of JSON, or a document."""
    if output == "yaml":
        return ("---\n" if part else "") + to_yaml(found)
    return to_json(found, indent=None if part else 2).decode() + "\n"


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
        "asked": node.asked,
        "changed": _holder(node.changed) if node.changed else None,
        "conditions": conditions,
        "contested": [_conflict(conflict) for conflict in node.conflicts],
        "warning": node.warning,
        "children": [_member(child) for child in node.children],
    }
    return {key: value for key, value in full.items() if value}


def _conflict(conflict: Conflict) -> dict[str, str]:
    told = _holder(conflict.holder)
    since = told.pop("time", "")
    values = {"reason": conflict.reason, "declared": conflict.declared, "live": conflict.live}
    known = {name: value for name, value in values.items() if value is not None}
    return {"path": conflict.path, **known, **told, **({"since": since} if since else {})}


def _holder(holder: Holder) -> dict[str, str]:
    found = {
        "manager": holder.manager,
        "operation": holder.operation,
        "subresource": holder.subresource,
        "time": holder.time,
    }
    return {key: value for key, value in found.items() if value}
