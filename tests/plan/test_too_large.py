"""Stubs: what is kept of objects that are too large, and what is said."""

from __future__ import annotations

from typing import Any

import pytest

from hedgerow.encoding import encode
from hedgerow.objects import Installation, Key, ObjectRef
from hedgerow.plan.too_large import (
    COUNTED,
    MARK,
    MOST_BYTES,
    MOST_VALUES,
    TOO_LARGE,
    Excess,
    concerned_by,
    excess,
    excess_of,
    problem,
    readable,
    stub_of,
)
from hedgerow_schemas.base import ApiResource
from hedgerow_tools.fields.installations import reporters
from plan.made import entry

MANAGER = "hedgerow-bluegreen"
ANEW = ", or delete it: what is declared of it is made anew"
MIB = 1024 * 1024
OWN = Excess(12_345, MOST_VALUES, "values")
SUM = Excess(3 * MIB // 2, 192 * MIB, "sum")
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


def reduce(obj: dict[str, Any], why: Excess = OWN) -> dict[str, Any]:
    return stub_of(obj, why, MANAGER)


class TestStub:
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

    def test_of_an_object_without_anything_there_is_one(self):
        assert reduce({}) == {
            "metadata": {"managedFields": []},
            MARK: {"number": 12_345, "most": MOST_VALUES, "of": "values", "concerns": []},
        }


class TestMark:
    @pytest.mark.parametrize("why", [OWN, SUM])
    def test_it_tells_why_it_is_one(self, why):
        assert excess_of(reduce(resource(), why)) == why

    def test_it_tells_whom_it_concerns(self):
        keys = Key("ns", "a"), Key("", "b")

        assert concerned_by(stub_of(resource(), OWN, MANAGER, keys)) == keys

    def test_a_whole_object_has_none(self):
        assert excess_of(resource()) is None


def env(number: int) -> dict[str, Any]:
    """Return so many variables with the managed fields of whoever set them."""
    of = {".": {}, "f:name": {}, "f:value": {}}
    return {
        "env": [{"name": f"A{n}", "value": "x"} for n in range(number)],
        "managed": {f'k:{{"name":"A{n}"}}': of for n in range(number)},
    }


class TestExcess:
    @pytest.mark.parametrize(
        ("obj", "why"),
        [
            ({"a": "x" * (MOST_BYTES - 8)}, None),
            ({"a": "x" * (MOST_BYTES - 7)}, Excess(MOST_BYTES + 1, MOST_BYTES, "bytes")),
            ({"a": "{,[" * 20_000}, None),
            ({"a": ["x"] * (MOST_VALUES - 2)}, None),
            ({"a": ["x"] * (MOST_VALUES - 1)}, Excess(MOST_VALUES + 1, MOST_VALUES, "values")),
            (env(713), None),
            (env(714), Excess(5_001, MOST_VALUES, "values")),
            ({"a": [{}] * 2_500, "b": [[]] * 2_499}, Excess(5_002, MOST_VALUES, "values")),
        ],
    )
    def test_it_is_by_bytes_and_by_values(self, obj, why):
        assert excess(obj, encode(obj)) == why

    @pytest.mark.parametrize("obj", [{"a": ["x"] * 300_000}, {"a": [{"b": {}}] * 150_000}])
    def test_it_counts_no_longer_than_need_be(self, obj):
        found = excess(obj, encode(obj))

        assert found is not None
        assert COUNTED < found.number


class TestProblem:
    REF = ObjectRef(ApiResource("apps/v1", "Deployment", "deployments"), "ns", "demo")

    @pytest.mark.parametrize(
        ("role", "remedy"),
        [
            ("resource", "Make it smaller. Until then hedgerow writes nothing for it"),
            (
                "child",
                f"Make it smaller{ANEW}. Until then hedgerow writes nothing for this one",
            ),
            ("other", "Make it smaller. Until then hedgerow writes nothing for this one"),
        ],
    )
    def test_it_tells_size_bound_and_remedy_of_one_that_is_too_large(self, role, remedy):
        found = problem(self.REF, OWN, role)

        assert (found.reason, found.stalled) == (TOO_LARGE, True)
        assert found.message == (
            "Deployment/demo is too large: it has 12,345 JSON values, and 5,000 is the most. "
            + remedy
        )

    def test_bytes_are_told_in_mebibytes(self):
        found = problem(self.REF, Excess(3 * MIB, 2 * MIB, "bytes"))

        assert "it has 3.0 MiB of JSON, and 2.0 MiB is the most" in found.message

    def test_what_was_not_counted_to_the_end_is_more_than_that(self):
        found = problem(self.REF, Excess(COUNTED + 1, MOST_VALUES, "values"))

        assert "it has more than 100,000 JSON values" in found.message

    def test_it_tells_the_sum_of_one_that_is_left_out(self):
        found = problem(self.REF, SUM)

        assert (found.reason, found.stalled) == (TOO_LARGE, True)
        assert "it has 1.5 MiB of JSON, and all objects together may take 192.0" in found.message
        assert "reads it again within about a minute" in found.message

    def test_sizes_are_told_in_mebibytes(self):
        assert readable(1_600_000) == "1.5 MiB"
