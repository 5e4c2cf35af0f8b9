"""Hand-made managed fields; `tests/cluster` holds the same verdicts against the real server."""

from __future__ import annotations

import copy
from typing import NamedTuple

import pytest

from hedgerow.fields.ownership import judge, residual
from support.objects.judged import NAME, OTHER, OURS, Object, live, only, want

SPEC = {"f:spec": {"f:replicas": {}}}


class Row(NamedTuple):
    """What is declared, who holds which fields, and the leaves that are told of what is there.

    A leaf is told as `why path`, with a `!` where it is contested; nothing is told of what is
    settled. `there` is what is declared, if it is not said.
    """

    name: str
    spec: Object
    held: tuple[tuple[str, str], ...]
    told: tuple[str, ...] = ()
    there: Object | None = None


def tree(paths: str) -> Object:
    """Return the fields of a spec; those below others have dots."""
    fields: Object = {}
    for path in paths.split():
        below = fields
        for name in path.split("."):
            below = below.setdefault(f"f:{name}", {})
    return {"f:spec": fields}


TWO, HELD = {"replicas": 2}, (OURS, "replicas")
NOTES, SURGE = {"a": "1", "b": "1"}, {"rollingUpdate": {"maxSurge": 1}}
LIMITED = {"emptyDir": {"sizeLimit": "1"}}
JUDGED = (
    Row("what we hold and what is equal", TWO, (HELD,)),
    Row("a co-owner of the same value", TWO, (HELD, (OTHER, "replicas"))),
    Row("our own name under update is another", TWO, ((f"{OURS}/Update", "replicas"),),
        ("lost .spec.replicas!",), {"replicas": 5}),
    Row("a lost field of equal value is a plain write", TWO, ((OTHER, "replicas"),),
        ("lost .spec.replicas",)),
    Row("a bare map of ours is no atomic one when others hold its children", {"notes": NOTES},
        ((OURS, "notes"), (OTHER, "notes.a")), ("lost .spec.notes.a!", "lost .spec.notes.b"),
        {"notes": {"a": "2"}}),
    Row("a whole map that is gone is one leaf", {"strategy": SURGE}, ((OTHER, "paused"),),
        ("lost .spec.strategy",), {"paused": True}),
    Row("our own new value is a plain write", TWO, (HELD,), ("changed .spec.replicas",),
        {"replicas": 1}),
    Row("with a co-owner of the old value it is contested", TWO, (HELD, (OTHER, "replicas")),
        ("changed .spec.replicas!",), {"replicas": 1}),
    *(
        Row(f"values are compared strictly: {wanted!r} and {there!r}", {"replicas": wanted},
            (HELD,), ("changed .spec.replicas",), {"replicas": there})
        for wanted, there in [("8", 8), (True, 1), (1, True), ("x", None), (0, False)]
    ),
    Row("an atomic field is compared whole", {"selector": {"a": "1"}}, ((OURS, "selector"),),
        ("changed .spec.selector",), {"selector": {"a": "1", "b": "2"}}),
    Row("an empty map lies over what others put into it", {"emptyDir": {}},
        ((OURS, "emptyDir"), (OTHER, "emptyDir.sizeLimit")), (), LIMITED),
    Row("one that only others hold is not contested", {"emptyDir": {}},
        ((OTHER, "emptyDir.sizeLimit"),), ("lost .spec.emptyDir",), LIMITED),
    Row("one against a full atomic one is", {"selector": {}}, ((OTHER, "selector"),),
        ("lost .spec.selector!",), {"selector": {"a": "1"}}),
    Row("a null or empty list equals what is absent", {"a": None, "b": []}, ((OURS, "a b"),), (),
        {}),
    *(
        Row(f"what is empty, ours, and left out by the server: {empty!r}", {"a": empty, "b": 1},
            ((OURS, "a b"),), (), {"b": 1})
        for empty in ("", 0, False, {}, [], None)
    ),
    *(
        Row(f"what is empty and not ours is written: {empty!r}", {"a": empty, "b": 1},
            ((OURS, "b"),), ("lost .spec.a",), {"b": 1})
        for empty in ("", 0, False, {})
    ),
    *(
        Row(f"an empty list without an owner: {there}", {"a": [], "b": 1}, ((OURS, "b"),), (),
            {"a": there, "b": 1})
        for there in (None, [])
    ),
    Row("but not one that another holds", {"a": [], "b": 1}, ((OURS, "b"), (OTHER, "a")),
        ("lost .spec.a!",), {"a": ["x"], "b": 1}),
    Row("what took its place is no empty value", {"a": ""}, ((OURS, "a"),), ("changed .spec.a",),
        {"a": "default"}),
)  # fmt: skip


@pytest.mark.parametrize("row", JUDGED, ids=[row.name for row in JUDGED])
def test_what_is_judged(row: Row) -> None:
    declared = want(spec=row.spec)
    entries = [(manager, tree(paths)) for manager, paths in row.held]
    there = {} if row.there is None else {"spec": row.there}
    verdict = judge(declared, live(declared, *entries, **there), OURS)

    contested = {leaf.path for leaf in verdict.contested}
    told = [f"{leaf.why} {leaf.path}{'!' * (leaf.path in contested)}" for leaf in verdict.leaves]
    assert told == list(row.told)
    assert verdict.settled == (not row.told)
    if verdict.settled:
        assert residual(verdict) == ""


class TestSettled:
    def test_what_others_hold_beside_us_does_not_matter(self) -> None:
        declared = want(spec={"replicas": 2})
        beside = {"f:metadata": {"f:labels": {"f:a": {}}}, "f:spec": {"f:paused": {}}}
        found = live(declared, (OURS, SPEC), (f"{OTHER}/Update", beside))
        found["spec"] = {"replicas": 2, "paused": True}

        assert judge(declared, found, OURS).settled

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

    def test_a_removed_field_has_no_holder(self) -> None:
        declared = want(spec={"replicas": 2})
        found = live(declared, (OTHER, {"f:spec": {"f:paused": {}}}), spec={"paused": True})

        assert () == only(judge(declared, found, OURS)).holders

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

    def test_defaults_that_nobody_holds_are_compared_inside(self) -> None:
        declared = want(spec={"strategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}}})
        found = live(declared, (OTHER, {"f:kept": {}}))
        found["spec"] = {"strategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 2}}}

        assert [True, False] == [leaf.equal for leaf in judge(declared, found, OURS).leaves]


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
