"""Bounds: what is kept of objects that are too large, what is said, and who is left out."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.objects import Installation, ObjectRef
from hedgerow.plan.installations import reporters
from hedgerow.plan.oversized import (
    MARK,
    TOO_LARGE,
    Family,
    Oversize,
    oversize_of,
    problem,
    readable,
    reduced,
    surplus,
)
from hedgerow_schemas.base import ApiResource
from plan.made import entry

MANAGER = "hedgerow-bluegreen"
MIB = 1024 * 1024
OWN = Oversize(9 * MIB, 8 * MIB, "object")
SUM = Oversize(30 * MIB, 224 * MIB, "sum")
STATUS = {"routeTo": "Blue", "conditions": [{"type": "Ready", "status": "True"}], "theirs": 1}


def resource(**meta: Any) -> dict[str, Any]:
    ours = {"apiVersion": "app.demo.kakao.com/v1", "status": {"routeTo": "Blue"}}
    return {
        "apiVersion": "app.demo.kakao.com/v1",
        "kind": "BlueGreen",
        "metadata": {
            "name": "demo",
            "namespace": "ns",
            "uid": "u",
            "resourceVersion": "7",
            "generation": 3,
            "annotations": {"a": "b" * 1000},
            "managedFields": [
                entry({**ours, "spec": {}}, "kubectl", "Update"),
                entry(ours, MANAGER, subresource="status"),
                entry(ours, "hedgerow-other-bluegreen", subresource="status"),
                entry(ours, "somebody", subresource="status"),
                entry(ours, "hedgerow-bluegreen", "Update", subresource="status"),
            ],
            **meta,
        },
        "spec": {"blueSpec": {"containers": []}},
        "status": STATUS,
    }


def reduce(obj: dict[str, Any], oversize: Oversize = OWN) -> dict[str, Any]:
    return reduced(obj, oversize, MANAGER)


class TestReduced:
    def test_who_it_is_stays_and_what_it_declares_goes(self):
        small = reduce(resource())

        assert (small["apiVersion"], small["kind"]) == ("app.demo.kakao.com/v1", "BlueGreen")
        meta = small["metadata"]
        kept = {key: value for key, value in meta.items() if key != "managedFields"}
        assert kept == {
            "name": "demo",
            "namespace": "ns",
            "uid": "u",
            "resourceVersion": "7",
            "generation": 3,
        }
        assert "spec" not in small

    def test_it_stays_whose_it_is_and_that_it_is_going(self):
        other, owner = {"uid": "x"}, {"uid": "o", "controller": True}
        labels = {"hedgerow.dev/controller": "bluegreen", "other": "x"}
        meta = reduce(
            resource(
                ownerReferences=[other, owner],
                labels=labels,
                finalizers=["theirs"],
                deletionTimestamp="2026-01-01T00:00:00Z",
            )
        )["metadata"]

        assert meta["ownerReferences"] == [owner]
        assert meta["labels"] == {"hedgerow.dev/controller": "bluegreen"}
        assert "finalizers" not in meta
        assert meta["deletionTimestamp"] == "2026-01-01T00:00:00Z"

    def test_of_the_status_it_keeps_what_we_have_said(self):
        small = reduce(resource())

        assert small["status"] == {"routeTo": "Blue"}

    def test_it_is_still_known_which_installations_report(self):
        small = reduce(resource())

        assert reporters(small, "bluegreen") == (Installation(), Installation("other"))
        found = [one.get("fieldsV1") is not None for one in small["metadata"]["managedFields"]]
        assert found == [True, False]

    def test_no_number_of_reports_makes_it_large(self):
        many = [
            entry({"apiVersion": "v1"}, f"hedgerow-i{n}-bluegreen", subresource="status")
            for n in range(1000)
        ]

        assert len(reduce(resource(managedFields=many))["metadata"]["managedFields"]) == 8

    def test_an_object_without_anything_can_be_reduced(self):
        assert reduce({}) == {
            "metadata": {"managedFields": []},
            MARK: {"weight": 9 * MIB, "most": 8 * MIB, "of": "object"},
        }


class TestExcess:
    @pytest.mark.parametrize("oversize", [OWN, SUM])
    def test_a_part_tells_why_it_is_one(self, oversize):
        assert oversize_of(reduce(resource(), oversize)) == oversize

    def test_a_whole_object_tells_of_none(self):
        assert oversize_of(resource()) is None


class TestProblem:
    REF = ObjectRef(ApiResource("apps/v1", "Deployment", "deployments"), "ns", "demo")

    def test_it_tells_size_bound_and_remedy_of_one_that_is_too_large(self):
        found = problem(self.REF, OWN)

        assert (found.reason, found.stalled) == (TOO_LARGE, True)
        assert found.message == (
            "Deployment/demo is too large: it takes about 9.0 MiB of memory, and 8.0 MiB is the"
            " most for one object. Make it smaller, with fewer items above all, or raise the"
            " operator's memory limit. Until then hedgerow writes nothing for it"
        )

    def test_it_tells_the_sum_of_one_that_is_left_out(self):
        found = problem(self.REF, SUM)

        assert (found.reason, found.stalled) == (TOO_LARGE, True)
        assert "takes about 30.0 MiB of memory, and there is room for 224.0 MiB" in found.message
        assert "caches it again once there is room" in found.message

    def test_it_tells_what_is_odd_about_one_that_cannot_be_decoded(self):
        found = problem(self.REF, Oversize(1, 2, "undecodable"))

        assert (found.reason, found.stalled) == ("Undecodable", True)
        assert found.message.startswith("Deployment/demo cannot be read: its JSON has bytes that")
        assert "more than 190 levels, most likely in metadata.managedFields" in found.message

    def test_sizes_are_told_in_mebibytes(self):
        assert readable(1_600_000) == "1.5 MiB"


def left_out(need: int, **weights: int) -> list[str]:
    """Name who is left out; `a_b` is resource b of namespace a, which can be reduced to nothing."""
    families = {Family("c", *name.split("_")): weight for name, weight in weights.items()}
    return [f"{one.namespace}_{one.name}" for one in surplus(families, families, need)]


class TestSurplus:
    def test_nobody_is_left_out_without_need(self):
        assert left_out(0, a_x=9) == []

    def test_the_heaviest_goes_first_and_no_more_than_need_be(self):
        assert left_out(5, a_x=3, a_y=9, a_z=4) == ["a_y"]

    def test_who_has_little_is_not_left_out_for_who_has_much(self):
        assert left_out(6, much_x=4, much_y=4, much_z=4, little_x=6) == ["much_z", "much_y"]

    def test_namespaces_take_turns_once_they_take_the_same(self):
        assert left_out(9, a_x=4, a_y=4, b_x=4, b_y=3) == ["a_y", "b_x", "a_x"]

    def test_what_cannot_be_reduced_is_passed_over(self):
        fixed, light = Family("c", "a", "fixed"), Family("c", "b", "light")

        assert surplus({fixed: 9, light: 1}, {fixed: 0, light: 1}, 5) == [light]

    @given(
        st.dictionaries(
            st.builds(Family, st.just("c"), st.sampled_from("abc"), st.sampled_from("vwxyz")),
            st.integers(1, 50),
        ),
        st.integers(0, 300),
    )
    def test_it_gains_what_is_needed_or_all_there_is_and_each_but_once(self, weights, need):
        found = surplus(weights, weights, need)

        gained = sum(weights[one] for one in found)
        assert len(set(found)) == len(found)
        assert gained >= need or set(found) == set(weights)
        assert not found or gained - weights[found[-1]] < need

    @given(st.lists(st.integers(1, 50), min_size=1), st.integers(1, 50), st.integers(1, 300))
    def test_a_namespace_is_left_alone_while_another_takes_more(self, others, ours, need):
        families = {Family("c", "other", str(n)): weight for n, weight in enumerate(others)}
        mine = Family("c", "mine", "x")
        found = surplus({**families, mine: ours}, defaultdict(lambda: 1) | families, need)

        if mine in found:
            before = sum(families[one] for one in found[: found.index(mine)])
            assert sum(others) - before <= ours
