from __future__ import annotations

from typing import Any

import pytest

from hedgerow.fields.managed_fields import held
from hedgerow.fields.paths import path_of
from hedgerow.objects import CONTROLLER_LABEL
from hedgerow.plan.field_patterns import steps_of
from hedgerow.plan.yield_and_claim import LONGEST, YIELD, field_policy_of
from hedgerow_tools.fields.giving_up import giving_up, is_hollow, release
from hedgerow_tools.fields.relabelling import HolderName, Takeover
from hedgerow_tools.fields.transfers import MoveRefused
from support.objects.judged import OTHER, OURS, item, live, want

Object = dict[str, Any]
LEAF: Object = {}
C = 'k:{"name":"c"}'
MARKS = {
    "f:finalizers": {'v:"x"': LEAF},
    "f:labels": {f"f:{CONTROLLER_LABEL}": LEAF, "f:a": LEAF},
    "f:ownerReferences": {'k:{"uid":"o"}': LEAF},
}
SPEC = {"f:replicas": LEAF, "f:paused": LEAF, "f:containers": {C: item("name", "image")}}
BODY = {
    "spec": {"replicas": 5, "paused": True, "containers": [{"name": "c", "image": "i"}]},
}
ITEM = '.spec.containers[name="c"]'


def child(*others: tuple[str, Object]) -> Object:
    obj = live(want(**BODY), (OURS, {"f:metadata": MARKS, "f:spec": SPEC}), *others)
    obj["metadata"]["labels"] = {CONTROLLER_LABEL: "test", "a": "b"}
    return obj


def owner(text: str | None = None, *contested: Object) -> Object:
    notes = {"annotations": {YIELD: text}} if text is not None else {}
    status = {"status": {"contested": list(contested)}} if contested else {}
    return {"kind": "BlueGreen", "metadata": {"name": "demo", **notes}, **status}


def paths(*fields: str, resource: Object | None = None, obj: Object | None = None) -> list[str]:
    found = release(obj or child(), resource or owner(), OURS, fields)
    return [path_of(field_path) for field_path in found.leaves]


class TestLeaves:
    def test_all_are_released_but_marks(self):
        assert paths() == [
            ".metadata.labels.a", ".spec.replicas", ".spec.paused", f"{ITEM}.name", f"{ITEM}.image"
        ]  # fmt: skip

    def test_those_asked_for_are(self):
        assert paths("spec.replicas") == [".spec.replicas"]
        assert paths("spec.*", ".metadata.labels.a") == [
            ".metadata.labels.a", ".spec.replicas", ".spec.paused"
        ]  # fmt: skip
        assert paths("spec.containers[*].**") == [f"{ITEM}.name", f"{ITEM}.image"]

    @pytest.mark.parametrize(
        ("fields", "told"),
        [
            (["spec.x"], "hedgerow-test holds nothing of Deployment/x that is called spec.x"),
            (["spec"], "--field 'spec.**'"),
            (["spec.containers"], "--field 'spec.containers.**'"),
            (["metadata.ownerReferences.**"], "holds nothing"),
        ],
    )
    def test_what_names_none_is_told(self, fields, told):
        found = release(child(), owner(), OURS, fields)

        assert (found.leaves, told in found.why) == ((), True)

    def test_what_is_no_path_is_refused(self):
        with pytest.raises(MoveRefused, match="no path"):
            paths("a..b")

    def test_what_others_hold_the_content_of_is_not_ours_to_release(self):
        tree = {"f:spec": {"f:selector": LEAF, "f:paused": LEAF}}
        obj = live(want(**BODY), (OURS, tree), ("x", {"f:spec": {"f:selector": {"f:a": LEAF}}}))

        assert paths(obj=obj) == [".spec.paused"]

    def test_where_we_hold_nothing_there_is_nothing_to_release(self):
        for fields in ([], ["spec.replicas"]):
            obj = live(want(**BODY), ("other", {"f:spec": SPEC}))

            assert release(obj, owner(), OURS, fields).why.endswith("that could be released")


@pytest.mark.parametrize("name", ["system:node", "Admin"])
def test_fields_of_others_are_given_up_whatever_the_objects_name(name):
    obj = live(want("ClusterRole", "rbac.authorization.k8s.io/v1"), ("a", {"f:rules": LEAF}))
    obj["metadata"]["name"] = name
    asked = Takeover(frozenset({HolderName("a")}), "")

    assert giving_up(obj, asked, ["rules"]).leaves == (("f:rules",),)


class TestFates:
    def test_what_others_hold_they_keep_and_the_rest_is_sole(self):
        obj = child(("scaler", {"f:spec": {"f:replicas": LEAF}}))

        found = release(obj, owner(), OURS, ["spec.*"])

        assert found.sole == (("f:spec", "f:paused"),)

    def test_our_own_name_under_update_is_another_s(self):
        obj = child((f"{OURS}/Update", {"f:spec": {"f:replicas": LEAF}}))

        assert release(obj, owner(), OURS, ["spec.replicas"]).sole == ()


class TestYielding:
    def field_policy(self, resource: Object, *fields: str) -> str:
        return release(child(), resource, OURS, fields).field_policy

    def test_fields_are_yielded_as_asked_for(self):
        assert self.field_policy(owner(), ".spec.replicas", "spec.paused") == (
            "Deployment/x: spec.replicas, spec.paused"
        )

    def test_all_are_yielded_by_their_tops_and_the_terms_cover_just_them(self):
        text = self.field_policy(owner())

        assert text == "Deployment/x: metadata.labels.a, spec.**"
        field_policy = field_policy_of({YIELD: text})
        assert all(field_policy.yielded("Deployment", "x", steps_of(path)) for path in paths())
        ours = ("f:metadata", "f:labels", f"f:{CONTROLLER_LABEL}")
        assert not field_policy.yielded("Deployment", "x", ours)

    def test_tops_of_every_shape_are_covered(self):
        tree = {"f:type": LEAF, "f:subsets": {'v:"x"': LEAF}}
        obj = live(want(type="A", subsets=["x"]), (OURS, tree))

        text = release(obj, owner(), OURS, []).field_policy

        assert text == "Deployment/x: type, subsets.**"
        assert field_policy_of({YIELD: text}).yielded("Deployment", "x", ("f:subsets", 'v:"x"'))

    def test_what_is_yielded_besides_stays_so(self):
        assert self.field_policy(owner("Service/*: a;\n"), "spec.paused") == (
            "Service/*: a; Deployment/x: spec.paused"
        )

    def test_what_is_yielded_already_is_not_said_twice(self):
        assert self.field_policy(owner("*/*: spec.*"), "spec.paused") == ""

    @pytest.mark.parametrize("text", ["nonsense", "", "A/x: " + ",".join(["a"] * 64)])
    def test_what_cannot_be_added_to_is_told(self, text):
        if text == "":
            assert self.field_policy(owner(text), "spec.paused") == "Deployment/x: spec.paused"
            return
        with pytest.raises(MoveRefused, match="the annotation of BlueGreen"):
            self.field_policy(owner(text), "spec.paused")

    def test_what_would_be_too_long_is_told(self):
        with pytest.raises(MoveRefused, match="longer than"):
            self.field_policy(owner("A/" + "a" * (LONGEST - 10) + ": a"), "spec.paused")

    CONTESTED = {"object": "Deployment/x", "path": ".spec.minReadySeconds"}

    def test_what_is_contested_and_not_held_is_yielded_too(self):
        found = release(child(), owner(None, self.CONTESTED), OURS, ["spec.minReadySeconds"])

        assert (found.leaves, found.field_policy) == ((), "Deployment/x: spec.minReadySeconds")

    def test_what_is_contested_of_another_child_is_not(self):
        other = {"object": "Deployment/y", "path": ".spec.minReadySeconds"}
        bare = {"object": "Deployment/x"}

        assert release(child(), owner(None, other, bare), OURS, ["spec.minReadySeconds"]).why


def test_one_that_others_hold_the_content_of_is_hollow():
    obj = live(want(), (OURS, {"f:a": LEAF, "f:b": LEAF}), (OTHER, {"f:a": {".": LEAF}}))
    more = live(want(), (OURS, {"f:a": LEAF}), (OTHER, {"f:a": {".": LEAF, "f:x": LEAF}}))

    assert not is_hollow(held(obj), ("f:a",))
    assert not is_hollow(held(obj), ("f:b",))
    assert not is_hollow(held(obj), ("f:c",))
    assert is_hollow(held(more), ("f:a",))
