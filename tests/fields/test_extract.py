from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from hedgerow.fields.applyconfiguration import extract
from hedgerow.fields.ownership import judge
from model.programs import APPLIERS, laid, opened, programs
from model.subjects import SUBJECTS

Object = dict[str, Any]

OURS = "hedgerow-test"
LEAF: Object = {}


def live(fields: Object, *, manager: str = OURS, operation: str = "Apply", **body: Any) -> Object:
    """An object of which one manager holds these fields."""
    meta = body.pop("metadata", {})
    entry = {"manager": manager, "operation": operation, "apiVersion": "v1", "fieldsV1": fields}
    return {
        "apiVersion": "v1",
        "kind": "Thing",
        "metadata": {"name": "x", "namespace": "ns", "uid": "u", "managedFields": [entry]} | meta,
        **body,
    }


def taken(obj: Object) -> Object:
    """What is extracted below the identity."""
    found = extract(obj, OURS)
    assert found is not None
    assert found.pop("apiVersion") == "v1"
    assert found.pop("kind") == "Thing"
    meta = found.pop("metadata")
    assert {key: meta.pop(key) for key in ("name", "namespace", "uid")} == {
        "name": "x",
        "namespace": "ns",
        "uid": "u",
    }
    return {**found, **({"metadata": meta} if meta else {})}


class TestIdentity:
    def test_without_an_entry_there_is_nothing_to_extract(self):
        assert extract(live({}, manager="other"), OURS) is None
        assert extract(live({}, operation="Update"), OURS) is None
        assert extract({"apiVersion": "v1", "kind": "Thing"}, OURS) is None

    def test_an_empty_entry_is_the_identity_alone(self):
        assert taken(live({}, spec={"a": 1})) == {}

    def test_what_has_no_namespace_gets_none(self):
        found = live({})
        del found["metadata"]["namespace"]

        assert extract(found, OURS)["metadata"] == {"name": "x", "uid": "u"}

    def test_the_version_stays_behind(self):
        assert taken(live({}, metadata={"resourceVersion": "7", "generation": 3})) == {}

    def test_the_entry_of_a_subresource_is_another(self):
        obj = live({"f:spec": {"f:a": LEAF}}, spec={"a": 1}, status={"b": 2})
        status = {"manager": OURS, "operation": "Apply", "subresource": "status"}
        obj["metadata"]["managedFields"].append({**status, "fieldsV1": {"f:status": {"f:b": LEAF}}})

        assert extract(obj, OURS)["spec"] == {"a": 1}
        assert "status" not in extract(obj, OURS)
        assert extract(obj, OURS, "status")["status"] == {"b": 2}


KEYED: Object = {"f:ports": {'k:{"port":80,"protocol":"TCP"}': {".": LEAF, "f:name": LEAF}}}


PORTS = [{"port": 9, "protocol": "UDP"}, {"port": 80, "protocol": "TCP", "name": "http"}]
WHOLE = {"matchLabels": {"a": "b"}}
OWNER = {"uid": "1", "name": "demo", "kind": "CronJob", "controller": True}
TAKEN: dict[str, tuple[Object, Object, Object]] = {
    "a map is taken field by field": (
        {"f:spec": {"f:a": LEAF}}, {"spec": {"a": 1, "b": 2}}, {"spec": {"a": 1}},
    ),
    "a field that is gone is no more": (
        {"f:spec": {"f:a": LEAF, "f:z": LEAF}}, {"spec": {"a": 1}}, {"spec": {"a": 1}},
    ),
    "nor is a map": ({"f:spec": {"f:a": LEAF}}, {}, {}),
    "an atomic leaf is taken whole": (
        {"f:selector": LEAF, "f:args": LEAF},
        {"selector": WHOLE, "args": ["a"]}, {"selector": WHOLE, "args": ["a"]},
    ),
    "a list is taken item by item in the live order": (
        {"f:ports": {**KEYED["f:ports"], 'k:{"port":9,"protocol":"UDP"}': {".": LEAF}}},
        {"ports": [{**PORTS[0], "name": "theirs"}, {**PORTS[1], "targetPort": 8080}]},
        {"ports": PORTS},
    ),
    "items of others stay behind": (KEYED, {"ports": PORTS}, {"ports": PORTS[1:]}),
    "of a set only our values are taken": (
        {"f:metadata": {"f:finalizers": {'v:"ours/a"': LEAF, 'v:"ours/gone"': LEAF}}},
        {"metadata": {"finalizers": ["theirs/b", "ours/a"]}},
        {"metadata": {"finalizers": ["ours/a"]}},
    ),
    "an owner reference is known by its uid and taken whole": (
        {"f:metadata": {"f:ownerReferences": {'k:{"uid":"1"}': LEAF}}},
        {"metadata": {"ownerReferences": [{"uid": "2", "name": "other"}, OWNER]}},
        {"metadata": {"ownerReferences": [OWNER]}},
    ),
    "a map that is ours as such was declared empty": (
        {"f:labels": {".": LEAF}}, {"labels": {"theirs": "x"}}, {"labels": {}},
    ),
    "so was a list": ({"f:ports": {".": LEAF}}, {"ports": [{"port": 1}]}, {"ports": []}),
    **{
        f"what is empty is a value: {value!r}": ({"f:a": LEAF}, {"a": value}, {"a": value})
        for value in (None, 0, False, "", [], {})
    },
}  # fmt: skip
"""The fields that we hold, what is there, and what is taken of it."""


class TestProjection:
    @pytest.mark.parametrize(("fields", "there", "found"), TAKEN.values(), ids=TAKEN)
    def test_what_is_taken(self, fields: Object, there: Object, found: Object):
        assert taken(live(fields, **there)) == found

    @pytest.mark.parametrize("value", [None, 7, "text", ["a"]])
    def test_another_type_than_the_fields_tell_of_does_no_harm(self, value):
        extract(live({"f:a": {"f:b": LEAF}}, a=value), OURS)
        extract(live({"f:a": {"k:{": LEAF, "x": LEAF}}, a=value), OURS)

    def test_what_is_live_is_left_as_it_is(self):
        obj = live(KEYED, ports=[{"port": 80, "protocol": "TCP", "name": "http"}])
        before = copy.deepcopy(obj)
        extract(obj, OURS)

        assert obj == before


@pytest.mark.parametrize("kind", SUBJECTS)
class TestApplyingAnew:
    """What was declared can be declared again, and changes nothing."""

    @settings(max_examples=settings().max_examples // 2)
    @given(data=st.data())
    def test_an_extract_settles_but_for_what_the_server_left_out_or_filled_in(self, kind, data):
        world, target = opened(kind)
        world.apply(laid(target, SUBJECTS[kind].first), APPLIERS[0])
        world.apply(laid(target, data.draw(SUBJECTS[kind].bodies)), APPLIERS[0])
        there = world.server.get(target)
        body = extract(there, APPLIERS[0])
        assume(body is not None)

        leaves = judge(body, there, APPLIERS[0]).leaves
        # What we declared as empty is not there to be declared anew; a list key that we left to
        # the server is.
        assert all(leaf.equal or (leaf.why, leaf.live) == ("surplus", None) for leaf in leaves)
        event("settled" if not leaves else "not quite")
        answer = world.server.apply(body, APPLIERS[0])[0]
        assert (answer == there) is (not leaves)
        assert bare(answer) == bare(there)
        again = extract(answer, APPLIERS[0])
        if again is not None:  # else nothing but what was left out was declared
            assert judge(again, answer, APPLIERS[0]).settled
            assert world.server.apply(again, APPLIERS[0])[0] == answer

    @settings(max_examples=settings().max_examples // 2)
    @given(data=st.data())
    def test_after_any_history_it_meets_no_conflict_and_changes_no_value(self, kind, data):
        world, target = opened(kind)
        for request in data.draw(programs(SUBJECTS[kind])):
            request.run(world, target)
        there = world.server.get(target)
        assume(there is not None)
        body = extract(there, APPLIERS[0])
        assume(body is not None)

        answer = world.server.apply(body, APPLIERS[0])[0]
        event("unchanged" if answer == there else "what is empty changed hands")
        assert bare(answer) == bare(there)


def bare(obj: Object) -> Object:
    """Return an object without who holds what of it."""
    meta = obj["metadata"].items()
    return {
        **obj,
        "metadata": {k: v for k, v in meta if k not in ("managedFields", "resourceVersion")},
    }
