"""Mistyped: bodies with one value of another type than the schema has, and with unknown fields."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from hedgerow_testing.memory.kind import ServedKind
from hedgerow_testing.memory.schema import (
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
    """Yield the path of each place of a kind, and a body with something wrong there.

    In each part of an object, of several places that have the same schema only the first has
    something wrong inside: of the two pods of a BlueGreen, and of a pod's lists of containers.
    """
    yield from ((path, body) for path, body, _ in _places(kind))


def mistyped_by_sort(kind: ServedKind) -> Iterator[tuple[str, Any]]:
    """Yield the same of a custom resource once for each sort of place, and all of a built-in kind.

    What is built in has Go types, of which each field is a fact. A server reads a definition field
    by field in one way: what a place is, and what it is in, decides, and not what it is called.
    """
    seen = set[_Sort]()
    for path, body, sort in _places(kind):
        within = tuple(one for one, _ in itertools.groupby(sort))
        if kind.builtin or within not in seen:
            seen.add(within)
            yield path, body


def is_dropped(kind: ServedKind, path: str) -> bool:
    """Whether a POST drops what is there: what is unknown, and a custom resource's status."""
    return UNKNOWN in path or (not kind.builtin and path.startswith(".status"))


_Schema = TypedSchema | Items
_Sort = tuple[tuple[Any, ...], ...]
"""What a place is, without its name, after what it is in."""
_Place = tuple[str, Any, _Sort]


def _places(kind: ServedKind) -> Iterator[_Place]:
    yield f".{UNKNOWN}", {UNKNOWN: 1}, ()
    for name, part in kind.schema.fields.items():
        for path, body, sort in _wrong(part, []):
            if f".{name}{path}" not in IDENTITY:
                yield f".{name}{path}", {name: body}, ((name,), *sort)


def _wrong(schema: _Schema, walked: list[_Schema]) -> Iterator[_Place]:
    for path, body, sort in _wrong_here(schema, walked):
        yield path, body, (_sort(schema), *sort)


def _wrong_here(schema: _Schema, walked: list[_Schema]) -> Iterator[_Place]:
    if isinstance(schema, Atomic):
        if schema.within is not None:
            yield from _wrong(schema.within, walked)
    elif isinstance(schema, Scalar):
        if schema.kind:
            yield "", WRONG[schema.kind], ()
    else:
        yield "", "text" if isinstance(schema, Struct | Map) else {"a": "b"}, ()
        if schema not in walked:
            walked.append(schema)
            yield from _wrong_inside(schema, walked)


def _wrong_inside(
    schema: Struct | Map | Keyed | SetOf | Items, walked: list[_Schema]
) -> Iterator[_Place]:
    if isinstance(schema, Struct):
        if not schema.preserves:
            yield f".{UNKNOWN}", {UNKNOWN: 1}, ((UNKNOWN,),)
        for name, inner in schema.fields.items():
            for path, body, sort in _wrong(inner, walked):
                yield f".{name}{path}", {name: body}, sort
    elif isinstance(schema, Map):
        for path, body, sort in _wrong(schema.values, walked):
            yield f".a{path}", {"a": body}, sort
    else:
        keys = _keys(schema)
        for path, body, sort in _wrong(schema.item, walked):
            yield f"[]{path}", [{**keys, **body} if isinstance(body, dict) else body], sort


def _sort(schema: _Schema) -> tuple[Any, ...]:
    """Return what a schema is, without what is inside and what it is called."""
    name = type(schema).__name__
    if isinstance(schema, Scalar):
        return name, schema.kind, schema.nullable
    if isinstance(schema, Struct):
        return name, schema.preserves, bool(schema.defaults)
    if isinstance(schema, Keyed):
        return name, len(schema.keys), bool(schema.defaults)
    return (name,)


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
