"""Client-side apply: the patch that `kubectl apply` would send for a custom resource.

kubectl keeps the whole manifest in an annotation. The next time it removes fields that are in that
copy but not in the manifest any more: a JSON merge patch from three versions (k8s.io/kubectl,
pkg/cmd/apply, and k8s.io/apimachinery, pkg/util/jsonmergepatch).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from hedgerow.encoding import canonical, decode
from hedgerow.fields.canonical import identical
from hedgerow.fields.paths import is_list, is_map
from hedgerow.objects import annotation, metadata

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hedgerow_schemas.base import Object

MANAGER: Final = "kubectl-client-side-apply"
LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
ANNOTATIONS_LIMIT: Final = 256 * 1024
"""The most bytes of all annotations of an object, with names, that the API server accepts."""
_HTML = {ord(char): f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"}


def creation(manifest: Object) -> Object:
    """Return the POST body for an object that does not exist: without nulls, with the copy."""
    return _without_nulls(_annotated(manifest))


def patch(stored: Object, manifest: Object) -> Object:
    """Return the JSON merge patch for an existing object; if it is empty, kubectl sends nothing.

    Raises ValueError if the copy in the stored object is not a JSON object: kubectl fails then.
    """
    copy = annotation(stored, LAST_APPLIED)
    original: Any = decode(copy.encode()) if copy else {}
    if not is_map(original):
        raise ValueError("it is no JSON object")
    wanted = _annotated(manifest)
    return _joined(_removals(original, wanted), _changes(stored, wanted))


def patched(live: Any, change: Any) -> Any:
    """Return a value after a JSON merge patch (RFC 7386)."""
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
    """Return the size of all annotations in bytes, as the API server counts it."""
    kept: Mapping[str, str] = metadata(stored or {}).get("annotations") or {}
    wanted: Mapping[str, str] = metadata(_annotated(manifest))["annotations"]
    return sum(len(f"{name}{text}".encode()) for name, text in {**kept, **wanted}.items())


def _annotated(manifest: Object) -> Object:
    """Return the manifest with a copy of itself, in exactly the bytes that Go writes."""
    meta = metadata(manifest)
    given: Mapping[str, str] = meta.get("annotations") or {}
    others = {name: text for name, text in given.items() if name != LAST_APPLIED}
    body: Object = {**manifest, "metadata": {**meta, "annotations": others}}
    copy = canonical(body)
    annotations = {**others, LAST_APPLIED: copy.translate(_HTML) + "\n"}
    return {**manifest, "metadata": {**meta, "annotations": annotations}}


def _without_nulls(value: Any) -> Any:
    if is_map(value):
        return {name: _without_nulls(below) for name, below in value.items() if below is not None}
    return [_without_nulls(item) for item in value] if is_list(value) else value


def _changes(live: Object, wanted: Object) -> Object:
    """Return the wanted values that differ. Lists are replaced as a whole; nulls are not sent."""
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
    """Return a null for each field of the last manifest that is now missing or null."""
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
    # A name in both is a map on both sides: a removed field has no wanted value.
    for name in removals.keys() & changes.keys():
        joined[name] = _joined(removals[name], changes[name])
    return joined
