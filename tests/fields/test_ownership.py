"""Hand-made managed fields; `tests/cluster` holds the same verdicts against the real server."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from hedgerow.fields.ownership import Leaf, judge, residual, with_live
from support.objects.judged import NAME, OTHER, OURS, Object, live, only, told, want

SPEC = {"f:spec": {"f:replicas": {}}}


class TestSettled:
    def test_what_we_hold_and_what_is_equal_needs_no_request(self) -> None:
        declared = want(spec={"replicas": 2})
        verdict = judge(declared, live(declared, (OURS, SPEC)), OURS)

        assert verdict.settled
        assert verdict.owned
        assert () == verdict.contested
        assert "" == residual(verdict)

    def test_what_others_hold_beside_us_does_not_matter(self) -> None:
        declared = want(spec={"replicas": 2})
        beside = {"f:metadata": {"f:labels": {"f:a": {}}}, "f:spec": {"f:paused": {}}}
        found = live(declared, (OURS, SPEC), (f"{OTHER}/Update", beside))
        found["spec"] = {"replicas": 2, "paused": True}

        assert judge(declared, found, OURS).settled

    def test_a_co_owner_of_the_same_value_does_not_matter(self) -> None:
        declared = want(spec={"replicas": 2})

        assert judge(declared, live(declared, (OURS, SPEC), (OTHER, SPEC)), OURS).settled

    def test_identity_is_never_walked(self) -> None:
        declared = want(spec={"replicas": 2})
        sent = {**declared, "metadata": {**NAME, "uid": "u", "resourceVersion": "1"}}

        assert judge(sent, live(declared, (OURS, SPEC)), OURS).settled

    def test_another_version_in_the_entry_costs_an_apply(self) -> None:
        declared = want(spec={"replicas": 2})
        found = live(declared, (OURS, SPEC))
        found["metadata"]["managedFields"][0]["apiVersion"] = "apps/v1beta1"
        verdict = judge(declared, found, OURS)

        assert not verdict.settled
        assert not verdict.version_ok
        assert () == verdict.leaves
        assert "" != residual(verdict)

    def test_so_does_an_object_read_in_another_version(self) -> None:
        declared = want(spec={"replicas": 2})
        found = {**live(declared, (OURS, SPEC)), "apiVersion": "apps/v1beta1"}

        assert not judge(declared, found, OURS).settled

    def test_a_status_is_judged_by_its_own_entry(self) -> None:
        declared = want(status={"replicas": 1})
        tree = {"f:status": {"f:replicas": {}}}

        assert judge(
            declared, live(declared, (f"{OURS}/Apply/status", tree)), OURS, "status"
        ).settled
        assert not judge(declared, live(declared, (OURS, tree)), OURS, "status").settled

    def test_nothing_declared_and_nothing_held_is_settled(self) -> None:
        assert judge(want(), live(want(spec={}), (OTHER, SPEC)), OURS).settled

    def test_but_not_where_nothing_is_tracked_or_nothing_is(self) -> None:
        assert not judge(want(), live(want(spec={})), OURS).settled
        assert not judge(want(), {}, OURS).settled


class TestLost:
    def test_another_took_the_field(self) -> None:
        declared = want(spec={"replicas": 2})
        found = live(declared, ("kubectl/Update/scale", SPEC), spec={"replicas": 5})
        leaf = only(judge(declared, found, OURS))

        assert ("lost", ".spec.replicas", 2, 5) == (leaf.why, leaf.path, leaf.want, leaf.live)
        assert ("f:spec", "f:replicas") == leaf.field_path
        assert [("kubectl", "Update", "scale")] == [
            (holder.manager, holder.operation, holder.subresource) for holder in leaf.holders
        ]
        assert (leaf,) == judge(declared, found, OURS).contested

    def test_our_own_name_under_update_is_another(self) -> None:
        declared = want(spec={"replicas": 2})
        found = live(declared, (f"{OURS}/Update", SPEC), spec={"replicas": 5})

        assert 1 == len(judge(declared, found, OURS).contested)

    def test_a_lost_field_of_equal_value_is_a_plain_write(self) -> None:
        declared = want(spec={"replicas": 2})
        verdict = judge(declared, live(declared, (OTHER, SPEC)), OURS)

        assert only(verdict).equal
        assert () == verdict.contested
        assert not verdict.settled

    def test_a_removed_field_has_no_holder(self) -> None:
        declared = want(spec={"replicas": 2})
        found = live(declared, (OTHER, {"f:spec": {"f:paused": {}}}), spec={"paused": True})

        assert () == only(judge(declared, found, OURS)).holders

    def test_a_bare_map_of_ours_is_no_atomic_one_when_others_hold_its_children(self) -> None:
        declared = want(spec={"notes": {"a": "1", "b": "1"}})
        ours = {"f:spec": {"f:notes": {}}}
        theirs = {"f:spec": {"f:notes": {"f:a": {}}}}
        found = live(declared, (OURS, ours), (OTHER, theirs), spec={"notes": {"a": "2"}})
        verdict = judge(declared, found, OURS)

        assert [("lost", ".spec.notes.a"), ("lost", ".spec.notes.b")] == told(verdict)
        assert [".spec.notes.a"] == [leaf.path for leaf in verdict.contested]

    @pytest.mark.parametrize(
        ("kind", "version", "there", "contested"),
        [
            ("Deployment", "apps/v1", {}, []),
            ("Deployment", "apps/v1", None, [".spec.resources"]),
            ("Hedge", "example.com/v1", {}, [".spec.resources"]),
        ],
    )
    def test_anothers_empty_map_is_known_to_be_granular_by_its_name(
        self, kind: str, version: str, there: Object | None, contested: list[str]
    ) -> None:
        declared = want(kind, version, spec={"resources": {"limits": {"cpu": "1"}}})
        theirs = {"f:spec": {"f:resources": {}}}
        found = live(declared, (OTHER, theirs), spec={"resources": there})

        assert contested == [leaf.path for leaf in judge(declared, found, OURS).contested]

    def test_a_whole_map_that_is_gone_is_one_leaf(self) -> None:
        declared = want(spec={"strategy": {"rollingUpdate": {"maxSurge": 1}}})
        found = live(declared, (OTHER, {"f:spec": {"f:paused": {}}}), spec={"paused": True})

        assert [("lost", ".spec.strategy")] == told(judge(declared, found, OURS))

    def test_defaults_that_nobody_holds_are_compared_inside(self) -> None:
        declared = want(spec={"strategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}}})
        found = live(declared, (OTHER, {"f:kept": {}}))
        found["spec"] = {"strategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 2}}}

        assert [True, False] == [leaf.equal for leaf in judge(declared, found, OURS).leaves]


class TestChanged:
    def test_our_own_new_value_is_a_plain_write(self) -> None:
        declared = want(spec={"replicas": 2})
        verdict = judge(declared, live(declared, (OURS, SPEC), spec={"replicas": 1}), OURS)

        assert [("changed", ".spec.replicas")] == told(verdict)
        assert () == verdict.contested

    def test_with_a_co_owner_of_the_old_value_it_is_contested(self) -> None:
        declared = want(spec={"replicas": 2})
        found = live(declared, (OURS, SPEC), (OTHER, SPEC), spec={"replicas": 1})

        assert 1 == len(judge(declared, found, OURS).contested)

    @pytest.mark.parametrize(
        ("wanted", "there"), [("8", 8), (True, 1), (1, True), ("x", None), (0, False)]
    )
    def test_values_are_compared_strictly(self, wanted: Any, there: Any) -> None:
        declared = want(spec={"replicas": wanted})
        found = live(declared, (OURS, SPEC), spec={"replicas": there})

        assert not judge(declared, found, OURS).settled

    def test_an_atomic_field_is_compared_whole(self) -> None:
        declared = want(spec={"selector": {"a": "1"}})
        tree = {"f:spec": {"f:selector": {}}}
        found = live(declared, (OURS, tree), spec={"selector": {"a": "1", "b": "2"}})
        leaf = only(judge(declared, found, OURS))

        assert (".spec.selector", {"a": "1"}) == (leaf.path, leaf.want)

    def test_an_empty_map_lies_over_what_others_put_into_it(self) -> None:
        declared = want(spec={"emptyDir": {}})
        ours = {"f:spec": {"f:emptyDir": {}}}
        theirs = {"f:spec": {"f:emptyDir": {"f:sizeLimit": {}}}}
        found = live(declared, (OURS, ours), (OTHER, theirs), spec={"emptyDir": {"sizeLimit": "1"}})

        assert judge(declared, found, OURS).settled

    def test_an_empty_map_that_only_others_hold_is_not_contested(self) -> None:
        declared = want(spec={"emptyDir": {}})
        theirs = {"f:spec": {"f:emptyDir": {"f:sizeLimit": {}}}}
        found = live(declared, (OTHER, theirs), spec={"emptyDir": {"sizeLimit": "1"}})
        verdict = judge(declared, found, OURS)

        assert [("lost", ".spec.emptyDir")] == told(verdict)
        assert () == verdict.contested

    def test_an_empty_map_against_a_full_atomic_one_is(self) -> None:
        declared = want(spec={"selector": {}})
        tree = {"f:spec": {"f:selector": {}}}
        found = live(declared, (OTHER, tree), spec={"selector": {"a": "1"}})

        assert [".spec.selector"] == [leaf.path for leaf in judge(declared, found, OURS).contested]

    def test_a_null_or_empty_list_equals_what_is_absent(self) -> None:
        declared = want(spec={"a": None, "b": []})
        tree = {"f:spec": {"f:a": {}, "f:b": {}}}

        assert judge(declared, live(declared, (OURS, tree), spec={}), OURS).settled


class TestEmpty:
    @pytest.mark.parametrize("empty", ["", 0, False, {}, [], None])
    def test_one_that_is_ours_and_that_the_server_left_out_is_settled(self, empty: Any) -> None:
        declared = want(spec={"a": empty, "b": 1})
        tree = {"f:spec": {"f:a": {}, "f:b": {}}}

        assert judge(declared, live(declared, (OURS, tree), spec={"b": 1}), OURS).settled

    @pytest.mark.parametrize("empty", ["", 0, False, {}])
    def test_one_that_is_not_ours_is_written(self, empty: Any) -> None:
        declared = want(spec={"a": empty, "b": 1})
        found = live(declared, (OURS, {"f:spec": {"f:b": {}}}), spec={"b": 1})

        assert [leaf.path for leaf in judge(declared, found, OURS).leaves] == [".spec.a"]

    @pytest.mark.parametrize("there", [None, []])
    def test_an_empty_list_without_an_owner_is_settled(self, there: Any) -> None:
        declared = want(spec={"a": [], "b": 1})
        found = live(declared, (OURS, {"f:spec": {"f:b": {}}}), spec={"a": there, "b": 1})

        assert judge(declared, found, OURS).settled

    def test_but_not_one_that_another_holds(self) -> None:
        declared = want(spec={"a": [], "b": 1})
        others = (OTHER, {"f:spec": {"f:a": {}}})
        found = live(declared, (OURS, {"f:spec": {"f:b": {}}}), others, spec={"a": ["x"], "b": 1})

        assert [leaf.path for leaf in judge(declared, found, OURS).contested] == [".spec.a"]

    def test_what_took_its_place_is_no_empty_value(self) -> None:
        declared = want(spec={"a": ""})
        found = live(declared, (OURS, {"f:spec": {"f:a": {}}}), spec={"a": "default"})

        assert [leaf.why for leaf in judge(declared, found, OURS).leaves] == ["changed"]


class TestResidual:
    DECLARED = want(spec={"ref": {"fieldPath": "f"}, "replicas": 2})
    TREE = {"f:spec": {"f:ref": {}, "f:replicas": {}}}
    SPEC = {"ref": {"apiVersion": "v1", "fieldPath": "f"}, "replicas": 2}

    def answer(self) -> Object:
        return live(self.DECLARED, (OURS, self.TREE), spec=copy.deepcopy(self.SPEC))

    def of(self, found: Object, declared: Object | None = None) -> str:
        return residual(judge(declared or self.DECLARED, found, OURS))

    def test_it_is_short_and_there(self) -> None:
        assert 16 == len(self.of(self.answer()))

    def test_it_outlives_what_happens_beside_our_leaves(self) -> None:
        later = self.answer()
        later["metadata"] |= {"resourceVersion": "99", "labels": {"new": "1"}}
        later["metadata"]["managedFields"][0]["time"] = "2026-01-01T00:00:00Z"
        later["metadata"]["managedFields"].insert(
            0,
            {"manager": OTHER, "operation": "Update", "fieldsV1": {"f:status": {"f:replicas": {}}}},
        )
        later["status"] = {"replicas": 1}

        assert self.of(self.answer()) == self.of(later)

    @pytest.mark.parametrize(
        "change",
        [
            {"spec": {**SPEC, "replicas": 3}},
            {"spec": {**SPEC, "ref": {"apiVersion": "v2", "fieldPath": "f"}}},
            {"spec": {"replicas": 2}},
            {"apiVersion": "apps/v2"},
        ],
    )
    def test_it_ends_with_every_change_of_our_leaves(self, change: Object) -> None:
        assert self.of(self.answer()) != self.of(self.answer() | change)

    def test_it_ends_when_another_holds_one_of_them(self) -> None:
        later = self.answer()
        later["metadata"]["managedFields"].append(
            {"manager": OTHER, "operation": "Apply", "fieldsV1": {"f:spec": {"f:ref": {}}}}
        )

        assert self.of(self.answer()) != self.of(later)

    def test_it_does_not_depend_on_the_order_of_the_declaration(self) -> None:
        spec = {"b": {"x": 1}, "a": {"x": 1}}
        declared, mirrored = want(spec=spec), want(spec=dict(reversed(spec.items())))
        found = live(declared, (OURS, {"f:spec": {"f:a": {}, "f:b": {}}}), spec={})

        assert self.of(found, declared) == self.of(found, mirrored)

    def test_it_does_not_depend_on_the_order_of_entries(self) -> None:
        found = self.answer()
        more = [
            {"manager": name, "operation": "Apply", "fieldsV1": {"f:spec": {"f:ref": {}}}}
            for name in ("x", "y")
        ]
        managed = found["metadata"]["managedFields"]
        residuals = set()
        for extra in (more, more[::-1]):
            found["metadata"]["managedFields"] = [*managed, *extra]
            residuals.add(self.of(found))

        assert 1 == len(residuals)


@pytest.mark.parametrize(
    ("there", "declared"),
    [
        ([3, None], {"spec": {"a": 3, "c": 5}}),
        ([None, None], {"spec": {"c": 5}}),
        ([3, 4], {"spec": {"a": 3, "b": 4, "c": 5}}),
    ],
)
def test_what_is_contested_is_declared_as_it_is_or_left_out(there, declared):
    leaves = [
        Leaf("", ("f:spec", f"f:{name}"), "changed", 1, value, (), equal=False)
        for name, value in zip("ab", there, strict=True)
    ]

    assert with_live({"spec": {"a": 1, "b": 2, "c": 5}}, leaves) == declared
