"""Schema: the shapes that server-side apply knows, and what the server makes of a value in them.

`omitempty` says that Go's JSON leaves an empty one out, as built-in kinds have it; custom resources
keep what was sent.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Object = dict[str, Any]
Derive = Callable[[Any], Any]


@dataclass(frozen=True)
class Scalar:
    """A leaf; `zero` is the value that Go leaves out, `spell` the server's spelling of one.

    A custom resource may have null where it is `nullable`.
    `kind` is what the server's schema takes, by `TYPES`; without one it takes any value.
    """

    zero: Any = None
    spell: Derive | None = None
    nullable: bool = False
    kind: str = ""

    def takes(self, value: Any) -> bool:
        """Return whether the server reads such a value: it takes no number for a text."""
        if value is None or not self.kind:
            return True
        if isinstance(value, bool):
            return self.kind in {"boolean", "scalar"}
        if self.kind == "bytes" and isinstance(value, str):
            return is_base64(value)
        if self.kind == "integer" and isinstance(value, float):
            return value.is_integer()
        return isinstance(value, TYPES[self.kind])

    def normal(self, value: Any) -> Any:
        """Return the value as the server stores it."""
        return self.spell(value) if self.spell else value

    def omits(self, value: Any) -> bool:
        """Return whether the server leaves the value out."""
        return self.zero is not None and type(value) is type(self.zero) and value == self.zero


TYPES: Mapping[str, tuple[type[Any], ...]] = {
    "string": (str,),
    "bytes": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "scalar": (str, int, float, bool),
}
"""The values of each kind of leaf. `bytes` is a text in base64; `scalar` is for quantities, times,
and what is a number or a text."""


def is_base64(text: str) -> bool:
    """Return whether a text is base64."""
    try:
        base64.b64decode("".join(text.splitlines()), validate=True)
    except ValueError:
        return False
    return True


@dataclass(frozen=True)
class Atomic:
    """A map or list that has one owner; `within` is its shape for defaulting only."""

    within: Struct | Map | Items | None = None
    omitempty: bool = False

    def normal(self, value: Any) -> Any:
        """Return the value as the server stores it."""
        return self.within.normal(value) if self.within else value

    def omits(self, value: Any) -> bool:
        """Return whether the server leaves the value out."""
        return self.omitempty and value in ({}, [])


@dataclass(frozen=True)
class Struct:
    """A map of named fields; `derive` fills what depends on the rest.

    `defaults` fills what is absent, and what Go would leave out as empty. With `preserves`, fields
    that are not known are values as they are.
    """

    fields: Mapping[str, TypedSchema]
    defaults: Mapping[str, Any] = field(default_factory=dict[str, Any])
    derive: Derive | None = None
    preserves: bool = False

    def normal(self, value: Object) -> Object:
        """Return the value as the server stores it."""
        given: Object = {
            name: inner
            for name, inner in value.items()
            if inner is not None or takes_null(self.fields.get(name))
        }
        empty = {k for k in self.defaults if k in given and self.fields[k].omits(given[k])}
        filled = {
            **given,
            **{k: self.defaults[k] for k in self.defaults.keys() - given.keys() | empty},
        }
        kept = {
            name: self.fields[name].normal(inner)
            for name, inner in filled.items()
            if name in self.fields
        }
        kept = {name: inner for name, inner in kept.items() if not self.fields[name].omits(inner)}
        if self.preserves:
            kept |= {name: inner for name, inner in given.items() if name not in self.fields}
        return self.derive(kept) if self.derive else kept

    def omits(self, _value: Any) -> bool:
        """Return whether the server leaves the value out."""
        return False


@dataclass(frozen=True)
class Map:
    """A granular map of arbitrary keys."""

    values: TypedSchema
    omitempty: bool = True

    def normal(self, value: Object) -> Object:
        """Return the value as the server stores it."""
        return {name: self.values.normal(inner) for name, inner in value.items()}

    def omits(self, value: Any) -> bool:
        """Return whether the server leaves the value out."""
        return self.omitempty and value == {}


@dataclass(frozen=True)
class Items:
    """The items of an atomic list, for defaulting."""

    item: TypedSchema

    def normal(self, value: list[Any]) -> list[Any]:
        """Return the value as the server stores it."""
        return [self.item.normal(inner) for inner in value]


@dataclass(frozen=True)
class Keyed:
    """A list whose items are known by `keys`; `defaults` are those of keys that may be left out."""

    keys: tuple[str, ...]
    item: Struct | Atomic
    defaults: Mapping[str, Any] = field(default_factory=dict[str, Any])
    omitempty: bool = True

    def normal(self, value: list[Any]) -> list[Any]:
        """Return the value as the server stores it."""
        return [self.item.normal(inner) for inner in value]

    def omits(self, value: Any) -> bool:
        """Return whether the server leaves the value out."""
        return self.omitempty and value == []


@dataclass(frozen=True)
class SetOf:
    """A list of scalars, each once."""

    omitempty: bool = True
    item: Scalar = Scalar()

    def normal(self, value: list[Any]) -> list[Any]:
        """Return the value as the server stores it."""
        return value

    def omits(self, value: Any) -> bool:
        """Return whether the server leaves the value out."""
        return self.omitempty and value == []


TypedSchema = Scalar | Atomic | Struct | Map | Keyed | SetOf


def takes_null(schema: TypedSchema | Items | None) -> bool:
    """Return whether null is a value there."""
    return isinstance(schema, Scalar) and schema.nullable
