"""The roster of operators that work without leader election, by value."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from hedgerow.runtime.leaderelection.roster import Operator, Roster, read, written

NAME = "hedgerow.operators"

ALL = ("bluegreen", "memcached", "cronjob")
OURS = Operator("ours", "", ALL, (), 15)
THEIRS = Operator("theirs", "", ALL, (), 15, "1")
WALL = datetime(2026, 1, 1, tzinfo=UTC)


def lease(*operators: Operator, version: str = "7", **more: str) -> dict[str, Any]:
    annotations = {one.key: written(one) for one in operators} | more
    return {"metadata": {"uid": "u", "resourceVersion": version, "annotations": annotations}}


def told(body: dict[str, Any]) -> list[str]:
    found = [read(text) for text in body["metadata"]["annotations"].values()]
    return sorted(one.identity for one in found if one)


class TestOperator:
    @pytest.mark.parametrize(
        ("theirs", "both"),
        [
            ({}, True),
            ({"namespaces": ("a",)}, True),
            ({"controllers": ("cronjob",)}, True),
            ({"namespaces": ("b",)}, False),
            ({"namespaces": ("a",), "controllers": ("cronjob",)}, True),
        ],
    )
    def test_two_meet_that_have_a_namespace_and_a_controller_in_common(self, theirs, both):
        ours = replace(OURS, namespaces=("a",))
        other = replace(THEIRS, **theirs)

        assert ours.meets(other) is other.meets(ours) is both

    def test_two_with_other_controllers_do_not_meet(self):
        one, other = replace(OURS, controllers=ALL[:1]), replace(THEIRS, controllers=ALL[1:])

        assert not one.meets(other)

    def test_what_is_written_of_one_is_read_again(self):
        one = replace(THEIRS, namespaces=("a", "b"), instance="two")

        assert read(written(one)) == one

    @pytest.mark.parametrize(
        "text",
        [
            "", "{", "[]", "7", "{}", '{"identity": "x"}',
            written(THEIRS).replace('"theirs"', "7"),
            written(THEIRS).replace("15", '"15"'),
            written(THEIRS).replace('["bluegreen"', "[7"),
            written(THEIRS).replace('"namespaces":[]', '"namespaces":""'),
        ],
    )  # fmt: skip
    def test_what_tells_of_none_is_none(self, text):
        assert read(text) is None


class TestRoster:
    def test_an_operator_that_changes_while_we_look_is_at_work(self):
        roster = Roster(OURS)
        roster.looked(lease(THEIRS), 0)
        assert roster.operator_at_work(0) is None
        assert roster.is_doubtful(0)

        changed = replace(THEIRS, renewed="2")
        roster.looked(lease(changed), 5)

        assert roster.operator_at_work(5) == changed

    def test_one_that_does_not_for_its_duration_is_gone_and_left_out(self):
        roster = Roster(OURS)
        roster.looked(lease(replace(THEIRS, seconds=20)), 0)
        roster.looked(lease(replace(THEIRS, seconds=20), version="8"), 19.9)
        assert roster.is_doubtful(19.9)

        assert not roster.is_doubtful(20)
        assert told(roster.joined(20, WALL)) == ["ours"]

    def test_one_that_was_at_work_and_stopped_is_gone_as_well(self):
        roster = Roster(OURS)
        roster.looked(lease(THEIRS), 0)
        roster.looked(lease(replace(THEIRS, renewed="2")), 5)

        assert roster.operator_at_work(20) is None

    def test_a_duration_below_ours_is_not_believed(self):
        roster = Roster(OURS)
        roster.looked(lease(replace(THEIRS, seconds=0)), 0)

        assert roster.is_doubtful(14)

    @pytest.mark.parametrize(
        "others",
        [{"instance": "two"}, {"namespaces": ("b",)}, {"controllers": ("memcached",)}],
    )
    def test_one_of_another_installation_or_on_other_things_is_in_nobodys_way(self, others):
        roster = Roster(replace(OURS, namespaces=("a",), controllers=("bluegreen",)))
        roster.looked(lease(replace(THEIRS, **others)), 0)
        roster.looked(lease(replace(THEIRS, renewed="2", **others)), 1)

        assert roster.operator_at_work(1) is None
        assert not roster.is_doubtful(1)
        assert told(roster.joined(1, WALL)) == ["ours", "theirs"]

    def test_one_of_another_installation_on_the_same_is_a_guest_once_it_is_seen_at_work(self):
        roster = Roster(OURS)
        other = replace(THEIRS, instance="two")
        roster.looked(lease(other), 0)
        assert roster.other_installations(0) == ()

        roster.looked(lease(replace(other, renewed="2")), 1)

        assert [guest.identity for guest in roster.other_installations(1)] == ["theirs"]
        assert roster.other_installations(16) == ()

    def test_our_own_entry_is_no_company(self):
        roster = Roster(OURS)
        roster.looked(lease(replace(OURS, renewed="1")), 0)
        roster.looked(lease(replace(OURS, renewed="2")), 1)

        assert roster.operator_at_work(1) is None
        assert not roster.is_doubtful(1)

    def test_where_there_is_none_it_is_made_and_only_then(self):
        roster = Roster(OURS)
        roster.looked(None, 0)

        body = roster.joined(0, WALL)

        assert body["metadata"]["name"] == NAME
        assert body["metadata"]["resourceVersion"] == "1"
        assert "uid" not in body["metadata"]

    def test_a_write_is_for_the_version_that_was_seen(self):
        roster = Roster(OURS)
        roster.looked(lease(version="9"), 0)

        meta = roster.joined(0, WALL)["metadata"]

        assert (meta["uid"], meta["resourceVersion"]) == ("u", "9")

    @pytest.mark.parametrize("step", [timedelta(0), timedelta(seconds=-5), timedelta(seconds=5)])
    def test_each_renewal_changes_what_is_told_whatever_the_clock_does(self, step):
        roster = Roster(OURS)
        roster.looked(None, 0)

        bodies = [roster.joined(n, WALL + n * step)["metadata"]["annotations"] for n in range(4)]

        assert all(a != b for a, b in pairwise(bodies))

    def test_whoever_leaves_leaves_the_others_and_the_last_one_nothing(self):
        roster = Roster(OURS)
        roster.looked(lease(THEIRS), 0)

        assert told(roster.left(1)) == ["theirs"]
        assert not roster.is_last(1)
        assert told(roster.left(15)) == []
        assert roster.is_last(15)

    def test_what_others_wrote_into_it_is_not_taken_for_an_operator(self):
        roster = Roster(OURS)
        key = THEIRS.key
        roster.looked(lease(**{key: "gone", "example/x": written(THEIRS)}), 0)

        assert not roster.is_doubtful(0)
        assert told(roster.joined(0, WALL)) == ["ours"]
