"""Other valid values for a field, by its schema and in its own spelling."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.fields.canonical import identical
from hedgerow.fields.sets import ABSENT
from hedgerow_testing.audit.judging.values import MOST, differing, is_required, others, schema_at

SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["size"],
    "properties": {
        "size": {"type": "integer", "minimum": 1, "maximum": 3},
        "labels": {"additionalProperties": {"type": "string", "maxLength": 2}},
        "ports": {"type": "array", "items": {"properties": {"port": {"maximum": 80}}}},
        "any": {"additionalProperties": True},
    },
}
OFFERED = {
    "a bool": (True, {}, (False,)),
    "an enum": ("Fast", {"enum": ["Fast", "Slow", "Slow"]}, ("Slow",)),
    "a number": (4, {}, (5, 3, 8)),
    "a number at its most": (3, {"maximum": 3, "minimum": 1}, (2, 1)),
    "below an exclusive bound": (2, {"maximum": 3, "exclusiveMaximum": True}, (1,)),
    "above an exclusive bound": (2, {"minimum": 1, "exclusiveMinimum": True}, (3, 4)),
    "in steps": (10, {"multipleOf": 5}, (15, 5, 20)),
    "a number with one value": (1, {"minimum": 1, "maximum": 1}, ()),
    "a duration": ("60s", {}, ("120s", "61s", "59s", "60s-b")),
    "a compound duration": ("1m30s", {}, ("2m30s", "0m30s", "1m60s", "1m31s")),
    "a quantity": ("1000m", {}, ("2000m", "1001m", "999m", "1000m-b")),
    "an image": ("app:v1.07", {}, ("app:v2.07", "app:v0.07", "app:v1.14", "app:v1.08")),
    "a word": ("blue", {}, ("blue-b", "blub")),
    "a word that ends in b": ("b", {}, ("b-b", "c")),
    "a word as long as it may be": ("blue", {"maxLength": 4}, ("blub",)),
    "a word with room for one": ("blue", {"maxLength": 5}, ("blueb", "blub")),
    "an empty text": ("", {}, ("b",)),
    "null": (None, {}, ()),
    "a map": ({"size": 3, "x": "y"}, SCHEMA, ({"size": 2, "x": "y"}, {"size": 1, "x": "y"})),
    "a list": ([80], {"items": {"maximum": 80, "minimum": 79}}, ([79],)),
    "an empty list": ([], {}, ()),
    "an empty map": ({}, {}, ()),
}
PLACES = {
    "a property": (("f:size",), {"type": "integer", "minimum": 1, "maximum": 3}),
    "a key of a map": (("f:labels", "f:a"), {"type": "string", "maxLength": 2}),
    "an item": (("f:ports", 'k:{"port":1}', "f:port"), {"maximum": 80}),
    "what anything may be": (("f:any", "f:a", "f:b"), {}),
    "what is not known": (("f:metadata", "f:labels"), {}),
}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**6), 10**6) | st.text("aZ0:9-µ", max_size=8),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text("ab", max_size=2), below),
    max_leaves=6,
)


@pytest.mark.parametrize(("value", "schema", "offered"), OFFERED.values(), ids=list(OFFERED))
def test_values_are_offered_in_the_spelling_of_the_present_one(value, schema, offered):
    assert others(value, schema)[: len(offered)] == offered
    assert bool(offered) == bool(others(value, schema))


@pytest.mark.parametrize(("place", "schema"), PLACES.values(), ids=list(PLACES))
def test_the_schema_of_a_place_is_found(place, schema):
    assert schema_at(SCHEMA, place) == schema


def test_a_required_field_is_told():
    assert is_required(SCHEMA, ("f:size",))
    assert not is_required(SCHEMA, ("f:labels",))
    assert not is_required(SCHEMA, ("f:metadata", "f:labels"))


@given(JSON)
def test_what_is_offered_differs_and_has_the_form_of_the_value(value):
    found = others(value)

    assert len(found) <= MOST
    for one in found:
        assert not identical(one, value)
        assert type(one) is type(value)
        assert not isinstance(value, dict) or one.keys() == value.keys()
        assert not isinstance(value, list) or len(one) == len(value)


@given(
    st.integers(-50, 50),
    st.integers(-50, 50),
    st.integers(0, 60),
    st.sampled_from([1, 2, 5]),
    st.booleans(),
)
def test_numbers_keep_to_the_bounds(value, low, width, step, is_open):
    schema = {"minimum": low, "maximum": low + width, "multipleOf": step}
    schema |= {"exclusiveMinimum": is_open, "exclusiveMaximum": is_open}

    for one in others(value, schema):
        assert one % step == 0
        assert low < one < low + width if is_open else low <= one <= low + width


@given(st.text(min_size=1, max_size=20), st.integers(1, 20), st.integers(0, 3))
def test_texts_keep_to_the_lengths(value, longest, shortest):
    for one in others(value, {"maxLength": longest, "minLength": shortest}):
        assert shortest <= len(one) <= longest


LONG = "a" * 300
DIFFERING = {
    "scalars": (1, 2, ((), 1, 2)),
    "an item": ([{"n": 1}, {"n": 2}], [{"n": 1}, {"n": 3}], (("i:1", "f:n"), 2, 3)),
    "one item more": ([1], [1, 2], (("i:1",), ABSENT, 2)),
    "a field that is gone": ({"a": {"b": 1}}, {"a": {}}, (("f:a", "f:b"), 1, ABSENT)),
    "another type": ({"a": [1]}, {"a": "1"}, (("f:a",), [1], "1")),
    "the first of several": ({"a": 1, "b": 1}, {"a": 2, "b": 2}, (("f:a",), 1, 2)),
    "long texts": (f"{LONG}x", f"{LONG}y", ((), f"…{'a' * 60}x", f"…{'a' * 60}y")),
    "short texts": ("ab", "ac", ((), "ab", "ac")),
    "the same": ([1], [1], ((), [1], [1])),
}


@pytest.mark.parametrize(("one", "other", "told"), DIFFERING.values(), ids=list(DIFFERING))
def test_two_values_are_told_by_what_differs(one, other, told):
    assert differing(one, other) == told
