"""Which fields of a manifest are tried, and the manifest with one of them changed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hedgerow.fields.sets import ABSENT, Values
from hedgerow_testing.audit.judging.edits import held_fields, spread, with_value, without

NAMED = 'k:{"name":"a"}'
OBJECT = {
    "metadata": {
        "labels": {"team": "x"},
        "managedFields": [
            {
                "manager": "helm",
                "operation": "Apply",
                "fieldsV1": {
                    "f:metadata": {"f:labels": {"f:team": {}}},
                    "f:spec": {
                        "f:list": {NAMED: {".": {}, "f:name": {}, "f:size": {}}},
                        "f:set": {'v:"x"': {}},
                        "f:gone": {},
                    },
                },
            }
        ],
    },
    "spec": {"list": [{"name": "a", "size": 1}, {"name": "b"}], "set": ["x"]},
}
SIZE = ("f:spec", "f:list", NAMED, "f:size")


def test_an_authors_fields_are_its_leaves_but_for_the_keys_of_items():
    fields = dict(held_fields(OBJECT, "helm"))

    assert fields == {("f:metadata", "f:labels", "f:team"): "x", SIZE: 1}
    assert held_fields(OBJECT, "argo") == ()


def test_a_value_is_put_into_an_item():
    changed = with_value(OBJECT["spec"], SIZE[1:], 2)

    assert changed == {"list": [{"name": "a", "size": 2}, {"name": "b"}], "set": ["x"]}
    assert OBJECT["spec"]["list"][0]["size"] == 1


def test_maps_and_items_are_made_where_there_are_none():
    assert with_value(None, ("f:a", "f:b"), 1) == {"a": {"b": 1}}
    assert with_value({"a": 1}, ("f:a", NAMED, "f:b"), 1) == {"a": [{"name": "a", "b": 1}]}


def test_a_value_is_taken_out():
    assert without(OBJECT["spec"], SIZE[1:])["list"] == [{"name": "a"}, {"name": "b"}]
    assert without({"a": 1, "b": 2}, ("f:a",)) == {"b": 2}
    assert without({"a": 1}, ("f:b", "f:c")) == {"a": 1}
    assert without({"a": {"b": 1}}, ("f:a", "f:b")) == {"a": {}}


def test_places_are_taken_from_the_spec_first_and_from_each_depth_in_turn():
    flat, deep = ("f:spec", "f:a"), ("f:spec", "f:b", "f:c")
    others = [("f:spec", "f:d"), ("f:metadata", "f:labels", "f:e"), ("f:data", "f:f")]

    chosen = spread([others[1], flat, others[0], deep, others[2]], 4)

    assert chosen == (others[2], flat, deep, others[1])
    assert spread([], 3) == ()


NAMES = st.text("abc", min_size=1, max_size=2)


@given(
    st.recursive(st.integers(), lambda below: st.dictionaries(NAMES, below, max_size=3)),
    st.lists(NAMES, min_size=1, max_size=3),
    st.integers(),
)
def test_what_is_put_is_there_and_what_is_taken_out_is_not(obj, names, value):
    place = tuple(f"f:{name}" for name in names)

    assert Values(with_value(obj, place, value)).at(place) == value
    assert Values(without(obj, place)).at(place) is ABSENT
