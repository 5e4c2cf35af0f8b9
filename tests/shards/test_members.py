"""Members: what is seen of Leases, whoever wrote them, and what is certain of silence."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from hedgerow.shards import assignment
from hedgerow.shards.assigner import LONGEST_GATHERED, Assigner
from hedgerow.shards.assignment import MOST_PARTS, Assignment
from hedgerow.shards.member import Member, QuietSlices
from hedgerow.shards.members import (
    ASSIGNMENT,
    KEPT,
    LABEL,
    LEAP,
    LONGEST_NAME,
    MEMBER_STATUS,
    MOST_HEIRS,
    MOST_KNOWN,
    MOST_WATCHES,
    HandedOver,
    Members,
    MemberStatus,
    parse_status,
    status_text,
)
from hedgerow.shards.slices import ALL, NONE, Slices

Object = dict[str, Any]
GIVEN = Assignment(3, "n", ("own", "other"), ((0, 0), (10, 1)))


def lease(name: str, version: int = 1, what: MemberStatus | str = "", holder: str = "x") -> Object:
    told = what if isinstance(what, str) else status_text(what)
    meta = {"name": name, "uid": f"u-{name}", "resourceVersion": str(version)}
    meta |= {"labels": {LABEL: "hedgerow"}, "annotations": {MEMBER_STATUS: told}}
    return {"metadata": meta, "spec": {"holderIdentity": holder, "renewTime": str(version)}}


def place(given: Assignment | None = GIVEN) -> Object:
    told = assignment.text(given) if given else "?"
    meta = {"name": "hedgerow-shards", "uid": "p", "resourceVersion": "9"}
    return {"metadata": {**meta, "annotations": {ASSIGNMENT: told}}}


def seen(*leases: Object, ready: bool = False) -> Members:
    members = Members("hedgerow", "own", duration=15, deadline=10)
    members.snapshot(leases, 0.0)
    if ready:
        members.relisted(leases, 15.0)
    return members


GAVE = (HandedOver("other", "a-f", {"cronjob/jobs.batch": 17}),)


class TestSaid:
    def test_what_is_said_is_read(self):
        what = MemberStatus(
            "3.abc", 3, True, True, False, "h", ((1, 2.0),), {"lag": 0.5}, "0-a", GAVE
        )

        assert parse_status(status_text(what)) == (what, Slices(((0, 10),)))

    @pytest.mark.parametrize(
        "told",
        [
            "",
            "{",
            "[]",
            '{"epoch": -1}',
            '{"holds": "5"}',
            '{"holds": 5}',
            '{"facts": {"lag": "x"}}',
            '{"load": [[99999999, 1]]}',
            '{"ready": "yes"}',
            '{"load": [[1, 1e10]]}',
            '{"load": [[1, 1e999]]}',
            '{"load": [[1, NaN]]}',
            MemberStatus(holds=",".join(f"{2 * n:x}-{2 * n + 1:x}" for n in range(MOST_PARTS + 1))),
            MemberStatus(gave=(HandedOver("x", "5", {}),)),
            MemberStatus(gave=(HandedOver("x", "0-5", {"jobs": -1}),)),
            MemberStatus(gave=(HandedOver("x", "0-5", {}),) * (MOST_HEIRS + 1)),
            MemberStatus(
                gave=(HandedOver("x", "", dict.fromkeys(map(str, range(MOST_WATCHES + 1)), 1)),)
            ),
            " " * 70_000 + "{}",
        ],
    )
    def test_who_is_garbled_may_hold_everything(self, told):
        assert parse_status(told if isinstance(told, str) else status_text(told)) == (None, ALL)

    def test_as_many_ranges_as_there_may_be_are_read(self):
        ranges = ",".join(f"{2 * n:x}-{2 * n + 1:x}" for n in range(MOST_PARTS))

        assert len(parse_status(status_text(MemberStatus(holds=ranges)))[1].ranges) == MOST_PARTS


class TestSilence:
    def test_only_a_read_that_began_later_shows_it(self):
        other = lease("other", what=MemberStatus("3.x"))
        members = seen(other)
        [each] = members.others()

        members.relisted([other], 9.0)
        assert not members.has_stopped_sending(each)
        members.relisted([other], 10.0)
        assert (members.has_stopped_sending(each), members.is_gone(each)) == (True, False)
        members.relisted([other], 15.0)
        assert members.is_gone(each)
        assert list(members.others()) == []

    def test_a_change_begins_it_anew(self):
        members = seen(lease("other"))
        members.changed(lease("other", 2), 8.0)
        members.relisted([lease("other", 2)], 20.0)
        [each] = members.others()

        assert each.silent == 12

    def test_a_read_that_shows_another_state_shows_nothing(self):
        members = seen(lease("other"))
        members.relisted([lease("other", 2)], 20.0)
        [each] = members.others()

        assert each.silent == 0

    def test_who_is_told_of_again_unchanged_is_silent_still(self):
        members = seen(lease("other"))
        members.snapshot([lease("other")], 7.0)

        assert members.known["other"].since == 0

    def test_a_deleted_lease_is_remembered_for_as_long(self):
        members = seen(lease("other", what=MemberStatus(holds="0-5")))
        members.deleted(lease("other"), 3.0)
        members.deleted(lease("other"), 4.0)
        members.deleted(lease("nobody"), 4.0)
        [each] = members.others()
        assert (each.exists, each.since, each.holds) == (False, 3.0, Slices(((0, 5),)))

        members.relisted([], 17.0)
        assert list(members.others()) == [each]
        members.relisted([], 18.0)
        assert "other" not in members.known

    def test_a_lease_that_is_made_anew_is_back(self):
        members = seen(lease("other"))
        members.snapshot([], 3.0)
        members.changed(lease("other"), 4.0)

        assert members.known["other"].exists

    @pytest.mark.parametrize(
        ("holder", "holds", "gone"), [("", "", True), ("", "0-5", False), ("x", "", False)]
    )
    def test_who_said_so_is_gone(self, holder, holds, gone):
        members = seen(lease("other", what=MemberStatus(holds=holds), holder=holder))

        assert members.is_gone(members.known["other"]) is gone

    def test_it_says_when_a_read_would_help(self):
        members = Members("hedgerow", "own", duration=15, deadline=10)
        assert members.relist_due() is None
        members.snapshot([lease("other")], 1.0)
        assert members.relist_due() == 11
        members.relisted([lease("other")], 11.0)
        assert members.relist_due() == 16
        members.relisted([lease("other"), lease("new")], 16.0)
        assert members.relist_due() == 16.5
        assert not members.ready
        members.changed(lease("new"), 16.2)
        members.relisted([lease("other"), lease("new")], 16.5)
        assert members.ready
        assert members.relist_due() == 26.2


class TestSeen:
    def test_the_election_is_no_member_and_the_place_holds_the_assignment(self):
        members = seen(lease("hedgerow"), place(), lease("other"))

        assert members.known.keys() == {"other"}
        assert members.stored is not None
        assert members.stored.assignment == GIVEN
        assert members.epoch() == 3
        members.deleted(place(), 1.0)
        assert members.stored is None
        assert members.epoch() == 0

    def test_a_garbled_assignment_is_there_but_says_nothing(self):
        members = seen(place(None))

        assert members.stored is not None
        assert members.stored.assignment is None

    def test_the_living_are_ready_and_not_about_to_leave(self):
        ready = MemberStatus(ready=True)
        members = seen(
            lease("a", what=ready),
            lease("b", what=MemberStatus()),
            lease("c", what=MemberStatus(ready=True, leaving=True)),
            lease("d", what=ready, holder=""),
            lease("e", what="?"),
        )

        assert members.living() == {"a": ready}
        assert members.holds() == dict.fromkeys("abcd", NONE)

    def test_what_somebody_may_write_for_who_is_not_gone_is_served(self):
        own, other = MemberStatus(holds="0-8"), MemberStatus(holds="8-1000000")
        members = seen(lease("own", what=own), lease("other", what=other))
        assert members.unserved() == NONE  # who knows
        members.changed(lease("own", 2, own), 14.0)
        members.relisted([lease("own", 2, own), lease("other", what=other)], 15.0)

        assert members.is_gone(members.known["other"])
        assert members.unserved() == Slices(((8, ALL.ranges[0][1]),))

    def test_an_epoch_that_leaps_is_forged_and_those_of_the_gone_do_not_count(self):
        told = MemberStatus("7.x", 7)
        far = Assignment(8 + LEAP, "n", ("own",), ((0, 0),))
        members = seen(lease("other", what=told), place(far))
        assert (members.current(), members.epoch()) == (None, 7)
        near = Assignment(7 + LEAP, "n", ("own",), ((0, 0),))
        members.changed(place(near), 1.0)
        assert (members.current(), members.epoch()) == (near, 7 + LEAP)

        members.changed(place(), 2.0)
        members.relisted([lease("other", what=told)], 15.0)
        assert members.epoch() == 3


class TestCrowd:
    def test_with_more_leases_than_are_remembered_nothing_is_begun_until_they_are_gone(self):
        own = lease("own", what=MemberStatus(ready=True))
        many = [lease(f"m{n}", what=MemberStatus()) for n in range(MOST_KNOWN)]
        members = seen(*many)
        members.changed(own, 15.0)
        members.relisted([*many, own], 15.0)
        assert (members.ready, members.takes_part()) == (True, True)

        extra = lease("extra", what=MemberStatus())
        members.changed(extra, 16.0)
        members.relisted([*many, own, extra, place(), lease("hedgerow")], 17.0)
        assert (members.takes_part(), len(members.known)) == (False, MOST_KNOWN + 1)
        assert members.relist_due() == 27.0

        for each in many:
            members.deleted(each, 18.0)
        members.relisted([own, extra], 27.0)
        assert {*members.known} == {"own", "extra"}
        members.relisted([own, extra], 41.9)
        assert not members.takes_part()
        members.relisted([own, extra], 42.0)
        assert members.takes_part()

    def test_those_that_are_missed_count(self):
        members = seen(*(lease(f"m{n}", what=MemberStatus()) for n in range(MOST_KNOWN)))
        members.expect(["missed"], 1.0)

        assert members.is_crowded
        assert "missed" not in members.known


class TestTheDead:
    def test_their_leases_are_superfluous_in_the_end_and_a_read_is_due_then(self):
        gone, other = lease("gone", what=MemberStatus(), holder=""), lease("other")
        members = seen(lease("own"), other, gone)
        members.relisted([other, gone], 15.0)
        assert [each.name for each in members.superfluous()] == ["gone"]
        assert members.relist_due() == 15.0 * KEPT
        members.relisted([other, gone], 15.0 * KEPT)
        assert [each.name for each in members.superfluous()] == ["other", "gone"]
        assert members.relist_due() is None

        members.deleted(other, 15.0 * KEPT + 1)
        assert "other" not in members.known


class TestMember:
    def test_it_waits_for_who_is_missed(self):
        members = seen(place(), ready=True)
        member = Member(members)
        member.step(15.0)
        member.cached(member.wanted)
        members.changed(lease("own", what=MemberStatus(ready=True)), 15.0)

        assert not member.step(15.0)
        assert [each.name for each in members.others()] == ["other"]
        members.relisted([place()], 30.0)
        assert member.step(30.0).begin == Slices(((0, 10),))
        assert member.is_settled
        assert member.is_serving

    def test_it_waits_for_no_newcomer_but_until_it_is_seen_to_be_none(self):
        alone = Assignment(3, "n", ("own",), ((0, 0),))
        members = seen(
            place(alone), lease("new", what=MemberStatus()), lease("own", what=MemberStatus())
        )
        members.changed(lease("new", 2, MemberStatus()), 9.0)
        members.relisted(
            [place(), lease("new", 2, MemberStatus()), lease("own", what=MemberStatus())], 15.0
        )
        member = Member(members)
        member.step(15.0)
        assert members.ready
        assert member.wanted == NONE

        members.changed(lease("own", 2, MemberStatus(ready=True)), 15.1)
        member.step(15.1)
        member.cached(member.wanted)
        assert member.step(15.1).begin == ALL

    @pytest.mark.parametrize("then", [MemberStatus(ready=True), MemberStatus(holds="0-5"), "?"])
    def test_who_once_took_part_is_no_newcomer(self, then):
        members = seen(lease("other", what=then), lease("other2", what=MemberStatus()))
        members.changed(lease("other", 2, MemberStatus()), 1.0)
        members.changed(lease("other2", 2, MemberStatus()), 1.0)
        members.expect(["other2"], 2.0)

        assert [each.name for each in members.participants()] == ["other", "other2"]

    def test_it_gives_nothing_up_while_it_cannot_tell_who_is_garbled(self):
        members = seen(place(), ready=True)
        member = Member(members)
        member.begun = ALL
        members.changed(lease("other", what="?"), 16.0)

        assert not member.step(16.0)
        members.changed(lease("other", 2, MemberStatus(GIVEN.token, filled=True)), 17.0)
        assert member.step(17.0).drain == (Slices(((10, ALL.ranges[0][1]),)),)
        assert not member.is_done
        member.end()
        assert member.is_done

    def test_it_gives_nothing_to_one_that_leaves(self):
        members = seen(place(), ready=True)
        member = Member(members)
        member.begun = ALL
        members.changed(
            lease("other", 1, MemberStatus(GIVEN.token, filled=True, leaving=True)), 16.0
        )

        assert not member.step(16.0)
        assert member.token == GIVEN.token
        members.changed(lease("other", 2, MemberStatus(GIVEN.token, filled=True)), 17.0)
        assert member.step(17.0).drain

    def test_it_tells_each_heir_what_was_written_last_until_the_next_assignment(self):
        members = seen(place(Assignment(3, "n", ("a", "b", "own"), ((0, 0), (10, 1), (20, 2)))))
        member = Member(members)
        member.step(1.0)
        for begin, last in ((0, {"x": 1, "y": 5}), (5, {"x": 3}), (10, None), (12, {"x": 2})):
            member.drained(Slices(((begin, begin + 1),)), last)

        assert member.status().gave == (
            HandedOver("a", "0-1,5-6", {"x": 3, "y": 5}),
            HandedOver("b", "c-d", {"x": 2}),
        )
        members.changed(place(replace(GIVEN, epoch=4)), 2.0)
        member.step(2.0)
        assert member.status().gave == ()

    def test_it_tells_as_many_heirs_as_a_lease_has_room_for(self):
        names = tuple(f"m{number:02}" for number in range(MOST_HEIRS + 2))
        members = seen(place(Assignment(3, "n", names, tuple((n, n) for n in range(len(names))))))
        member = Member(members)
        member.drained(ALL, {"x": 1})
        member.step(1.0)
        for _ in range(2):
            member.drained(ALL, {"x": 1})

        assert [each.to for each in member.status().gave] == [*names[:MOST_HEIRS]]
        assert parse_status(status_text(member.status()))[0] == member.status()

    @pytest.mark.parametrize(
        "more", [{f"w{number}": 1 for number in range(MOST_WATCHES)}, {"n" * (LONGEST_NAME + 1): 1}]
    )
    def test_it_tells_nothing_for_which_a_lease_has_no_room(self, more):
        members = seen(place(Assignment(3, "n", ("a", "own"), ((0, 0), (20, 1)))))
        member = Member(members)
        member.step(1.0)
        member.drained(Slices(((0, 1), (30, 31))), {"x": 1})
        member.drained(Slices(((1, 2),)), more)

        assert member.status().gave == (HandedOver("a", "0-1", {"x": 1}),)

    def test_it_tells_it_until_the_heir_has_begun(self):
        members = seen(
            lease("a", what=MemberStatus(holds="0-1")), place(Assignment(3, "n", ("a",), ((0, 0),)))
        )
        member = Member(members)
        for _ in range(2):
            member.step(1.0)
            member.drained(Slices(((0, 1),)), {"x": 1})
        member.drained(Slices(((1, 2),)), {"x": 1})
        assert [each.slices for each in member.status().gave] == ["0-2"]
        members.changed(lease("a", 2, MemberStatus(holds="0-5")), 2.0)
        member.step(2.0)
        assert member.status().gave == ()

    def test_after_a_restore_it_believes_no_version(self):
        gave = HandedOver("own", "0-5", {"x": 1})
        own, told = (
            MemberStatus(GIVEN.token, 3, ready=True),
            MemberStatus(GIVEN.token, 3, gave=(gave,)),
        )
        members = seen(lease("own", what=own), lease("other", what=told), place(), ready=True)
        member = Member(members)
        member.step(15.0)
        member.cached(ALL)
        member.rewound()

        assert [each.last for each in member.step(15.0).quiet] == [{}]
        member.drained(Slices(((20, 30),)), {"x": 1})
        assert member.status().gave == ()

    def test_what_a_silent_member_holds_is_filled_once_that_is_gone(self):
        own, theirs = (
            MemberStatus(GIVEN.token, 3, ready=True),
            MemberStatus(GIVEN.token, 3, ready=True, holds="0-5"),
        )
        members = seen(lease("own", what=own), lease("other", what=theirs), place(), ready=True)
        leases = lease("own", 2, own), lease("other", 2, theirs), place()
        for each in leases:
            members.changed(each, 15.0)
        member = Member(members)
        wanted, filled = list[Slices](), list[bool]()
        for now in (15.0, 25.0, 30.0):
            members.relisted(leases, now)
            member.step(now)
            member.cached(Slices(((5, 10),)))
            wanted.append(member.wanted)
            filled.append(member.status().filled)

        assert wanted == [Slices(((0, 10),)), Slices(((5, 10),)), Slices(((0, 10),))]
        assert filled == [False, True, False]

    def test_what_nobody_holds_is_filled_once_all_have_adopted_the_same(self):
        own, theirs = MemberStatus(GIVEN.token, 3, ready=True), MemberStatus("2.old", 2, ready=True)
        members = seen(lease("own", what=own), lease("other", what=theirs), place(), ready=True)
        members.changed(lease("other", 2, theirs), 15.0)
        member = Member(members)
        member.step(15.0)
        assert member.wanted == NONE

        members.changed(lease("other", 3, MemberStatus(GIVEN.token, 3, ready=True)), 16.0)
        member.step(16.0)
        assert member.wanted == Slices(((0, 10),))
        member.cached(member.wanted)
        assert member.step(17.0).quiet == (QuietSlices(Slices(((0, 10),)), 16.0),)

    def test_it_is_not_filled_while_another_may_hold_what_it_lacks(self):
        """The former member of a slice may have counted as gone long ago whom we only suspect."""
        own, theirs = (
            MemberStatus(GIVEN.token, 3, ready=True),
            MemberStatus("2.old", 2, ready=True, holds="0-5"),
        )
        leases = lease("own", what=own), lease("dead", what=theirs), place()
        members = seen(*leases)
        member = Member(members)
        members.relisted(leases, 10.0)
        member.step(10.0)
        member.cached(ALL)

        assert not member.status().filled

    def test_it_believes_who_tells_of_this_assignment_what_was_written_last(self):
        own, had = MemberStatus(GIVEN.token, 3, ready=True), HandedOver("own", "0-5", {"x": 1})
        told = MemberStatus(GIVEN.token, 3, gave=(had, HandedOver("b", "5-6", {"x": 2})))
        other = MemberStatus("2.old", 2, gave=(HandedOver("own", "5-6", {"x": 1}),))
        leases = (
            lease("own", what=own),
            lease("other", what=told),
            lease("b", what=other, holder=""),
        )
        members = seen(*leases, place(), ready=True)
        member = Member(members)
        member.step(15.0)
        member.cached(ALL)

        orders = member.step(15.0)
        assert orders.begin == Slices(((0, 10),))
        assert orders.quiet == (
            QuietSlices(Slices(((0, 10),)), 15.0),
            QuietSlices(Slices(((0, 5),)), 15.0, {"x": 1}),
        )
        assert orders.quiet[0].without(Slices(((2, 3),))).slices == Slices(((0, 2), (3, 10)))

    def test_it_knows_since_when_nobody_has_written(self):
        own, theirs = (
            MemberStatus(GIVEN.token, 3, ready=True),
            MemberStatus(GIVEN.token, 3, holds="0-5"),
        )
        members = seen(lease("own", what=own), lease("other", what=theirs), place(), ready=True)
        members.changed(lease("other", 2, theirs), 14.0)
        member = Member(members)
        member.step(15.0)
        members.changed(lease("other", 3, MemberStatus(GIVEN.token, 3, holds="0-2")), 16.0)
        member.step(16.0)
        member.cached(ALL)

        assert member.step(17.0).quiet == (
            QuietSlices(Slices(((5, 10),)), 15.0),
            QuietSlices(Slices(((2, 5),)), 16.0),
        )

    def test_an_assignment_that_cannot_be_read_changes_nothing(self):
        members = seen(place(None), ready=True)
        member = Member(members, "r")
        member.step(15.0)

        assert member.status() == MemberStatus(ready=True, revision="r")
        assert not member.is_settled


class TestAssigner:
    def test_beyond_the_last_epoch_it_writes_nothing(self):
        last = MemberStatus(ready=True, epoch=assignment.LAST_EPOCH, token="x")
        members = seen(lease("own", what=last), ready=True)
        members.changed(lease("own", 2, last), 15.0)

        assert Assigner(members).next(20.0, "n") is None

    def test_what_one_adopted_who_is_gone_overtakes_nothing(self):
        own = MemberStatus(GIVEN.token, 3, ready=True)
        gone = lease("gone", what=MemberStatus("9.x", 9, ready=True))
        members = seen(lease("own", what=own), gone, place(Assignment(3, "n", ("own",), ((0, 0),))))
        members.changed(lease("own", 2, MemberStatus(members.current().token, 3, ready=True)), 14.0)
        assigner = Assigner(members)
        members.relisted([gone], 14.5)
        before = assigner._is_overtaken(members.current())
        members.relisted([gone], 15.0)

        assert before
        assert assigner.next(16.0, "n") is None

    def test_it_writes_once_and_waits_until_that_is_seen(self):
        members = seen(lease("own", what=MemberStatus(ready=True)), ready=True)
        members.changed(lease("own", 2, MemberStatus(ready=True)), 15.0)
        assigner = Assigner(members)
        write = assigner.next(15.0, "n")
        assert write is not None
        assert (write.why, write.assignment.epoch, write.assignment.members) == (
            "there is none",
            1,
            ("own",),
        )
        assigner.sending(write, 15.0)

        assert assigner.next(15.5, "n") is None
        assert assigner.next(17.0, "n") is None
        again = assigner.next(21.0, "n")
        assert again is not None
        assigner.sending(again, 21.0)
        members.changed(place(again.assignment), 21.1)
        assert assigner.next(30.0, "n") is None

    @pytest.mark.parametrize("there", [None, Assignment(1, "n", ("own",), ((0, 0),))])
    def test_whoever_is_about_to_be_ready_is_waited_for_but_not_for_ever(self, there):
        ready = MemberStatus(there.token if there else "", ready=True)
        members = seen(lease("own", what=ready), lease("b", what=MemberStatus()), ready=True)
        for name in ("own", "a"):
            members.changed(lease(name, 2, ready), 15.0)
        if there:
            members.changed(place(there), 15.0)
        members.changed(lease("b", 2), 15.0)
        members.changed(lease("b", 3, MemberStatus()), 15.0)
        assigner = Assigner(members)

        assert assigner.next(15.0, "n") is None
        assert assigner.next(18.0, "n") is None
        late = assigner.next(20.0, "n")
        assert late is not None
        assert late.assignment.members == ("a", "own")
        members.changed(lease("b", 4, MemberStatus(ready=True)), 20.0)
        assigner.next(20.0, "n")
        both = assigner.next(21.0, "n")
        assert both is not None
        assert both.assignment.members == ("a", "b", "own")

    def test_however_many_come_one_after_the_other_a_join_waits_only_so_long(self):
        members = seen(lease("own", what=MemberStatus(ready=True)), ready=True)
        members.changed(lease("own", 2, MemberStatus(ready=True)), 15.0)
        members.changed(lease("first", 1, MemberStatus()), 15.0)
        assigner, now = Assigner(members), 15.0
        while assigner.next(now, "n") is None:
            now += 1.0
            members.changed(lease(f"m{now}", 1, MemberStatus()), now)
            members.changed(lease(f"m{now}", 2, MemberStatus(ready=True)), now)
            members.changed(lease(f"next{now}", 1, MemberStatus()), now)
            members.changed(lease("own", int(now), MemberStatus(ready=True)), now)

        assert now == 15.0 + LONGEST_GATHERED

    @pytest.mark.parametrize("how", ["it failed", "who came has gone"])
    def test_how_long_a_join_waited_is_forgotten_with_it(self, how):
        members = seen(lease("own", what=MemberStatus(ready=True)), ready=True)
        members.changed(lease("own", 2, MemberStatus(ready=True)), 15.0)
        current = Assignment(1, "n", ("own",), ((0, 0),))
        members.changed(place(current), 15.0)
        assigner = Assigner(members)
        members.changed(lease("a", 1, MemberStatus(ready=True)), 15.0)
        assert assigner.next(15.0, "n") is None
        if how == "it failed":
            assigner.forget()
        else:
            members.changed(lease("a", 2, MemberStatus(), holder=""), 15.5)
            assert assigner.next(15.5, "n") is None

        members.changed(lease("own", 3, MemberStatus(ready=True)), 50.0)
        members.changed(lease("b", 1, MemberStatus(ready=True)), 50.0)
        assert assigner.next(50.0, "n") is None
        assert assigner.next(51.0, "n") is not None

    def test_a_load_that_cannot_be_divided_is_left(self):
        load = ((5, 4.0), (6, 4.0), (7, 4.0))
        said = MemberStatus(ready=True, load=load)
        members = seen(
            lease("own", what=said), lease("other", what=MemberStatus(ready=True)), ready=True
        )
        for name in ("own", "other"):
            share = "0-7" if name == "own" else "7-1000000"
            given = Assignment(3, "n", ("other", "own"), ((0, 1), (7, 0)))
            what = MemberStatus(given.token, 3, ready=True, filled=True, holds=share, load=load)
            members.changed(lease(name, 2, what), 15.0)
        members.changed(place(given), 15.0)

        assert Assigner(members).next(100.0, "n") is None

    def test_before_anybody_knows_a_load_it_goes_by_what_is_expected(self):
        said = MemberStatus(ready=True)
        members = seen(lease("own", what=said), lease("other", what=said), ready=True)
        members.changed(lease("own", 2, said), 15.0)
        members.changed(lease("other", 2, said), 15.0)
        assigner = Assigner(members)
        assigner.expected = tuple((point, 1.0) for point in range(40, 60))

        write = assigner.next(16.0, "n")
        assert write is not None
        parts = [write.assignment.of(name) for name in ("own", "other")]
        assert [sum(point in part for point in range(40, 60)) for part in parts] == [10, 10]

    def test_what_a_member_left_weighs_what_it_said_of_it(self):
        given = Assignment(3, "n", ("gone", "other", "own"), ((0, 0), (40, 1), (80, 2)))
        load = {name: tuple((at + each, 1.0) for each in range(0, 40, 2))
                for name, at in (("gone", 0), ("other", 40), ("own", 80))}  # fmt: skip
        said = {
            name: MemberStatus(given.token, 3, ready=True, filled=True, load=load[name])
            for name in load
        }
        members = seen(*(lease(name, what=what) for name, what in said.items()), ready=True)
        for name, what in said.items():
            members.changed(
                lease(name, 2, what, **({"holder": ""} if name == "gone" else {})), 15.0
            )
        members.changed(place(given), 15.0)

        write = Assigner(members).next(20.0, "n")
        assert write is not None
        loads = [
            sum(point in write.assignment.of(name) for each in load.values() for point, _ in each)
            for name in ("other", "own")
        ]
        assert sum(loads) == 60
        assert max(loads) <= 35
