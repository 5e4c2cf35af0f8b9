"""Adoption: the one write that is not an apply: it relabels or removes managed fields entries.

An apply cannot remove what another field manager holds. This write can do only that: it changes
`metadata.managedFields` alone, of exactly one version of one object. Every field
that an entry holds afterwards was held before, perhaps by another manager; only an undo puts back
what entries held in an earlier version of the object.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from hedgerow.cli.program import field_manager
from hedgerow.fields.sets import members
from hedgerow.kube import bodies, wire
from hedgerow.kube.errors import Invalid, Stale
from hedgerow.kube.wire import Request

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from hedgerow.fields.sets import FieldPath
    from hedgerow.kube.cluster import Cluster
    from hedgerow_schemas.base import ApiResource, Object

CONTENT_TYPE = "application/json-patch+json"
_ENTRIES = "/metadata/managedFields"


def request(
    api: ApiResource,
    live: Object,
    edits: Mapping[int, Sequence[Object]],
    *,
    restoring: bool = False,
    dry_run: bool = False,
) -> Request:
    """Return the request that replaces some managed fields entries of a live object.

    `edits` maps the index of an entry to the entries that replace it; no entries remove it. The
    server refuses the request unless uid, version and each of these entries are as in `live`.
    Raises ValueError if there is no such entry, if a place would be held that none of the changed
    entries holds, unless a record is `restoring` it, or if no entry would be left: the server takes
    an empty list for a reset. Raises Invalid if the request is too large.

    The request goes to the object even if the fields are in its status: the status endpoint of a
    custom resource ignores changes of entries (seen on 1.36). The write leaves no entry for its
    field manager.
    """
    meta = live["metadata"]
    old: list[Object] = meta.get("managedFields") or []
    for index in edits:
        if not 0 <= index < len(old):
            raise ValueError(f"there is no entry {index}")
    new = [entry for index, entry in enumerate(old) for entry in edits.get(index, (entry,))]
    if new == old or not any(entry.get("fieldsV1") for entry in new):
        raise ValueError("nothing is changed, or no entry would be left")
    held = _held(entry for some in edits.values() for entry in some)
    if not restoring and held - _held(old[index] for index in edits):
        raise ValueError("the entries would hold more than before")
    tests = [_test("/metadata/uid", meta["uid"])]
    tests.append(_test("/metadata/resourceVersion", meta["resourceVersion"]))
    tests += [_test(f"{_ENTRIES}/{index}", old[index]) for index in edits]
    return Request(
        "PATCH",
        wire.path(api, meta.get("namespace", ""), meta["name"]),
        {"fieldManager": field_manager(), **({"dryRun": "All"} if dry_run else {})},
        bodies.written([*tests, {"op": "replace", "path": _ENTRIES, "value": new}]),
        CONTENT_TYPE,
        repeatable=dry_run,
    )


async def replace_managed_fields(
    cluster: Cluster,
    api: ApiResource,
    live: Object,
    edits: Mapping[int, Sequence[Object]],
    *,
    restoring: bool = False,
    dry_run: bool = False,
) -> Object:
    """Relabel, narrow or remove managed fields entries, and return the object; see `request`.

    Raises Stale if the object is no longer as in `live`, and KubeError.
    """
    asked = request(api, live, edits, restoring=restoring, dry_run=dry_run)
    try:
        return await cluster.send(asked)
    except Invalid as error:
        if error.code == HTTPStatus.UNPROCESSABLE_ENTITY and not error.causes:
            # A failed test of the patch is answered like this, without details.
            raise Stale("it changed in the meantime", request=str(asked)) from error
        raise


def _held(entries: Iterable[Object]) -> set[FieldPath]:
    return {place for entry in entries for place in members(entry.get("fieldsV1") or {})}


def _test(path: str, value: Any) -> Object:
    return {"op": "test", "path": path, "value": value}
