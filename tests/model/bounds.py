"""Bounds: what the schema of a definition may say of a value, with values that it takes or not."""

from __future__ import annotations

from typing import Any

from support.objects.definitions import definition, free, items, number, of, text

Object = dict[str, Any]

_TEXTS, _MAP = items(text()), free()
_PART = of(a=text(), b=number())
INT32 = number(format="int32")
_INT_OR_TEXT = {"x-kubernetes-int-or-string": True}

BOUNDS: tuple[tuple[Object, list[Any], list[Any]], ...] = (
    (text(), ["", "a", "ä"], [1, 1.5, True, ["a"], {"a": "b"}]),
    (number(), [0, -1, 2.0], [1.5, "1", True, [], {}]),
    (number("number"), [0, -1.5], ["1", True, {}]),
    (number("boolean"), [True, False], ["true", 1, 0]),
    (_TEXTS, [[], ["a"]], [[1], "a", {"a": "b"}]),
    (_MAP, [{}, {"a": "b"}], [{"a": 1}, "a", ["a"]]),
    (_PART, [{}, {"a": "b"}, {"b": 1}], [{"a": 1}, {"b": "c"}, [], "a"]),
    ({**_PART, "required": ["a"]}, [{"a": ""}], [{}, {"b": 1}, {"a": None}]),
    ({**_INT_OR_TEXT}, [1, "1", "10%"], [True, 1.5, [], {}]),
    ({**_INT_OR_TEXT, "pattern": "^[0-9]+%?$"}, [1, "10%"], ["a"]),
    (text(nullable=True), [None, "a"], [1]),
    (number(minimum=0, maximum=3), [0, 3], [-1, 4]),
    (number(minimum=0, exclusiveMinimum=True), [1], [0, -1]),
    (number(maximum=3, exclusiveMaximum=True), [2], [3]),
    (number(multipleOf=5), [0, 5, -10], [1, 7]),
    (INT32, [2**31 - 1, -(2**31)], []),  # of larger ones, Kubernetes 1.35 takes some
    (number(format="int64"), [2**31, -(2**62)], [1.5]),
    (number("number", minimum=0.5), [0.5, 1], [0.4]),
    (text(minLength=1, maxLength=2), ["a", "ää"], ["", "abc", "äää"]),
    (text(pattern="^a+$"), ["a", "aa"], ["b", "", "a\n", "a\nb"]),
    (text(pattern="a"), ["bab"], ["b"]),
    (text(enum=["a", "b"]), ["a"], ["c", ""]),
    (number(enum=[1, 2]), [1], [3]),
    (text(format="byte"), ["YQ=="], ["", "no base64", 5]),
    (
        text(format="date-time"),
        ["2026-01-01T00:00:00Z", "2026-01-01T00:00:00.123+01:00"],
        ["2026-01-01", "yesterday", 5],
    ),
    (text(format="date"), ["2026-01-01"], ["2026-13-01", "1.1.2026"]),
    (text(format="ipv4"), ["10.0.0.1"], ["10.0.0.256", "::1"]),
    (text(format="ipv6"), ["::1"], ["10.0.0.1", "x"]),
    (
        text(format="uuid"),
        ["123e4567-e89b-12d3-a456-426614174000"],
        ["123e4567", ""],
    ),
    (text(format="of-ours"), ["a"], [1]),
    ({**_TEXTS, "minItems": 1, "maxItems": 2}, [["a"], ["a", "b"]], [[], ["a", "b", "c"]]),
    (items(text(), kind="set"), [["a", "b"]], [["a", "a"], [1]]),
    (
        items({**_PART, "required": ["a"]}, "a"),
        [[{"a": "x"}, {"a": "y"}]],
        [[{"a": "x"}, {"a": "x"}], [{"b": 1}], [{"a": 1}]],
    ),
    (
        items({**_PART, "required": ["a"]}),
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
    return definition("bounds.example.com", "Bound", of(spec=of(**fields)))


def values() -> list[tuple[str, Any, bool]]:
    """Return the name of a field, a value for it, and whether it is taken."""
    return [
        (f"f{number}", value, is_good)
        for number, (_, good, bad) in enumerate(BOUNDS)
        for given, is_good in ((good, True), (bad, False))
        for value in given
    ]
