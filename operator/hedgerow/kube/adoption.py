"""Adoption: the one write that is not an apply: it removes or narrows managed fields entries.

An apply cannot remove what another field manager holds. This write can do only that: it changes
`metadata.managedFields` alone, of exactly one version of one object, and only removes from it; it
adds a time where the server recorded none.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from hedgerow.encoding import to_json
from hedgerow.kube import wire
from hedgerow.kube.wire import Request
from hedgerow.objects import Installation

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hedgerow_schemas.base import ApiResource, Object

CONTENT_TYPE = "application/json-patch+json"
FIELD_MANAGER = Installation().common_manager("cli")
"""The field manager of hedgerow's command line; this write leaves no entry for it."""

_ENTRIES = "/metadata/managedFields"


def request(
    api: ApiResource,
    live: Object,
    edits: Mapping[int, Mapping[str, Any] | None],
    manager: str = FIELD_MANAGER,
    dated: Mapping[int, str] = MappingProxyType({}),
) -> Request:
    """Return the request that removes entries of a live object, or some of their fields.

    `edits` maps an entry's index to the fieldsV1 tree that it keeps; None removes the entry.
    `dated` maps the index of an entry without a time to its time (RFC 3339): the server records
    none for an apply that changes no value. The server refuses the request unless uid, version and
    each of these entries are as in `live`. Raises ValueError if there is no such entry, if one
    would hold more than before or has a time, or if none would be left: the server takes an empty
    list for a reset. The request is for the object even if the fields are in its status: the status
    endpoint ignores it for custom resources (seen on 1.36).
    """
    meta = live["metadata"]
    old: list[Object] = meta.get("managedFields") or []
    tests = [_test("/metadata/uid", meta["uid"])]
    tests.append(_test("/metadata/resourceVersion", meta["resourceVersion"]))
    changes: list[Object] = []
    for index, time in dated.items():
        if index in edits or "time" in old[index]:
            raise ValueError(f"entry {index} has a time, or is changed otherwise")
        path = f"{_ENTRIES}/{index}"
        tests.append(_test(path, old[index]))
        changes.append({"op": "replace", "path": path, "value": {**old[index], "time": time}})
    for index in sorted(edits, reverse=True):  # last first, as a removal moves later entries
        if not 0 <= index < len(old):
            raise ValueError(f"there is no entry {index}")
        tests.append(_test(f"{_ENTRIES}/{index}", old[index]))
        changes.append(_change(index, old[index], edits[index]))
    kept = [entry for index, entry in enumerate(old) if edits.get(index, entry.get("fieldsV1"))]
    if not edits or not kept:
        raise ValueError("nothing is changed, or no entry would be left")
    return Request(
        "PATCH",
        wire.path(api, meta.get("namespace", ""), meta["name"]),
        {"fieldManager": manager},
        to_json([*tests, *changes]),
        CONTENT_TYPE,
        repeatable=False,
    )


def _test(path: str, value: Any) -> Object:
    return {"op": "test", "path": path, "value": value}


def _change(index: int, entry: Object, tree: Mapping[str, Any] | None) -> Object:
    path = f"{_ENTRIES}/{index}"
    if not tree:
        return {"op": "remove", "path": path}
    if not _is_part(tree, entry.get("fieldsV1") or {}):
        raise ValueError(f"entry {index} would hold more than before")
    return {"op": "replace", "path": path, "value": {**entry, "fieldsV1": dict(tree)}}


def _is_part(tree: Mapping[str, Any], whole: Mapping[str, Any]) -> bool:
    """Return whether a tree is part of another; a leaf in place of a branch would hold more."""
    return all(
        element in whole and bool(below) == bool(whole[element]) and _is_part(below, whole[element])
        for element, below in tree.items()
    )
