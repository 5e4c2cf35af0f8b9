"""Edits: reading and changing one place of a manifest, for writes by other field managers."""

from __future__ import annotations

import copy
from typing import Any

from support.objects.cases import Object, Path


def at(value: Any, path: Path) -> Any:
    """Return the value at a path, or None."""
    for step in path:
        value = _item(value, step) if isinstance(step, dict) else (value or {}).get(step)
    return value


def having(manifest: Object, path: Path, value: Any) -> Object:
    """Return a copy with another value at a path; None takes the field away."""
    edited = copy.deepcopy(manifest)
    inner = at(edited, path[:-1])
    if value is None:
        inner.pop(path[-1], None)
    else:
        inner[path[-1]] = value
    return edited


def only(manifest: Object, path: Path, value: Any) -> Object:
    """Return a manifest that declares this one field, and the list keys on the way to it."""
    metadata = manifest["metadata"]
    named = {name: metadata[name] for name in ("name", "namespace") if name in metadata}
    body = {"apiVersion": manifest["apiVersion"], "kind": manifest["kind"], "metadata": named}
    return _merged(body, _nested(path, value))


def reversed_lists(value: Any) -> Any:
    """Return a copy with every list the other way round."""
    if isinstance(value, dict):
        return {k: v if k == "managedFields" else reversed_lists(v) for k, v in value.items()}
    return [reversed_lists(v) for v in reversed(value)] if isinstance(value, list) else value


def _item(items: Any, key: Object) -> Any:
    for item in items or ():
        if all(item.get(name) == value for name, value in key.items()):
            return item
    return None


def _nested(path: Path, value: Any) -> Any:
    if not path:
        return value
    step, below = path[0], _nested(path[1:], value)
    return [{**step, **below}] if isinstance(step, dict) else {step: below}


def _merged(left: Any, right: Any) -> Any:
    if not (isinstance(left, dict) and isinstance(right, dict)):
        return right
    return {**left, **{k: _merged(left.get(k), v) for k, v in right.items()}}
