"""What a declaration gives way in, and what it does not."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from hedgerow.fields.ownership import covers, judge, respelled, with_held_items, without_yielded
from hedgerow.fields.paths import path_of
from plan.made import entry, live

Object = dict[str, Any]
OURS = "hedgerow-bluegreen"


def deployment(**container: Any) -> Object:
    pod = {"spec": {"containers": [{"name": "blue", **container}, {"name": "side"}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "demo"},
        "spec": {"replicas": 3, "template": pod},
    }


def held(want: Object, theirs: Object, by: str = "helm") -> Object:
    """Return the object as both wrote it, theirs the values."""
    return live({**want, **theirs}, entry(want), entry(theirs, by))


class TestYielded:
    def test_a_field_that_another_holds_is_left_out(self):
        want = deployment(image="a")
        theirs = {**deployment(), "spec": {"replicas": 3}}

        fitted = without_yielded(
            want, held(want, {**want, **theirs}), OURS, ("f:spec", "f:replicas").__eq__
        )

        assert fitted == {**want, "spec": {"template": want["spec"]["template"]}}

    def test_a_field_that_we_alone_hold_stays(self):
        want = deployment(image="a")

        assert without_yielded(want, live(want), OURS, lambda _: True) == want

    def test_a_field_that_another_holds_and_nobody_yields_stays(self):
        want = deployment(image="a")

        assert without_yielded(want, held(want, want), OURS, lambda _: False) == want

    def test_an_item_keeps_its_keys(self):
        want = deployment(image="a", command=["x"])
        path = '.spec.template.spec.containers[name="blue"].image'

        fitted = without_yielded(
            want,
            held(want, deployment(image="a")),
            OURS,
            lambda field_path: path_of(field_path) == path,
        )

        containers = fitted["spec"]["template"]["spec"]["containers"]
        assert containers == [{"name": "blue", "command": ["x"]}, {"name": "side"}]

    def test_an_empty_map_over_fields_of_ours_is_no_hold_of_them(self):
        want = deployment(resources={"limits": {"memory": "1Gi"}})
        theirs = deployment(resources={"limits": {}})

        fitted = without_yielded(
            want, held(want, theirs), OURS, lambda field_path: field_path[-1] == "f:limits"
        )

        assert fitted == want


class TestRespelled:
    @pytest.mark.parametrize(
        ("ours", "theirs"),
        [
            ({"resources": {"limits": {"cpu": "1000m"}}}, {"resources": {"limits": {"cpu": "1"}}}),
            (
                {"env": {"valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}},
                {
                    "env": {
                        "valueFrom": {
                            "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}
                        }
                    }
                },
            ),
        ],
        ids=["quantity", "default in an atomic field"],
    )
    def test_what_another_holds_in_other_words_is_said_in_his(self, ours: Object, theirs: Object):
        want, there = deployment(**ours), deployment(**theirs)
        # fieldRef is atomic to the server: a leaf of the tree.
        mine, other = _atomic(entry(want)), _atomic(entry(there, "helm"))
        seen = live(there, mine, other)

        verdict = judge(want, seen, OURS)
        fitted = respelled(want, verdict)

        assert verdict.contested
        assert judge(fitted, seen, OURS).settled

    def test_another_value_is_no_matter_of_words(self):
        want, there = deployment(image="a"), deployment(image="b")
        seen = live(there, entry(want), entry(there, "helm"))

        assert respelled(want, judge(want, seen, OURS)) == want

    def test_a_map_that_another_added_to_is_no_matter_of_words(self):
        want: Object = {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "demo"},
            "spec": {"selector": {"a": "1"}},
        }
        there = {**want, "spec": {"selector": {"a": "1", "b": "2"}}}
        seen = live(there, entry(want), entry(there, "kubectl-edit", "Update"))

        assert respelled(want, judge(want, seen, OURS)) == want

    def test_a_custom_resource_keeps_its_words(self):
        want = {**deployment(resources={"limits": {"cpu": "1000m"}}), "apiVersion": "x.example/v1"}
        there = {**deployment(resources={"limits": {"cpu": "1"}}), "apiVersion": "x.example/v1"}
        seen = live(there, entry(want), entry(there, "helm"))

        assert respelled(want, judge(want, seen, OURS)) == want


class TestHeldItems:
    BLUE, SIDE = {"name": "blue", "image": "a"}, {"name": "side", "image": "b"}

    def both(self, **pod: Any) -> Object:
        """Return the Deployment as it was declared before, with an item that is to go."""
        side = {**self.SIDE, "ports": [{"port": 80, "protocol": "TCP", "name": "http"}], **pod}
        want = deployment()
        want["spec"]["template"]["spec"]["containers"] = [dict(self.BLUE), side]
        return want

    @pytest.mark.parametrize(
        "now",
        [
            {"containers": [BLUE]},
            {"hostNetwork": True},
        ],
        ids=["the item is gone", "the whole list is gone"],
    )
    def test_one_that_another_holds_a_part_of_stays_declared_as_it_is(self, now: Object):
        before = self.both()
        theirs = deployment()
        theirs["spec"] = {"template": {"spec": {"containers": [{"name": "side", "image": "b"}]}}}
        other = entry(theirs, "kubectl-set", "Update")
        items = other["fieldsV1"]["f:spec"]["f:template"]["f:spec"]["f:containers"]
        del items['k:{"name": "side"}']["."], items['k:{"name": "side"}']["f:name"]
        seen = live(before, entry(before), other)
        want = {**before, "spec": {**before["spec"], "template": {"spec": now}}}

        fitted, shared = with_held_items(want, seen, OURS, judge(want, seen, OURS))

        (leaf,) = shared
        assert leaf.path.endswith('containers[name="side"]')
        assert [holder.manager for holder in leaf.holders] == ["kubectl-set"]
        containers = fitted["spec"]["template"]["spec"]["containers"]
        assert containers == [
            *now.get("containers", []),
            self.both()["spec"]["template"]["spec"]["containers"][1],
        ]

    @pytest.mark.parametrize("names", ["side web", "web side db", "side web db", "web db side"])
    def test_it_stays_where_it_is_among_those_that_are_declared(self, names: str):
        """At another place it would be a change of order, and pods would roll out."""
        before = deployment()
        images = [{"name": name, "image": "a"} for name in names.split()]
        before["spec"] = {"template": {"spec": {"containers": images}}}
        theirs = deployment()
        theirs["spec"] = {"template": {"spec": {"containers": [{"name": "side", "image": "a"}]}}}
        other = entry(theirs, "kubectl-set", "Update")
        items = other["fieldsV1"]["f:spec"]["f:template"]["f:spec"]["f:containers"]
        del items['k:{"name": "side"}']["."], items['k:{"name": "side"}']["f:name"]
        seen = live(before, entry(before), other)
        left = [image for image in images if image["name"] != "side"]
        want = {**before, "spec": {"template": {"spec": {"containers": left}}}}

        fitted, _ = with_held_items(want, seen, OURS, judge(want, seen, OURS))

        assert fitted == before

    def test_one_within_an_item_that_stays_is_kept_there(self):
        before = self.both()
        port = 'k:{"port": 80, "protocol": "TCP"}'
        theirs = deployment()
        side = {"name": "side", "ports": [{"port": 80, "protocol": "TCP", "name": "web"}]}
        theirs["spec"] = {"template": {"spec": {"containers": [side]}}}
        other = entry(theirs, "kubectl-edit", "Update")
        items = other["fieldsV1"]["f:spec"]["f:template"]["f:spec"]["f:containers"]
        mine = items['k:{"name": "side"}']
        del mine["."], mine["f:name"], mine["f:ports"][port]["."]
        seen = live(before, entry(before), other)
        want = copy.deepcopy(before)
        del want["spec"]["template"]["spec"]["containers"][1]["ports"]

        fitted, shared = with_held_items(want, seen, OURS, judge(want, seen, OURS))

        assert [leaf.path[-24:] for leaf in shared] == ['[port=80,protocol="TCP"]']
        assert fitted == before

    def test_one_that_another_holds_as_such_may_be_let_go(self):
        before = self.both()
        seen = live(before, entry(before), entry(before, "helm"))
        want = deployment(image="a")

        fitted, shared = with_held_items(want, seen, OURS, judge(want, seen, OURS))

        assert (fitted, shared) == (want, ())


def _atomic(made: Object) -> Object:
    def cut(tree: Object) -> Object:
        return {k: {} if k == "f:fieldRef" else cut(v) for k, v in tree.items()}

    return {**made, "fieldsV1": cut(made["fieldsV1"])}


@pytest.mark.parametrize(
    ("want", "there", "covered"),
    [
        ({"a": 1}, {"a": 1, "b": 2}, True),
        ({"a": 1}, {"a": 2}, False),
        ({"a": 1}, None, False),
        ([{"a": 1}], [{"a": 1, "b": 2}], True),
        ([1], [1, 2], False),
        ([1], {}, False),
        ("x", "x", True),
        (1, "1", False),
    ],
)
def test_a_value_is_covered_by_one_that_only_adds_to_it(want: Any, there: Any, covered: bool):
    assert covers(want, there) is covered
