"""Specimen: one value with every field that a type of an OpenAPI document has."""

from __future__ import annotations

from typing import Any

Object = dict[str, Any]
SCALARS = {"integer": 1, "number": 1, "boolean": True, "string": "x", "object": {}}


def specimen(document: Object, name: str) -> Any:
    """Return a value of the named type, with every field set, written independently of hedgerow."""
    types = document["components"]["schemas"]

    def value(node: Object) -> Any:
        for part in node.get("allOf", [node]):
            if "$ref" in part:
                return value(types[part["$ref"].rpartition("/")[2]])
        if "properties" in node:
            return {key: value(field) for key, field in node["properties"].items()}
        if "additionalProperties" in node:
            return {"key": value(node["additionalProperties"])}
        return [value(node["items"])] if "items" in node else scalar(node)

    def scalar(node: Object) -> Any:
        if "oneOf" in node:
            return "1"
        if "enum" in node:
            return next(choice for choice in node["enum"] if choice)
        if node.get("format") == "date-time":
            return "2026-01-02T03:04:05Z"
        return SCALARS[node["type"]]

    return value(types[name])


def paths(value: Any, path: str = "") -> list[str]:
    """Return the path of every leaf, so that a difference names what was lost."""
    if isinstance(value, dict) and value:
        return [leaf for key, inner in value.items() for leaf in paths(inner, f"{path}.{key}")]
    if isinstance(value, list) and value:
        return [leaf for i, inner in enumerate(value) for leaf in paths(inner, f"{path}[{i}]")]
    return [f"{path}={value!r}"]
