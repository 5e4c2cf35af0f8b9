"""Client-side apply: the patch that `kubectl apply` would send for a custom resource.

kubectl keeps the whole manifest in an annotation, and next time removes what is in that copy and no
longer in the manifest: a JSON merge patch from three versions (k8s.io/kubectl, pkg/cmd/apply, and
k8s.io/apimachinery, pkg/util/jsonmergepatch).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from pydantic_core import from_json

from hedgerow.fields.canonical import identical
from hedgerow.fields.paths import is_list, is_map
from hedgerow.objects import annotation, metadata

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hedgerow_schemas.base import Object

MANAGER: Final = "kubectl-client-side-apply"
LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
ANNOTATIONS_LIMIT: Final = 256 * 1024
"""Bytes of all annotations of an object together, names included: the API server takes no more."""
_HTML = {ord(char): f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"}


def creation(manifest: Object) -> Object:
    """Return what is POSTed for an object that does not exist: without nulls, with the copy."""
    return _without_nulls(_annotated(manifest))


def patch(stored: Object, manifest: Object) -> Object:
    """Return the JSON merge patch for an object that exists; empty: kubectl sends nothing.

    Raises ValueError when the copy in the stored object is no JSON object: kubectl fails then.
    """
    copy = annotation(stored, LAST_APPLIED)
    original: Any = from_json(copy) if copy else {}
    if not is_map(original):
        raise ValueError("it is no JSON object")
    wanted = _annotated(manifest)
    return _joined(_removals(original, wanted), _changes(stored, wanted))


def patched(live: Any, change: Any) -> Any:
    """Return a value as a JSON merge patch leaves it (RFC 7386)."""
    if not is_map(change):
        return change
    merged: Object = dict(live) if is_map(live) else {}
    for name, below in change.items():
        if below is None:
            merged.pop(name, None)
        else:
            merged[name] = patched(merged.get(name), below)
    return merged


def annotations_size(stored: Object | None, manifest: Object) -> int:
    """Return the bytes that the annotations come to, as the API server counts them."""
    kept: Mapping[str, str] = metadata(stored or {}).get("annotations") or {}
    wanted: Mapping[str, str] = metadata(_annotated(manifest))["annotations"]
    return sum(len(f"{name}{text}".encode()) for name, text in {**kept, **wanted}.items())


def _annotated(manifest: Object) -> Object:
    """Return the manifest with a copy of itself, byte for byte as Go writes it."""
    meta = metadata(manifest)
    given: Mapping[str, str] = meta.get("annotations") or {}
    others = {name: text for name, text in given.items() if name != LAST_APPLIED}
    body: Object = {**manifest, "metadata": {**meta, "annotations": others}}
    copy = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    annotations = {**others, LAST_APPLIED: copy.translate(_HTML) + "\n"}
    return {**manifest, "metadata": {**meta, "annotations": annotations}}


def _without_nulls(value: Any) -> Any:
    if is_map(value):
        return {name: _without_nulls(below) for name, below in value.items() if below is not None}
    return [_without_nulls(item) for item in value] if is_list(value) else value


def _changes(live: Object, wanted: Object) -> Object:
    """Return what is wanted otherwise than it is. A list is replaced whole; a null is not sent."""
    found: Object = {}
    for name, value in wanted.items():
        before = live.get(name)
        if is_map(value):
            below = _changes(before if is_map(before) else {}, value)
            if below or not (value or is_map(before)):
                found[name] = below
        elif value is not None and not identical(before, value):
            found[name] = value
    return found


def _removals(original: Object, wanted: Object) -> Object:
    """Return a null for each field that was in the last manifest and is gone, or is now null."""
    found: Object = {name: None for name in original if name not in wanted}
    for name, value in wanted.items():
        before = original.get(name)
        if value is None:
            found |= {name: None} if name not in original or before is not None else {}
        elif is_map(value):
            below = _removals(before if is_map(before) else {}, value)
            found |= {name: below} if below else {}
    return found


def _joined(removals: Object, changes: Object) -> Object:
    joined = {**removals, **changes}
    # What is both is a map on either side: a field that goes is not wanted otherwise.
    for name in removals.keys() & changes.keys():
        joined[name] = _joined(removals[name], changes[name])
    return joined
