"""Which Events a pass gives rise to."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import pytest

from hedgerow.contract import Desired, Notice, SourceNotice
from hedgerow.fields.ownership import Holder, Leaf
from hedgerow.objects import ObjectRef
from hedgerow.plan import status as statuses
from hedgerow.plan.conditions import Problem, ready, stalled
from hedgerow.plan.conflict_messages import listed
from hedgerow.plan.status import StatusReport
from hedgerow.runtime.events.notices import (
    claimed,
    conflicts,
    due,
    restored,
    settled,
    taken_over,
)
from hedgerow.runtime.events.recorder import LONGEST_NOTE
from hedgerow_schemas.base import Condition, ContestedField, Status
from hedgerow_schemas.bluegreen import BlueGreen
from hedgerow_schemas.builtin import Service

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
OWNER = ObjectRef(BlueGreen.api, "b", "demo", "uid")
FIELD = ContestedField(
    object="Service/demo",
    path=".spec.selector",
    reason="OtherValue",
    declared="blue",
    live="grey",
    manager="kubectl",
    since=NOW,
)
REJECTED = Problem("Rejected", "it is bad")
STALLED = {"type": "Stalled", "status": "True", "reason": "Rejected", "message": "it is bad"}


def told(
    *problems: Problem,
    events: tuple[Notice, ...] = (),
    status: Any = None,
    ignored: tuple[str, ...] = (),
) -> list[tuple[str, str, str]]:
    found = due(
        Desired(events=events), problems, statuses.said({"status": status}), ignored=ignored
    )
    return [(notice.type, notice.reason, occurrence) for notice, occurrence in found]


class TestDue:
    def test_a_new_stall_is_told_once(self):
        assert told(REJECTED) == [("Warning", "Rejected", "")]
        assert told(REJECTED, status={"conditions": [STALLED]}) == []

    def test_another_reason_to_stall_is_told(self):
        status = {"conditions": [STALLED | {"message": "other"}]}

        assert len(told(REJECTED, status=status)) == 1

    def composed(self, *conditions: Condition, before: Any = None) -> list[tuple[str, str]]:
        desired = Desired(status=Status(conditions=conditions))
        found = due(desired, (), statuses.said({"status": before}))
        return [(notice.type, notice.reason) for notice, _ in found]

    def test_a_stall_that_compose_concludes_is_told_once(self):
        verdict = stalled("Rejected", "it is bad")

        assert self.composed(*verdict) == [("Warning", "Rejected")]
        assert self.composed(*verdict, before={"conditions": [STALLED]}) == []

    def test_what_compose_warns_of_by_itself_is_not_told_twice(self):
        verdict = Status(conditions=stalled("RolledBack", "it was not available"))
        own = Notice("RolledBack", "the Service is back on Blue", "Warning")
        others = (
            Notice("RolledBack", "no warning"),
            SourceNotice("RolledBack", "of another", "Warning", source=Service({})),
        )

        assert list(due(Desired(status=verdict, events=(own,)), (), Status())) == [(own, "")]
        assert len(list(due(Desired(status=verdict, events=others), (), Status()))) == 3

    def test_what_compose_concludes_else_is_not_told(self):
        assert self.composed(ready(False, "Waiting", "soon")) == []

    def test_a_problem_outweighs_the_stall_that_compose_concludes(self):
        desired = Desired(status=Status(conditions=stalled("Unparseable", "junk")))
        found = list(due(desired, (REJECTED,), Status()))

        assert [(notice.reason, notice.note) for notice, _ in found] == [("Rejected", "it is bad")]

    def test_a_term_without_effect_is_told_once(self):
        line = "hedgerow.dev/claim: x has no effect"
        known = {"type": "AnnotationIgnored", "status": "True", "reason": "NoEffect"}

        assert told(ignored=(line,)) == [("Warning", "AnnotationIgnored", "")]
        assert told(ignored=(line,), status={"conditions": [known | {"message": line}]}) == []

    def test_what_only_waits_is_not_told(self):
        assert told(Problem("WaitingForDeletion", "wait", stalled=False)) == []

    def test_what_compose_tells_is_passed_on(self):
        assert told(events=(Notice("Routed", "moved"),)) == [("Normal", "Routed", "")]

    def test_a_status_that_cannot_be_read_remembers_nothing(self):
        assert len(told(REJECTED, status={"conditions": "none"})) == 1


def many(number: int, **more: Any) -> tuple[ContestedField, ...]:
    return tuple(FIELD.model_copy(update={"path": f".data.k{n}", **more}) for n in range(number))


def said(
    *contested: ContestedField,
    before: tuple[ContestedField, ...] = (),
    count: int = 0,
    dated: bool = True,
) -> Any:
    """Return the news of these, where a status lists `before` and counts so many."""
    status = {"contested": [old.wire() for old in before], "contestedCount": count or len(before)}
    report = StatusReport(None, contested, listed(contested, before))
    return list(conflicts(OWNER, report, {}, statuses.said({"status": status}), lambda _: dated))


class TestConflicts:
    def test_a_new_one_is_told_with_its_values_its_remedies_and_the_time_that_it_began(self):
        (conflict_event,) = said(FIELD)

        assert (conflict_event.object, conflict_event.since) == ("Service/demo", NOW.isoformat())
        assert (conflict_event.notice.type, conflict_event.notice.reason) == (
            "Warning",
            "FieldConflict",
        )
        assert conflict_event.notice.note == (
            "Service/demo: .spec.selector: you declare blue, it is grey; held by kubectl; left as"
            " it is. To leave it as it is: `kubectl annotate bluegreens.app.demo.kakao.com demo"
            " 'hedgerow.dev/yield=Service/demo: spec.selector' -n b`. To take it back: `hedgerow"
            " adopt Service/demo --from kubectl --field spec.selector -n b`"
        )
        assert conflict_event.notice.note.startswith(conflict_event.words)

    def test_one_of_unknown_age_is_told_too(self):
        (conflict_event,) = said(FIELD.model_copy(update={"since": None}))

        assert conflict_event.since == ""

    def test_one_whose_holder_has_no_time_is_of_unknown_age(self):
        (conflict_event,) = said(FIELD, dated=False)

        assert conflict_event.since == ""

    def test_another_holder_of_the_same_field_is_told(self):
        assert len(said(FIELD, before=(FIELD.model_copy(update={"manager": "other"}),))) == 1

    def test_fields_of_one_object_are_told_together_whoever_holds_them(self):
        one, other = many(1), many(2, manager="helm", since=None)
        (conflict_event,) = said(*one, other[1])

        assert (conflict_event.object, conflict_event.since) == ("Service/demo", NOW.isoformat())
        assert conflict_event.notice.note == (
            "Service/demo: .data.k0: you declare blue, it is grey; held by kubectl; .data.k1: you"
            " declare blue, it is grey; held by helm; left as they are. What to do: `hedgerow"
            " owners Service/demo --contested -n b`"
        )
        assert conflict_event.notice.note.startswith(conflict_event.words)

    def test_fields_of_several_objects_are_told_apart(self):
        events = said(*many(2), *many(3, object="Deployment/demo"))

        assert [event.object for event in events] == ["Service/demo", "Deployment/demo"]

    @pytest.mark.parametrize("number", [20, 50])
    def test_of_many_a_note_has_as_many_as_it_has_room_for_and_the_number_of_the_rest(self, number):
        (conflict_event,) = said(*many(number))
        note = conflict_event.notice.note
        shown = note.count("you declare")

        assert LONGEST_NOTE - 100 < len(note.encode()) <= LONGEST_NOTE
        assert f"; and {number - shown} more; left as they are. What to do: " in note

    def test_those_that_the_status_tells_of_are_not_told_again(self):
        assert said(*many(20), before=many(20)) == []
        (conflict_event,) = said(*many(12), before=many(10))

        assert ".data.k9" not in conflict_event.notice.note
        assert ".data.k10" in conflict_event.notice.note

    def test_what_the_status_only_counts_is_not_told(self):
        everything = (*many(1150), *many(5, object="Service/other"))
        before = listed(everything, ())

        assert [event.object for event in said(*everything)] == ["Service/demo"]
        assert said(*everything, before=before, count=len(everything)) == []

    def test_a_note_that_would_be_cut_leaves_out_the_remedies(self):
        (conflict_event,) = said(FIELD.model_copy(update={"path": ".data." + "ü" * 400}))

        assert len(conflict_event.notice.note.encode()) <= LONGEST_NOTE
        assert conflict_event.notice.note.endswith(
            "`hedgerow owners Service/demo --contested -n b`"
        )

    def test_what_is_contested_no_more_is_known(self):
        live = {"status": {"contested": [FIELD.wire(), *(f.wire() for f in many(2))]}}

        assert settled(many(1), statuses.said(live)) == (FIELD, many(2)[1])


class TestWords:
    def test_against_another_hedgerow_the_remedy_is_the_command_that_has_it_let_go(self):
        other = {"manager": "hedgerow-two-bluegreen", "operation": "Apply"}
        (conflict_event,) = said(FIELD.model_copy(update=other))

        assert "held by hedgerow-two-bluegreen" in conflict_event.notice.note
        assert "`hedgerow release --instance two`" in conflict_event.notice.note
        assert "hedgerow.dev/claim" not in conflict_event.notice.note

    REF = ObjectRef(Service.api, "ns", "demo")

    def leaf(self, live: Any = None, number: int = 0) -> Leaf:
        holders = (Holder("helm", "Apply"),)
        field_path = ("f:spec", f"f:x{number}")
        return Leaf(f".spec.x{number}", field_path, "lost", "a", live, holders, equal=False)

    def test_a_restored_field_is_named(self):
        notice = restored(self.REF, [self.leaf()])

        assert (notice.type, notice.reason) == ("Warning", "FieldRestored")
        assert notice.note == "Service/demo: .spec.x0 had been removed; it was put back"

    def test_one_that_only_lost_its_holder_is_not_said_to_have_been_removed(self):
        notice = restored(self.REF, [self.leaf("b")])

        assert notice.note == (
            "Service/demo: .spec.x0 had no holder and was b; it was set to a again"
        )

    def test_several_fields_share_a_note_that_the_server_takes(self):
        two = restored(self.REF, [self.leaf(), self.leaf("b", number=1)])
        forced = claimed(self.REF, [self.leaf(number=number) for number in range(2)])
        taken = taken_over(self.REF, [".spec.a", ".spec.b"])

        assert two.note == (
            "Service/demo: .spec.x0 had been removed; it was put back; .spec.x1 had no holder and"
            " was b; it was set to a again"
        )
        assert forced.note == (
            "Service/demo: .spec.x0 was taken from helm by force; .spec.x1 was taken from helm by"
            " force, as hedgerow.dev/claim asks"
        )
        assert taken.note.startswith("Service/demo: nobody held .spec.a; .spec.b, and the API")

    @pytest.mark.parametrize("tell", [restored, claimed])
    def test_of_hundreds_as_many_are_named_as_fit(self, tell):
        notice = tell(self.REF, [self.leaf(number=number) for number in range(300)])

        assert LONGEST_NOTE - 100 < len(notice.note.encode()) <= LONGEST_NOTE
        assert re.search(r"; and 2\d\d more", notice.note)

    def test_a_path_that_is_too_long_alone_is_cut(self):
        notice = taken_over(self.REF, ["." + "\U0001f33f" * 1000, ".spec.b"])

        assert LONGEST_NOTE - 4 <= len(notice.note.encode()) <= LONGEST_NOTE
        assert "…; and 1 more, and the API server refuses" in notice.note
