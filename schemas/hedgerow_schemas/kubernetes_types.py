"""Kubernetes types: out of the API server's OpenAPI document, as structural schemas.

The document is that of `/openapi/v3/apis/batch/v1`; it is handed in, never fetched here. What a
structural schema may hold: "Specifying a structural schema" in the documentation of custom
resources.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

Schema = dict[str, Any]
Refer = Callable[[str, frozenset[str]], Schema]
"""Returns the schema for a named type; the set has its keys if it is an item of a list-map."""

DOCUMENT_PATH = "/openapi/v3/apis/batch/v1"
"""Where an API server publishes the document with PodSpec."""

QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
INT_OR_STRING = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"

_NUMBER = r"([0-9]+(\.[0-9]*)?|\.[0-9]+)"
_SPECIAL: Mapping[str, Schema] = {
    QUANTITY: {
        "x-kubernetes-int-or-string": True,
        "pattern": rf"^[+-]?{_NUMBER}([KMGTPE]i|[numkMGTPE]|[eE][+-]?{_NUMBER})?$",
    },
    INT_OR_STRING: {"x-kubernetes-int-or-string": True},
}
_ZERO_AS_NULL: frozenset[str] = frozenset({"io.k8s.apimachinery.pkg.apis.meta.v1.Time"})
"""Types of which Go writes the zero value as null, though the OpenAPI document does not say so.

So everything that is written in Go prints `creationTimestamp: null` in the metadata of a template.
"""

_KEPT = frozenset(
    {
        "type",
        "format",
        "enum",
        "required",
        "x-kubernetes-list-type",
        "x-kubernetes-list-map-keys",
        "x-kubernetes-map-type",
    }
)
_CONTENTS = frozenset({"properties", "additionalProperties"})
_DROPPED = frozenset(
    {
        "x-kubernetes-group-version-kind",
        "x-kubernetes-patch-merge-key",
        "x-kubernetes-patch-strategy",
        "x-kubernetes-unions",
    }
)


class SchemaError(ValueError):
    """A schema cannot be expressed as a structural schema, or refers to a missing type."""


class Upstream:
    """The types of one OpenAPI document, with or without their descriptions."""

    def __init__(self, document: Mapping[str, Any], *, describe: bool) -> None:
        self._types: Mapping[str, Schema] = document["components"]["schemas"]
        self._describe = describe

    def inline(self, name: str) -> Schema:
        """Return a type with every type that it refers to written out in place.

        Raises SchemaError if a type refers to itself: a structural schema is finite.
        """
        return self._inline(name, frozenset(), ())

    def _inline(self, name: str, keys: frozenset[str], outer: tuple[str, ...]) -> Schema:
        if name in outer:
            raise SchemaError(f"{name} refers to itself through {' -> '.join(outer)}")

        def refer(inner: str, inner_keys: frozenset[str]) -> Schema:
            return self._inline(inner, inner_keys, (*outer, name))

        return self._named(name, refer, keys)

    def definitions(self, names: Iterable[str], refer: Refer) -> dict[str, Schema]:
        """Return the named types and all that they refer to, each once, by full name."""
        wanted = sorted(closure(self._types, names))
        return {name: self._named(name, refer, frozenset()) for name in wanted}

    def _named(self, name: str, refer: Refer, keys: frozenset[str]) -> Schema:
        node = _type(self._types, name)
        schema = dict(_SPECIAL[name]) if name in _SPECIAL else self._node(node, refer, keys)
        if name in _ZERO_AS_NULL:
            schema["nullable"] = True
        return self._described(node, schema)

    def _described(self, node: Schema, schema: Schema) -> Schema:
        """Describe a schema in the node's own words, which know more than those of its type."""
        if not self._describe or "description" not in node:
            return schema
        words = {"description": node["description"]}
        return words | schema | words

    def _node(self, node: Schema, refer: Refer, keys: frozenset[str]) -> Schema:
        target = _target(node)
        if target:
            return self._described(node, refer(target, keys))
        schema = self._described(node, {})
        for word, value in node.items():
            schema |= self._word(node, word, value, refer, keys)
        if node.get("type") == "object" and not _CONTENTS & set(node):
            # It is JSON of any kind, or may get fields in a later version.
            schema["x-kubernetes-preserve-unknown-fields"] = True
        return schema

    def _word(
        self, node: Schema, word: str, value: Any, refer: Refer, keys: frozenset[str]
    ) -> Schema:
        if word in _KEPT:
            return {word: value}
        if word in _DROPPED or word in {"description", "default"}:
            return {}
        if word == "items":
            item_keys = frozenset(node.get("x-kubernetes-list-map-keys", ()))
            return {word: self._node(value, refer, item_keys)}
        if word == "additionalProperties":
            return {word: self._node(value, refer, frozenset())}
        if word == "properties":
            return {word: self._properties(node, refer, keys)}
        raise SchemaError(f"{word}: {value!r} has no place in a structural schema")

    def _properties(self, node: Schema, refer: Refer, keys: frozenset[str]) -> Schema:
        optional_keys = keys - set(node.get("required", ()))
        properties: Schema = {}
        for name, value in node["properties"].items():
            properties[name] = self._node(value, refer, frozenset())
            # A default would change what the user wrote, and a Go zero value on a required
            # field would hide that it is missing. Only a key that may be left out needs one.
            if name in optional_keys:
                properties[name]["default"] = value["default"]
        return properties


def excerpt(document: Mapping[str, Any], names: Iterable[str]) -> Schema:
    """Return a document of the named types and what they refer to, without any description."""
    types = document["components"]["schemas"]
    schemas = {name: _bare(types[name]) for name in sorted(closure(types, names))}
    return {"info": document["info"], "components": {"schemas": schemas}}


def closure(types: Mapping[str, Schema], names: Iterable[str]) -> frozenset[str]:
    """Return the names and every name reachable from them.

    Raises SchemaError when one of them is not among the types.
    """
    known: set[str] = set()
    ahead = list(names)
    while ahead:
        name = ahead.pop()
        if name not in known:
            known.add(name)
            ahead += _references(_type(types, name))
    return frozenset(known)


def _type(types: Mapping[str, Schema], name: str) -> Schema:
    if name not in types:
        raise SchemaError(f"the OpenAPI document has no {name}")
    return types[name]


def _target(node: Schema) -> str:
    """Name the type that a node stands for: `$ref`, or an `allOf` of nothing but one."""
    alternatives = node.get("allOf", [node])
    if len(alternatives) != 1:
        raise SchemaError(f"allOf of {len(alternatives)} schemas has no place here")
    return alternatives[0].get("$ref", "").rpartition("/")[2]


def _references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        for word, value in node.items():  # pyright: ignore[reportUnknownVariableType]
            if word == "$ref":
                yield str(value).rpartition("/")[2]  # pyright: ignore[reportUnknownArgumentType]
            else:
                yield from _references(value)
    elif isinstance(node, list):
        for value in node:  # pyright: ignore[reportUnknownVariableType]
            yield from _references(value)


def _bare(node: Any) -> Any:
    """Return a schema without descriptions; a property that is named so stays."""
    if isinstance(node, dict):
        return {
            word: _bare(value)
            for word, value in node.items()  # pyright: ignore[reportUnknownVariableType]
            if word != "description" or not isinstance(value, str)
        }
    if isinstance(node, list):
        return [_bare(value) for value in node]  # pyright: ignore[reportUnknownVariableType]
    return node
