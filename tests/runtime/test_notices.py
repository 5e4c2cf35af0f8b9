"""Which Events a pass gives rise to."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from hedgerow.core.conditions import Problem, ready, stalled
from hedgerow.core.contract import Desired, Notice
from hedgerow.core.meta import ObjectRef
from hedgerow.runtime.notices import conflict, due, restored
from hedgerow_schemas.base import Condition, ContestedField, Status
from hedgerow_schemas.builtin import Service

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
FIELD = ContestedField(object="Service/demo", path=".spec.selector", manager="kubectl", since=NOW)
REJECTED = Problem("Rejected", "it is bad")
STALLED = {"type": "Stalled", "status": "True", "reason": "Rejected", "message": "it is bad"}


def told(
    *problems: Problem,
    contested: tuple[ContestedField, ...] = (),
    events: tuple[Notice, ...] = (),
    status: Any = None,
) -> list[tuple[str, str, str]]:
    found = due(Desired(events=events), contested, problems, {"status": status})
    return [(notice.type, notice.reason, occurrence) for notice, occurrence in found]


class TestDue:
    def test_a_new_conflict_is_told_with_the_time_that_it_began(self):
        assert told(contested=(FIELD,)) == [("Warning", "FieldConflict", NOW.isoformat())]

    def test_a_conflict_of_unknown_age_is_told_too(self):
        field = FIELD.model_copy(update={"since": None})

        assert told(contested=(field,)) == [("Warning", "FieldConflict", "")]

    def test_a_conflict_that_the_status_tells_of_is_not_told_again(self):
        status = {"contested": [FIELD.wire()]}

        assert told(contested=(FIELD,), status=status) == []

    def test_another_holder_of_the_same_field_is_told(self):
        status = {"contested": [FIELD.wire() | {"manager": "somebody"}]}

        assert len(told(contested=(FIELD,), status=status)) == 1

    def test_a_new_stall_is_told_once(self):
        assert told(REJECTED) == [("Warning", "Rejected", "")]
        assert told(REJECTED, status={"conditions": [STALLED]}) == []

    def test_another_reason_to_stall_is_told(self):
        status = {"conditions": [STALLED | {"message": "other"}]}

        assert len(told(REJECTED, status=status)) == 1

    def composed(self, *conditions: Condition, before: Any = None) -> list[tuple[str, str]]:
        desired = Desired(status=Status(conditions=conditions))
        found = due(desired, (), (), {"status": before})
        return [(notice.type, notice.reason) for notice, _ in found]

    def test_a_stall_that_compose_concludes_is_told_once(self):
        verdict = stalled("Rejected", "it is bad")

        assert self.composed(*verdict) == [("Warning", "Rejected")]
        assert self.composed(*verdict, before={"conditions": [STALLED]}) == []

    def test_what_compose_concludes_else_is_not_told(self):
        assert self.composed(ready(False, "Waiting", "soon")) == []

    def test_a_problem_outweighs_the_stall_that_compose_concludes(self):
        desired = Desired(status=Status(conditions=stalled("Unparseable", "junk")))
        found = list(due(desired, (), (REJECTED,), {}))

        assert [(notice.reason, notice.note) for notice, _ in found] == [("Rejected", "it is bad")]

    def test_what_only_waits_is_not_told(self):
        assert told(Problem("WaitingForDeletion", "wait", stalled=False)) == []

    def test_what_compose_tells_is_passed_on(self):
        assert told(events=(Notice("Routed", "moved"),)) == [("Normal", "Routed", "")]

    def test_a_status_that_cannot_be_read_remembers_nothing(self):
        assert len(told(REJECTED, status={"conditions": "none"})) == 1


class TestWords:
    def test_against_another_hedgerow_the_remedy_is_the_command_that_has_it_let_go(self):
        told = conflict(
            FIELD.model_copy(update={"manager": "hedgerow-two-bluegreen", "operation": "Apply"})
        )

        assert "held by hedgerow-two-bluegreen" in told.note
        assert "`hedgerow release --instance two --all`" in told.note
        assert "hedgerow.dev/claim" not in told.note

    def test_a_restored_field_is_named(self):
        notice = restored(ObjectRef(Service.api, "ns", "demo"), ".spec.selector")

        assert (notice.type, notice.reason) == ("Warning", "FieldRestored")
        assert notice.note == "Service/demo: .spec.selector had been removed; it was put back"
