"""Allocated: values that only the server knows, and a dry run makes up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from hedgerow.fields.paths import is_list, is_map, path_of
from hedgerow.objects import PLACEHOLDER, metadata
from hedgerow_tools.fields.diff import difference
from hedgerow_tools.fields.relabelling import COPY

if TYPE_CHECKING:
    from hedgerow_schemas.base import Object
    from hedgerow_tools.fields.diff import Line
    from hedgerow_tools.fields.structure import Structure

UNKNOWN: Final = "(known once applied)"
_SERVICE: Final = ("v1", "Service")
_ADDRESSES: Final = (".spec.clusterIP", ".spec.healthCheckNodePort")
"""How fields of a Service begin besides node ports: pkg/registry/core/service/storage/alloc.go."""
_COPY: Final = path_of(COPY)


def foreseen(
    before: Object | None,
    after: Object | None,
    field_manager: str,
    structure: Structure | None = None,
) -> tuple[Line, ...]:
    """Return the difference to what a dry run made; what will have another value is UNKNOWN.

    That is what the server allocates where nobody declares it. Left out is the manifest's copy,
    which kubectl and the server keep up to date: it says again what the other lines say.
    """
    differing = difference(before, after, field_manager, structure)
    lines = tuple(line for line in differing if line.path != _COPY)
    if ((after or {}).get("apiVersion"), (after or {}).get("kind")) != _SERVICE:
        return lines
    return tuple(replace(line, new=UNKNOWN) if _is_allocated(line) else line for line in lines)


def without_uid(made: Object) -> Object:
    """Return a new object with PLACEHOLDER for its uid, which a Job has in its labels too."""
    uid = metadata(made).get("uid", "")
    known: Object = _without(made, uid) if uid else made
    return {**known, "metadata": {**metadata(known), "uid": PLACEHOLDER}}


def _is_allocated(line: Line) -> bool:
    if line.kind not in {"added", "changed"} or line.after:
        return False
    is_port = line.path.startswith(".spec.ports[") and line.path.endswith("].nodePort")
    return line.path.startswith(_ADDRESSES) or is_port


def _without(value: Any, uid: str) -> Any:
    """Return a value with the placeholder for a uid that it contains."""
    if is_map(value):
        return {name: _without(inner, uid) for name, inner in value.items()}
    if is_list(value):
        return [_without(inner, uid) for inner in value]
    return value.replace(uid, PLACEHOLDER) if isinstance(value, str) else value
