"""Who serves what, told from Leases that anybody may have written."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from cli.shards.leases import (
    ALL,
    FIRST,
    LAST,
    NOW,
    SECOND,
    THIRD,
    assignment,
    election,
    lease,
    member,
    three,
)
from hedgerow.cli.shards.listing import listed
from hedgerow.cli.shards.report import reported
from hedgerow.cli.shards.terminal import lines, unserved, words
from hedgerow.encoding import to_json
from hedgerow.shards.members import MEMBER_STATUS
from hedgerow.shards.slices import COUNT, point_of, written


def report(leases, now=NOW):
    return reported(leases, "hedgerow", now)


def gaps(leases):
    return [(written(gap.slices), gap.former) for gap in report(leases).gaps]


def states(leases):
    return {each.name: each.state for each in report(leases).replicas}


class TestReplicas:
    def test_each_has_what_its_lease_says(self):
        found = report(three())
        first = found.replicas[0]

        assert [each.name for each in found.replicas] == ["a", "b", "c"]
        assert (written(first.slices), first.namespaces, first.resources) == (FIRST, 4, 31)
        assert (first.passes, first.lag) == (2.04, 0.012)
        assert first.since == "2026-01-01T09:00:00.000000Z"
        assert (found.leader, found.gaps, found.more) == ("a", (), 0)
        assert (found.assignment.epoch, found.assignment.author) == (7, "a")

    @pytest.mark.parametrize(
        ("changed", "state"),
        [
            (member("a", FIRST), "serves"),
            (member("a", FIRST, ready=False), "joins"),
            (member("a", FIRST, filled=False), "fills its caches"),
            (member("a", FIRST, leaving=True), "leaves"),
            (member("a", FIRST, ago=16), "silent"),
            (member("a", FIRST, text="{"), "unreadable"),
        ],
    )
    def test_its_state_is_what_it_says_as_long_as_its_lease_lasts(self, changed, state):
        assert states(three(a=changed))["a"] == state

    def test_one_that_has_ended_and_said_so_is_not_there(self):
        assert states(three(a=member("a", "", holder=""))).keys() == {"b", "c"}

    def test_nobody_leads_whose_lease_has_run_out(self):
        assert report([election(ago=16), *three()[1:]]).leader == ""
        assert report(three()[1:]).leader == ""

    def test_the_last_who_were_there_count_if_there_are_too_many(self):
        many = [member(f"old-{n}", ALL, ago=100 + n) for n in range(150)]
        found = report([*many, *three()])

        assert (len(found.replicas), found.more) == (100, 53)
        assert {"a", "b", "c"} < {each.name for each in found.replicas}
        assert found.gaps == ()


class TestGaps:
    def test_what_a_silent_one_had_is_served_by_nobody_since_its_last_sign(self):
        found = report(three(b=member("b", SECOND, ago=20)))
        [gap] = found.gaps

        assert (written(gap.slices), gap.former) == (SECOND, "b")
        assert gap.since == found.replicas[1].renewed

    @pytest.mark.parametrize("heir", [{}, {"leaving": True}, {"filled": False}])
    def test_it_is_served_once_another_has_it(self, heir):
        assert (
            gaps(three(b=member("b", SECOND, ago=20), c=member("c", f"{SECOND},{LAST}", **heir)))
            == []
        )

    def test_what_nobody_ever_had_has_been_missing_since_the_assignment(self):
        found = report([election(), assignment(ago=240), member("a", FIRST)])
        [gap] = found.gaps

        assert (written(gap.slices), gap.former) == (f"{THIRD:x}-{COUNT:x}", "")
        assert gap.since == found.assignment.since
        assert "nobody serves 1 slice (67%) for at most 4m" in unserved(gap, NOW)

    def test_an_assignment_that_nobody_can_read_is_none(self):
        found = report([election(), assignment(parts=[]), member("a", FIRST)])

        assert found.assignment is None
        assert [gap.since for gap in found.gaps] == [""]

    def test_one_that_cannot_be_read_serves_nothing_that_is_known(self):
        assert gaps(three(a=member("a", FIRST, text="[]"))) == [(FIRST, "")]


class TestServing:
    def test_a_namespace_is_served_by_who_has_its_point(self):
        found = report(three())

        for namespace in ("shop", "", "team-a", "default"):
            who = "abc"[min(point_of(namespace) // THIRD, 2)]
            assert found.serving(namespace) == who

    def test_in_a_handover_the_former_one_serves(self):
        assert report([member("a", "", filled=False), member("b", ALL)]).serving("shop") == "b"

    def test_nobody_serves_what_is_missing_or_outside(self):
        assert report([member("a", ALL, ago=99)]).serving("shop") == ""
        assert report([election(namespaces="a,b"), member("a", ALL)]).serving("shop") == ""
        assert report([election(namespaces="a,b"), member("a", ALL)]).serving("b") == "a"
        assert report([]).serving("shop") == ""


HOSTILE = [
    member("a", FIRST, text="x" * 200_000),
    member("a", FIRST, text="[" * 50_000),
    member("a", ",".join(f"{n:x}-{n + 1:x}" for n in range(0, 8000, 2))),
    member("a", "zz"),
    member("\x1b[31m" + "a" * 500, ALL, revision="r\n"),
    member("a", ALL, facts={"namespaces": -1, "resources": 1e300, "passes": 1e300, "lag": -2}),
    member("a", ALL, text=json.dumps({"facts": {"lag": "x"}, "holds": 7})),
    lease("hedgerow-a", "a", annotations={MEMBER_STATUS: None}),
    lease("hedgerow-a", ["a"], renewTime="yesterday", acquireTime=3),
    lease("hedgerow-a", "a", renewTime="9999-99-99", leaseDurationSeconds=-3),
    lease("hedgerow-a", "a", renewTime="2026-01-01T12:00:00", leaseDurationSeconds=10**30),
    {"metadata": {"name": "hedgerow-a"}, "spec": "none"},
    assignment(epoch=-1),
    assignment(members=[]),
    lease("hedgerow", "\u202e" * 90_000),
]


@pytest.mark.parametrize("odd", HOSTILE, ids=range(len(HOSTILE)))
@pytest.mark.parametrize("width", [20, 80, 10_000])
def test_what_others_wrote_is_shown_within_bounds(odd, width):
    name = odd["metadata"]["name"]
    others = [one for one in three() if one["metadata"]["name"] != name]
    found = report([odd, *others])
    shown = [line.plain for line in lines(found, NOW, width)]

    assert max(map(len, shown)) < 600
    assert all(line.isprintable() for line in shown)
    assert len(to_json(listed(found))) < 100_000
    assert words(found)["unserved"]


class TestTable:
    def test_it_shows_each_replica_and_says_what_is_wrong(self):
        told = [
            line.plain for line in lines(report(three(b=member("b", SECOND, ago=20))), NOW, 120)
        ]

        assert told == [
            "REPLICA  STATE             SLICES   NAMESPACES  RESOURCES  PASSES/S  LAG   SINCE",
            "a        ✓ serves          1 (33%)  4           31         2.0       0.0s  3h",
            "b        ✗ silent for 20s  1 (33%)  4           31         2.0       0.0s  3h",
            "c        ✓ serves          1 (33%)  4           31         2.0       0.0s  3h",
            "",
            "✗ nobody serves 1 slice (33%) for 20s; b did",
            "assignment 7, made 4m ago, by a",
            "a leads",
        ]

    def test_a_narrow_terminal_gets_what_matters_most(self):
        long = member("hedgerow-6f59c5cfd9-k7gv2", FIRST)
        told = [line.plain for line in lines(report(three(a=long)), NOW, 40)]

        assert max(map(len, told)) <= 40
        assert told[0].split() == ["REPLICA", "STATE", "SLICES"]

    def test_it_says_when_nobody_decides(self):
        told = " ".join(line.plain for line in lines(report([member("a", ALL)]), NOW, 200))

        assert "nobody has said yet who serves what" in told
        assert "nobody leads" in told

    def test_replicas_that_do_not_fit_are_counted(self):
        many = [member(f"a-{n}", ALL) for n in range(101)]

        assert "… 1 more" in [line.plain for line in lines(report(many), NOW, 200)]


def test_a_list_for_programs_has_all_of_it():
    found = listed(report(three(b=member("b", SECOND, ago=20, revision="r2"))))

    assert found["leader"] == "a"
    assert found["assignment"]["epoch"] == 7
    assert found["replicas"][1] == {
        "name": "b", "state": "silent", "slices": SECOND, "share": 0.3333, "namespaces": 4,
        "resources": 31, "passes": 2.04, "lag": 0.012, "revision": "r2",
        "since": "2026-01-01T09:00:00.000000Z",
    }  # fmt: skip
    assert [(gap["slices"], gap["former"]) for gap in found["unserved"]] == [(SECOND, "b")]


def test_time_alone_makes_a_replica_silent():
    leases = three()

    assert words(report(leases, NOW + timedelta(seconds=14)))["a"] == "serves, 1 (33%)"
    assert words(report(leases, NOW + timedelta(seconds=15)))["a"] == "silent, 1 (33%)"
