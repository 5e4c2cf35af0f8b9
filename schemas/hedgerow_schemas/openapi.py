"""OpenAPI: a pydantic model as the structural schema that a CustomResourceDefinition takes.

A model may say more than a structural schema can; what cannot be said is refused with
`SchemaError` instead of being left out.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from hedgerow_schemas.definition import EDITOR, UPSTREAM
from hedgerow_schemas.kubernetes_types import Schema, SchemaError

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
        "default",
        EDITOR,
    }
)
_INT_OR_STRING: Final = [{"type": "integer"}, {"type": "string"}]
_SCALAR: Final = (bool, int, float, str)
_PRESERVED: Schema = {"x-kubernetes-preserve-unknown-fields": True}


def structural_schema(model: type[BaseModel], upstream: Callable[[str], Schema]) -> Schema:
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

    structural_schema(model, note)
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

    def node(self, node: Schema, path: str = "") -> Schema:
        """Return the structural form of one node, which is at `path` of the resource.

        What stands beside a reference has the last word, a field's description foremost.
        """
        own: Schema = {}
        referred: Schema = {}
        for word, value in node.items():
            if word in {"$ref", "anyOf", UPSTREAM}:
                referred |= self._referred(word, value, path)
            else:
                own |= self._word(word, value, path)
        merged = referred | own
        if "default" in merged and not isinstance(merged["default"], _SCALAR):
            merged |= _described(merged, _lean(merged.pop("default")))
        described = {"description": merged["description"]} if "description" in merged else {}
        return described | merged

    def _word(self, word: str, value: Any, path: str) -> Schema:
        if word == "title" or (word == "default" and value == ""):
            return {}
        if word in _KEPT:
            return {word: value}
        if word == "const":
            return {"enum": [value]}
        if word == "properties":
            return {word: {name: self.node(v, f"{path}.{name}") for name, v in value.items()}}
        if word == "additionalProperties" and value is True:
            return _PRESERVED
        if word in {"additionalProperties", "items"} and isinstance(value, dict):
            return {word: self.node(value, f"{path}[*]")}  # pyright: ignore[reportUnknownArgumentType]
        raise SchemaError(f"{path}: {word} {value!r} has no place in a structural schema")

    def _referred(self, word: str, value: Any, path: str) -> Schema:
        if word == "$ref":
            return self.node(self._definitions[value.rpartition("/")[2]], path)
        if word == UPSTREAM:
            return self._upstream(value)
        # What is optional is left out, never null: the alternative to null is the schema.
        real = [schema for schema in value if schema != {"type": "null"}]
        if sorted(real, key=str) == _INT_OR_STRING:
            return {"x-kubernetes-int-or-string": True}
        if len(real) != 1:
            types = " or ".join(str(schema.get("type") or schema.get("$ref")) for schema in real)
            raise SchemaError(f"{path}: a choice of {types} has no place in a structural schema")
        return self.node(real[0], path)


def _described(schema: Schema, default: Any) -> Schema:
    """Return the description of a field with a default that no server may set.

    A list or map that the server sets belongs to no field manager: its items would stay beside what
    somebody applies later. So the model alone fills it in, and the description says so.
    """
    if default in (None, [], {}) or default == _implied(schema):
        return {}
    sentence = f"Defaults to {json.dumps(default, separators=(',', ':'))}."
    return {"description": " ".join(filter(None, (schema.get("description"), sentence)))}


def _implied(schema: Schema) -> Schema:
    """Return what a model has whose fields all have their defaults."""
    fields: Schema = schema.get("properties", {})
    return _lean({name: field.get("default", _implied(field)) for name, field in fields.items()})


def _lean(value: Any) -> Any:
    """Return a value without what is empty in its maps."""
    if isinstance(value, dict):
        known = {name: _lean(item) for name, item in value.items()}  # pyright: ignore[reportUnknownVariableType]
        return {name: item for name, item in known.items() if item not in (None, "", [], {})}  # pyright: ignore[reportUnknownVariableType]
    return [_lean(item) for item in value] if isinstance(value, list) else value  # pyright: ignore[reportUnknownVariableType]
