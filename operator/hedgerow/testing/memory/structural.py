"""Structural: a CRD's structural schema as a schema of the model."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, cast

from pydantic import StringConstraints, TypeAdapter, ValidationError

from hedgerow.testing.memory.schema import (
    Atomic,
    Items,
    Keyed,
    Map,
    Object,
    Scalar,
    SetOf,
    Struct,
    TypedSchema,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

_SCALARS = frozenset({"string", "integer", "number", "boolean"})
_LEAVES = {"integer": "number", "number": "number", "boolean": "boolean"}
"""Where fields are merged, any number is an integer; the definition's schema sees to the rest."""


def shape(schema: Object) -> TypedSchema:
    """Read one node: maps are granular and lists atomic unless the schema says otherwise."""
    if schema.get("type") == "array":
        return _list(schema)
    if "properties" in schema:
        fields = {name: shape(inner) for name, inner in schema["properties"].items()}
        defaults = _defaults(schema)
        struct = Struct(fields, defaults)
        return Atomic(struct) if schema.get("x-kubernetes-map-type") == "atomic" else struct
    if "additionalProperties" in schema:
        atomic = schema.get("x-kubernetes-map-type") == "atomic"
        below = Map(shape(schema["additionalProperties"]), omitempty=False)
        return Atomic(below) if atomic else below
    return scalar(schema)


def scalar(schema: Object) -> Scalar:
    """Return a leaf of the type that the schema names; any value where it names none.

    A text with a format, such as a time, may be any scalar where fields are merged.
    """
    kind = _LEAVES.get(schema.get("type", ""), "")
    if schema.get("type") == "string":
        kind = "string" if schema.get("format", "byte") == "byte" else "scalar"
    if schema.get("x-kubernetes-int-or-string"):
        kind = "scalar"
    return Scalar(kind=kind, nullable=schema.get("nullable") is True)


def wrong(schema: Object, value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield what the schema forbids: fields that lack, values outside type, enum or bounds."""
    if isinstance(value, dict | list) and schema.get("type") in _SCALARS:
        yield path.removeprefix("."), "Invalid value"
    elif isinstance(value, dict):
        yield from _wrong_map(schema, cast("Object", value), path)
    elif isinstance(value, list):
        yield from _wrong_list(schema, cast("list[Any]", value), path)
    elif value is not None and (text := _wrong_leaf(schema, value)):
        yield path.removeprefix("."), text


def _wrong_map(schema: Object, fields: Object, path: str) -> Iterator[tuple[str, str]]:
    for name in schema.get("required", ()):
        if fields.get(name) is None:
            yield f"{path}.{name}".removeprefix("."), "Required value"
    for name, inner in fields.items():
        below = schema.get("properties", {}).get(name) or schema.get("additionalProperties", {})
        yield from wrong(below, inner, f"{path}.{name}")


def _wrong_list(schema: Object, items: list[Any], path: str) -> Iterator[tuple[str, str]]:
    for index, inner in enumerate(items):
        yield from wrong(schema.get("items", {}), inner, f"{path}[{index}]")
    if len(items) < schema.get("minItems", 0):
        yield path.removeprefix("."), "Too few items"
    if len(items) > schema.get("maxItems", len(items)):
        yield path.removeprefix("."), "Too many"


def _wrong_leaf(schema: Object, value: Any) -> str:
    """Return what is wrong with a value that is neither a map nor a list; or nothing."""
    if "enum" in schema and value not in schema["enum"]:
        return "Unsupported value"
    fits = True
    if isinstance(value, str):
        fits = schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value))
        fits = fits and _matches(schema.get("pattern", ""), value)
    elif isinstance(value, int | float):
        fits = schema.get("minimum", value) <= value <= schema.get("maximum", value)
        is_whole = isinstance(value, int) or value.is_integer()
        fits = fits and (is_whole or schema.get("type") != "integer")
    return "" if fits else "Invalid value"


def _matches(pattern: str, text: str) -> bool:
    try:
        _matching(pattern).validate_python(text)
    except ValidationError:
        return False
    return True


@lru_cache(maxsize=256)
def _matching(pattern: str) -> TypeAdapter[str]:
    """Return what takes texts that a pattern finds: in linear time, as the server's own do."""
    return TypeAdapter(Annotated[str, StringConstraints(pattern=pattern)])


def _list(schema: Object) -> TypedSchema:
    kind, items = schema.get("x-kubernetes-list-type", "atomic"), schema["items"]
    if kind == "set":
        return SetOf(omitempty=False, item=scalar(items))
    item = shape(items)
    if kind == "map" and isinstance(item, Struct | Atomic):
        keys = tuple(schema["x-kubernetes-list-map-keys"])
        defaults = {name: value for name, value in _defaults(items).items() if name in keys}
        return Keyed(keys, item, defaults, omitempty=False)
    return Atomic(Items(item))


def _defaults(schema: Object) -> Object:
    return {
        name: inner["default"] for name, inner in schema["properties"].items() if "default" in inner
    }
