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
IDENTITY = {"", ".apiVersion", ".kind"} | {
    f".metadata{path}" for path in ("", ".name", ".namespace", ".uid")
}
"""What a request needs to be one about the object under test."""


def mistyped(kind: ServedKind) -> Iterator[tuple[str, Any]]:
    """Yield the path of each place of a kind, and a body with something wrong there."""
    for path, body in _wrong(kind.schema):
        if path not in IDENTITY:
            yield path, body


def is_dropped(kind: ServedKind, path: str) -> bool:
    """Whether a POST drops what is there: what is unknown, and a custom resource's status."""
    return UNKNOWN in path or (not kind.builtin and path.startswith(".status"))


def _wrong(schema: TypedSchema | Items) -> Iterator[tuple[str, Any]]:
    if isinstance(schema, Atomic):
        if schema.within is not None:
            yield from _wrong(schema.within)
        return
    if isinstance(schema, Scalar):
        if schema.kind:
            yield "", WRONG[schema.kind]
        return
    is_map = isinstance(schema, Struct | Map)
    yield "", "text" if is_map else {"a": "b"}
    if isinstance(schema, Struct):
        if not schema.preserves:
            yield f".{UNKNOWN}", {UNKNOWN: 1}
        for name, inner in schema.fields.items():
            yield from ((f".{name}{path}", {name: body}) for path, body in _wrong(inner))
    elif isinstance(schema, Map):
        yield from ((f".a{path}", {"a": body}) for path, body in _wrong(schema.values))
    else:
        keys = _keys(schema)
        for path, body in _wrong(schema.item):
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
