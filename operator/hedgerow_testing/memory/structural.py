"""Structural: a CRD's structural schema as a schema of the model."""

from __future__ import annotations

from datetime import date
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address
from typing import TYPE_CHECKING, Any, Final, cast
from uuid import UUID

from pydantic_core import SchemaValidator, core_schema

from hedgerow_testing.memory.schema import (
    Atomic,
    Items,
    Keyed,
    Map,
    Object,
    Scalar,
    SetOf,
    Struct,
    TypedSchema,
    is_base64,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_LEAVES = {"integer": "number", "number": "number", "boolean": "boolean"}
"""Where fields are merged, any number is an integer; the definition's schema sees to the rest."""


def shape(schema: Object) -> TypedSchema:
    """Read one node: maps are granular and lists atomic unless the schema says otherwise."""
    if schema.get("type") == "array":
        return _list(schema)
    if "properties" in schema:
        fields = {name: shape(inner) for name, inner in schema["properties"].items()}
        defaults = _defaults(schema)
        preserves = schema.get("x-kubernetes-preserve-unknown-fields") is True
        struct = Struct(fields, defaults, preserves=preserves)
        return Atomic(struct) if schema.get("x-kubernetes-map-type") == "atomic" else struct
    if "additionalProperties" in schema:
        atomic = schema.get("x-kubernetes-map-type") == "atomic"
        below = Map(shape(schema["additionalProperties"]), omitempty=False)
        return Atomic(below) if atomic else below
    return scalar(schema)


def scalar(schema: Object) -> Scalar:
    """Return a leaf of the type that the schema names; any value where it names none.

    A text with a format, such as a time, may be any scalar where fields are merged, and what is a
    number or a text may be anything.
    """
    kind = _LEAVES.get(schema.get("type", ""), "")
    if schema.get("type") == "string":
        kind = "string" if schema.get("format", "byte") == "byte" else "scalar"
    return Scalar(kind=kind, nullable=schema.get("nullable") is True)


def wrong(schema: Object, value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield the violations of a schema, as paths and messages; CEL rules are not evaluated."""
    if value is None:
        return  # where it is not a value, the server has left it out
    if text := _wrong_value(schema, value):
        yield path.removeprefix("."), text
    elif isinstance(value, dict):
        yield from _wrong_map(schema, cast("Object", value), path)
    elif isinstance(value, list):
        yield from _wrong_list(schema, cast("list[Any]", value), path)
    for part in schema.get("allOf", ()):
        yield from wrong(part, value, path)
    if text := _wrong_choice(schema, value):
        yield path.removeprefix("."), text


_JSON: Final[Object] = {}
"""The schema of any value."""


def _wrong_choice(schema: Object, value: Any) -> str:
    """Return which choice among schemas a value does not fit; or nothing."""
    fits = {
        word: sum(not any(wrong(choice, value)) for choice in schema[word])
        for word in ("anyOf", "oneOf")
        if word in schema
    }
    if fits.get("anyOf") == 0 or fits.get("oneOf", 1) != 1:
        return "Invalid value: must validate one of the schemas"
    if "not" in schema and not any(wrong(schema["not"], value)):
        return "Invalid value: must not validate the schema (not)"
    return ""


def _wrong_list(schema: Object, items: list[Any], path: str) -> Iterator[tuple[str, str]]:
    if text := _wrong_size(schema, "Items", len(items)):
        yield path.removeprefix("."), text
    for index, inner in enumerate(items):
        yield from wrong(schema.get("items", {}), inner, f"{path}[{index}]")


def _wrong_map(schema: Object, fields: Object, path: str) -> Iterator[tuple[str, str]]:
    if text := _wrong_size(schema, "Properties", len(fields)):
        yield path.removeprefix("."), text
    for name in schema.get("required", ()):
        if fields.get(name) is None:
            yield f"{path}.{name}".removeprefix("."), "Required value"
    for name, inner in fields.items():
        below = schema.get("properties", {}).get(name) or schema.get("additionalProperties")
        yield from wrong(_JSON if below in (None, True) else below, inner, f"{path}.{name}")


def _wrong_value(schema: Object, value: Any) -> str:
    """Return the mistake of a value by itself; or nothing."""
    if not _is_of_type(schema, value):
        return f"Invalid value: must be of type {schema.get('type', 'integer or string')}"
    if "enum" in schema and value not in schema["enum"]:
        return "Unsupported value"
    if isinstance(value, str):
        return _wrong_text(schema, value)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return "Invalid value" if is_number and not _is_within(schema, value) else ""


def _wrong_text(schema: Object, text: str) -> str:
    if wrong_size := _wrong_size(schema, "Length", len(text)):
        return wrong_size
    if not _FORMATS.get(schema.get("format", ""), _is_any)(text):
        return f"Invalid value: must be of type {schema['format']}"
    return "" if _re2(schema.get("pattern", "")).isinstance_python(text) else "Invalid value"


def _wrong_size(schema: Object, word: str, size: int) -> str:
    if size > schema.get(f"max{word}", size):
        return "Too long" if word == "Length" else "Too many"
    return "Invalid value: too few" if size < schema.get(f"min{word}", 0) else ""


def _is_of_type(schema: Object, value: Any) -> bool:
    if schema.get("x-kubernetes-int-or-string"):
        return isinstance(value, str) or _is_whole(value)
    match schema.get("type"):
        case "integer":
            return _is_whole(value)
        case "boolean":
            return isinstance(value, bool)
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case str(kind):
            return isinstance(value, {"string": str, "array": list}.get(kind, dict))
        case _:
            return True


def _is_whole(value: Any) -> bool:
    if isinstance(value, bool):
        return False
    return isinstance(value, int) or (isinstance(value, float) and value.is_integer())


def _is_within(schema: Object, value: float) -> bool:
    """Return whether a number is within the bounds of its schema."""
    least, most = schema.get("minimum", value), schema.get("maximum", value)
    if schema.get("exclusiveMinimum") and value == least:
        return False
    if schema.get("exclusiveMaximum") and value == most:
        return False
    end = {"int32": 1 << 31, "int64": 1 << 63}.get(schema.get("format", ""))
    fits = end is None or -end <= value < end
    return fits and least <= value <= most and value % schema.get("multipleOf", value or 1) == 0


@lru_cache(maxsize=256)
def _re2(pattern: str) -> SchemaValidator:
    """Return a pattern's validator: as in Go, `$` is the end, and not before a last newline."""
    return SchemaValidator(core_schema.str_schema(pattern=pattern))


def _is_any(_text: str) -> bool:
    return True


def _read_by(read: Callable[[str], object]) -> Callable[[str], bool]:
    def is_one(text: str) -> bool:
        try:
            read(text)
        except ValueError:
            return False
        return True

    return is_one


_FORMATS: Final[Mapping[str, Callable[[str], bool]]] = {
    "date-time": _re2(
        r"^\d{4}-\d\d-\d\d[tT ]\d\d:\d\d:\d\d([.]\d+)?([zZ]|[+-]\d\d:\d\d)$"
    ).isinstance_python,
    "date": _read_by(date.fromisoformat),
    "byte": lambda text: text != "" and is_base64(text),
    "ipv4": _read_by(IPv4Address),
    "ipv6": _read_by(IPv6Address),
    "uuid": _read_by(UUID),
}
"""The formats that the server looks at, among those that models mostly have."""


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
