"""Bounds: what the schema of a definition may say of a value, with values that it takes or not."""

from __future__ import annotations

from typing import Any

Object = dict[str, Any]

_TEXTS = {"type": "array", "items": {"type": "string"}}
_MAP = {"type": "object", "additionalProperties": {"type": "string"}}
_PART = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}}
INT32 = {"type": "integer", "format": "int32"}
_INT_OR_TEXT = {"x-kubernetes-int-or-string": True}

BOUNDS: tuple[tuple[Object, list[Any], list[Any]], ...] = (
    ({"type": "string"}, ["", "a", "ä"], [1, 1.5, True, ["a"], {"a": "b"}]),
    ({"type": "integer"}, [0, -1, 2.0], [1.5, "1", True, [], {}]),
    ({"type": "number"}, [0, -1.5], ["1", True, {}]),
    ({"type": "boolean"}, [True, False], ["true", 1, 0]),
    (_TEXTS, [[], ["a"]], [[1], "a", {"a": "b"}]),
    (_MAP, [{}, {"a": "b"}], [{"a": 1}, "a", ["a"]]),
    (_PART, [{}, {"a": "b"}, {"b": 1}], [{"a": 1}, {"b": "c"}, [], "a"]),
    ({**_PART, "required": ["a"]}, [{"a": ""}], [{}, {"b": 1}, {"a": None}]),
    ({**_INT_OR_TEXT}, [1, "1", "10%"], [True, 1.5, [], {}]),
    ({**_INT_OR_TEXT, "pattern": "^[0-9]+%?$"}, [1, "10%"], ["a"]),
    ({"type": "string", "nullable": True}, [None, "a"], [1]),
    ({"type": "integer", "minimum": 0, "maximum": 3}, [0, 3], [-1, 4]),
    ({"type": "integer", "minimum": 0, "exclusiveMinimum": True}, [1], [0, -1]),
    ({"type": "integer", "maximum": 3, "exclusiveMaximum": True}, [2], [3]),
    ({"type": "integer", "multipleOf": 5}, [0, 5, -10], [1, 7]),
    (INT32, [2**31 - 1, -(2**31)], []),  # of larger ones, Kubernetes 1.35 takes some
    ({"type": "integer", "format": "int64"}, [2**31, -(2**62)], [1.5]),
    ({"type": "number", "minimum": 0.5}, [0.5, 1], [0.4]),
    ({"type": "string", "minLength": 1, "maxLength": 2}, ["a", "ää"], ["", "abc", "äää"]),
    ({"type": "string", "pattern": "^a+$"}, ["a", "aa"], ["b", "", "a\n", "a\nb"]),
    ({"type": "string", "pattern": "a"}, ["bab"], ["b"]),
    ({"type": "string", "enum": ["a", "b"]}, ["a"], ["c", ""]),
    ({"type": "integer", "enum": [1, 2]}, [1], [3]),
    ({"type": "string", "format": "byte"}, ["YQ=="], ["", "no base64", 5]),
    (
        {"type": "string", "format": "date-time"},
        ["2026-01-01T00:00:00Z", "2026-01-01T00:00:00.123+01:00"],
        ["2026-01-01", "yesterday", 5],
    ),
    ({"type": "string", "format": "date"}, ["2026-01-01"], ["2026-13-01", "1.1.2026"]),
    ({"type": "string", "format": "ipv4"}, ["10.0.0.1"], ["10.0.0.256", "::1"]),
    ({"type": "string", "format": "ipv6"}, ["::1"], ["10.0.0.1", "x"]),
    (
        {"type": "string", "format": "uuid"},
        ["123e4567-e89b-12d3-a456-426614174000"],
        ["123e4567", ""],
    ),
    ({"type": "string", "format": "of-ours"}, ["a"], [1]),
    ({**_TEXTS, "minItems": 1, "maxItems": 2}, [["a"], ["a", "b"]], [[], ["a", "b", "c"]]),
    ({**_TEXTS, "x-kubernetes-list-type": "set"}, [["a", "b"]], [["a", "a"], [1]]),
    (
        {
            "type": "array",
            "items": {**_PART, "required": ["a"]},
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["a"],
        },
        [[{"a": "x"}, {"a": "y"}]],
        [[{"a": "x"}, {"a": "x"}], [{"b": 1}], [{"a": 1}]],
    ),
    (
        {"type": "array", "items": {**_PART, "required": ["a"]}},
        [[{"a": "x"}, {"a": "x"}]],
        [[{"a": "x"}, {"b": 1}], [{"a": "x", "b": "y"}]],
    ),
    (
        {**_MAP, "minProperties": 1, "maxProperties": 2},
        [{"a": ""}],
        [{}, {"a": "", "b": "", "c": ""}],
    ),
    ({**_PART, "x-kubernetes-map-type": "atomic"}, [{"a": "b"}], [{"b": "c"}]),
    ({"type": "string", "allOf": [{"minLength": 2}, {"maxLength": 3}]}, ["ab"], ["a", "abcd"]),
    ({"type": "string", "anyOf": [{"enum": ["a"]}, {"minLength": 2}]}, ["a", "bb"], ["b"]),
    ({"type": "string", "oneOf": [{"enum": ["a"]}, {"maxLength": 2}]}, ["bb"], ["a", "ccc"]),
    ({"type": "string", "not": {"enum": ["a"]}}, ["b"], ["a"]),
)
"""A schema, values that it takes, and values that it refuses."""


def of_bounds() -> Object:
    """Return a definition with a field of each schema, `f0` and so on."""
    fields = {f"f{number}": schema for number, (schema, _, _) in enumerate(BOUNDS)}
    spec = {"type": "object", "properties": fields}
    root = {"type": "object", "properties": {"spec": spec}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": root}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "bounds.bounds.example.com"},
        "spec": {
            "group": "bounds.example.com",
            "names": {"kind": "Bound", "plural": "bounds"},
            "scope": "Namespaced",
            "versions": [version],
        },
    }


def values() -> list[tuple[str, Any, bool]]:
    """Return the name of a field, a value for it, and whether it is taken."""
    return [
        (f"f{number}", value, is_good)
        for number, (_, good, bad) in enumerate(BOUNDS)
        for given, is_good in ((good, True), (bad, False))
        for value in given
    ]
