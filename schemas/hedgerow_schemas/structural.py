"""Structural: a pydantic model's JSON Schema in the words that a CustomResourceDefinition takes.

A model may say more than a structural schema can; what cannot be said is refused with
`SchemaError` instead of being left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hedgerow_schemas.definition import EDITOR, UPSTREAM
from hedgerow_schemas.openapi import Schema, SchemaError

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic import BaseModel

_KEPT = frozenset(
    {
        "type",
        "format",
        "enum",
        "required",
        "description",
        "pattern",
        "minLength",
        "maxLength",
        "minimum",
        "maximum",
        "minItems",
        "maxItems",
        "x-kubernetes-int-or-string",
        "x-kubernetes-list-type",
        "x-kubernetes-list-map-keys",
        "x-kubernetes-map-type",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-validations",
        EDITOR,
    }
)
_PRESERVED: Schema = {"x-kubernetes-preserve-unknown-fields": True}


def structural(model: type[BaseModel], upstream: Callable[[str], Schema]) -> Schema:
    """Return a model's schema, every `$ref` written out; `upstream` gives Kubernetes's own types.

    Descriptions are the models' docstrings and `Field(description=…)`. JSON Schema that is meant
    for editors alone stays in place: `without_editor` takes it out.
    """
    document = model.model_json_schema(by_alias=True, mode="validation")
    return _Translation(document.pop("$defs", {}), upstream).node(document)


def upstream_types(model: type[BaseModel]) -> frozenset[str]:
    """Name the types of Kubernetes that stand in a model's schema."""
    names: set[str] = set()

    def note(name: str) -> Schema:
        names.add(name)
        return {}

    structural(model, note)
    return frozenset(names)


def without_editor(node: Any) -> Any:
    """Return a schema without what only editors read."""
    if isinstance(node, dict):
        return {k: without_editor(v) for k, v in node.items() if k != EDITOR}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(node, list):
        return [without_editor(v) for v in node]  # pyright: ignore[reportUnknownVariableType]
    return node


class _Translation:
    """One model's schema on its way; holds the definitions that its `$ref`s point into."""

    def __init__(self, definitions: Schema, upstream: Callable[[str], Schema]) -> None:
        self._definitions = definitions
        self._upstream = upstream

    def node(self, node: Schema) -> Schema:
        """Return the structural form of one node.

        What stands beside a reference has the last word, a field's description foremost.
        """
        own: Schema = {}
        referred: Schema = {}
        for word, value in node.items():
            if word in {"$ref", "anyOf", UPSTREAM}:
                referred |= self._referred(word, value)
            else:
                own |= self._word(word, value)
        merged = referred | own
        described = {"description": merged["description"]} if "description" in merged else {}
        return described | merged

    def _word(self, word: str, value: Any) -> Schema:
        if word in _KEPT:
            return {word: value}
        if word in {"title", "default"}:
            return _default(value) if word == "default" else {}
        if word == "const":
            return {"enum": [value]}
        if word == "properties":
            return {word: {name: self.node(field) for name, field in value.items()}}
        if word == "additionalProperties" and value is True:
            return _PRESERVED
        if word in {"additionalProperties", "items"} and isinstance(value, dict):
            return {word: self.node(value)}  # pyright: ignore[reportUnknownArgumentType]
        raise SchemaError(f"{word}: {value!r} cannot be said in a structural schema")

    def _referred(self, word: str, value: Any) -> Schema:
        if word == "$ref":
            return self.node(self._definitions[value.rpartition("/")[2]])
        if word == UPSTREAM:
            return self._upstream(value)
        # What is optional is left out, never null: the alternative to null is the schema.
        real = [schema for schema in value if schema != {"type": "null"}]
        if len(real) != 1:
            raise SchemaError(f"a choice of {len(real)} schemas cannot be said: {real!r}")
        return self.node(real[0])


def _default(value: Any) -> Schema:
    """Return the default that the server may set: scalars that say something.

    A list or map that the server defaults belongs to no field manager: its items would stay
    beside what somebody applies later.
    """
    says_something = isinstance(value, bool | int | float | str) and value != ""
    return {"default": value} if says_something else {}
