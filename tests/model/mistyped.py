"""Mistyped: bodies with one value of another type than the schema has, and with unknown fields."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hedgerow.testing.memory.kind import ServedKind
from hedgerow.testing.memory.schema import (
    Atomic,
    Items,
    Keyed,
    Map,
    Scalar,
    SetOf,
    Struct,
    TypedSchema,
)

WRONG: dict[str, Any] = {
    "string": 5, "bytes": 5, "integer": "five", "number": "five", "boolean": "yes",
    "scalar": {"a": "b"},
}  # fmt: skip
RIGHT = {"string": "k", "integer": 1, "number": 1, "scalar": "k"}
UNKNOWN = "nope"
IDENTITY = {".apiVersion", ".kind"} | {
    f".metadata{path}" for path in ("", ".name", ".namespace", ".uid")
}
"""What a request needs to be one about the object under test."""


def mistyped(kind: ServedKind) -> Iterator[tuple[str, Any]]:
    """Yield the path of each sort of place of a kind, and a body with something wrong there.

    In each part of an object, of several places that have the same schema only the first has
    something wrong inside: of the two pods of a BlueGreen, and of a pod's lists of containers.
    """
    yield f".{UNKNOWN}", {UNKNOWN: 1}
    for name, part in kind.schema.fields.items():
        wrong = ((f".{name}{path}", {name: body}) for path, body in _wrong(part, []))
        yield from ((path, body) for path, body in wrong if path not in IDENTITY)


def is_dropped(kind: ServedKind, path: str) -> bool:
    """Whether a POST drops what is there: what is unknown, and a custom resource's status."""
    return UNKNOWN in path or (not kind.builtin and path.startswith(".status"))


_Schema = TypedSchema | Items


def _wrong(schema: _Schema, walked: list[_Schema]) -> Iterator[tuple[str, Any]]:
    if isinstance(schema, Atomic):
        if schema.within is not None:
            yield from _wrong(schema.within, walked)
    elif isinstance(schema, Scalar):
        if schema.kind:
            yield "", WRONG[schema.kind]
    else:
        yield "", "text" if isinstance(schema, Struct | Map) else {"a": "b"}
        if schema not in walked:
            walked.append(schema)
            yield from _wrong_inside(schema, walked)


def _wrong_inside(
    schema: Struct | Map | Keyed | SetOf | Items, walked: list[_Schema]
) -> Iterator[tuple[str, Any]]:
    if isinstance(schema, Struct):
        if not schema.preserves:
            yield f".{UNKNOWN}", {UNKNOWN: 1}
        for name, inner in schema.fields.items():
            yield from ((f".{name}{path}", {name: body}) for path, body in _wrong(inner, walked))
    elif isinstance(schema, Map):
        yield from ((f".a{path}", {"a": body}) for path, body in _wrong(schema.values, walked))
    else:
        keys = _keys(schema)
        for path, body in _wrong(schema.item, walked):
            yield f"[]{path}", [{**keys, **body} if isinstance(body, dict) else body]


def _keys(schema: Keyed | SetOf | Items) -> dict[str, Any]:
    """Return the keys of an item of a list whose items have some."""
    item = schema.item.within if isinstance(schema.item, Atomic) else schema.item
    if not isinstance(schema, Keyed) or not isinstance(item, Struct):
        return {}
    leaves = {key: item.fields[key] for key in schema.keys}
    return {
        key: RIGHT[leaf.kind] if key not in schema.defaults else schema.defaults[key]
        for key, leaf in leaves.items()
        if isinstance(leaf, Scalar)
    }
