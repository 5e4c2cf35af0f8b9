"""Made: live objects made by hand, with the managed fields that a server would have written."""

from __future__ import annotations

import copy
import json
from collections.abc import Generator, Mapping
from typing import Any, TypeVar

Object = dict[str, Any]
T = TypeVar("T")

MANAGER = "hedgerow-bluegreen"
KEYS = {
    "ownerReferences": ("uid",),
    "containers": ("name",),
    "env": ("name",),
    "ports": ("port", "protocol"),
    "conditions": ("type",),
    "contested": ("object", "path"),
}
"""The list-map keys of every granular list that these tests use; all other lists are atomic."""

UNOWNED = ("name", "namespace", "uid", "resourceVersion", "managedFields")


def in_one_turn(work: Generator[None, None, T]) -> T:
    """Return what work in parts returns."""
    while True:
        try:
            next(work)
        except StopIteration as done:
            return done.value


def fields(value: Any, name: str = "") -> Object:
    """Return the fieldsV1 tree of all that `value` declares."""
    if isinstance(value, dict) and value and name != "selector":
        return {f"f:{key}": fields(inner, key) for key, inner in value.items()}
    if isinstance(value, list) and name in KEYS:
        return {
            "k:" + json.dumps({key: item[key] for key in KEYS[name]}): {".": {}, **fields(item)}
            for item in value
        }
    return {}


def entry(
    declared: Object,
    manager: str = MANAGER,
    operation: str = "Apply",
    *,
    subresource: str = "",
    time: str = "2026-01-01T10:00:00Z",
) -> Object:
    """Return the managed fields entry of one manager."""
    body = {k: v for k, v in declared.items() if k not in ("apiVersion", "kind", "metadata")}
    meta = {k: v for k, v in declared.get("metadata", {}).items() if k not in UNOWNED}
    whole = {**body, **({"metadata": meta} if meta else {})}
    return {
        "manager": manager,
        "operation": operation,
        "apiVersion": declared["apiVersion"],
        "time": time,
        "fieldsType": "FieldsV1",
        "fieldsV1": fields(whole),
        **({"subresource": subresource} if subresource else {}),
    }


def live(
    declared: Object, *entries: Object, uid: str = "child-uid", version: str = "7", **meta: Any
) -> Object:
    """Return the object as it is after `declared` was applied; held by us alone if not told."""
    made = copy.deepcopy(declared)
    made["metadata"] |= {"uid": uid, "resourceVersion": version, **meta}
    made["metadata"]["managedFields"] = list(entries or (entry(declared),))
    return made


def without(tree: Object, *path: str) -> Object:
    """Return a fieldsV1 entry that lost one element."""
    lost = copy.deepcopy(tree)
    inner = lost["fieldsV1"]
    for step in path[:-1]:
        inner = inner[step]
    del inner[path[-1]]
    return lost


def taken(
    declared: Object, path: tuple[str, ...], value: Any, by: str = "kubectl-edit", **how: Any
) -> Object:
    """Return the live object after somebody else set the field at `path` (map keys) to `value`."""
    edited = copy.deepcopy(declared)
    inner: Any = edited
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    theirs: Any = value
    for step in reversed(path):
        theirs = {step: theirs}
    ours = without(entry(declared), *(f"f:{step}" for step in path))
    other = entry({**theirs, "apiVersion": declared["apiVersion"]}, by, "Update", **how)
    return live(edited, ours, other)


def removed(declared: Object, *path: str) -> Object:
    """Return the live object after somebody removed the field at `path`: nobody holds it."""
    edited = copy.deepcopy(declared)
    inner: Any = edited
    for step in path[:-1]:
        inner = inner[step]
    del inner[path[-1]]
    return live(edited, without(entry(declared), *(f"f:{step}" for step in path)))


def condition(type_: str, status: str = "True", **more: Any) -> Mapping[str, Any]:
    """Return a status condition as JSON."""
    return {"type": type_, "status": status, "reason": "Because", "message": "", **more}
