"""Conditions, as kstatus and kubectl wait read them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.plan.conditions import LONGEST_MESSAGE, Problem, conclude, condition, ready, stamp
from hedgerow_schemas.base import Condition, ContestedField

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
GOOD = ready(True, "Serving", "Blue is available")
BAD = ready(False, "Unavailable", "Blue: 0 of 1 replicas are available")
FIELD = ContestedField(object="Service/demo", path=".spec.selector", manager="kubectl-edit")
WAITING = Problem("WaitingForDeletion", "it is being deleted", stalled=False)
REJECTED = Problem("Rejected", "it is invalid")
FORBIDDEN = Problem("Forbidden", "it is not allowed")


def kstatus(conditions: Iterable[Condition]) -> str:
    """Read conditions as sigs.k8s.io/cli-utils' kstatus does, at a current generation."""
    said = {condition.type: condition.status for condition in conditions}
    if said.get("Reconciling") == "True":
        return "InProgress"
    if said.get("Stalled") == "True":
        return "Failed"
    return {"True": "Current", "False": "InProgress", "Unknown": "InProgress"}[said["Ready"]]


def by_type(conditions: Iterable[Condition]) -> dict[str, str]:
    return {c.type: f"{c.status}/{c.reason}" for c in conditions}


class Case(NamedTuple):
    """What is composed, contested and wrong; the conditions of that, and how kstatus reads them."""

    name: str
    given: tuple[Condition | ContestedField | Problem, ...]
    says: str
    reads: str

    def of(self, kind: type[Any]) -> tuple[Any, ...]:
        return tuple(one for one in self.given if isinstance(one, kind))


AVAILABLE = Condition(type="Available", status="False", reason="X")
STALLED = Condition(type="Stalled", status="True", reason="BadSpec")
CASES = [
    Case("all well", (GOOD,), "Ready=True/Serving", "Current"),
    Case("not ready yet", (BAD,),
         "Ready=False/Unavailable Reconciling=True/Unavailable", "InProgress"),
    Case("contested", (GOOD, FIELD),
         "Ready=False/FieldConflict Contested=True/FieldConflict", "InProgress"),
    Case("waiting by itself", (GOOD, WAITING),
         "Ready=False/WaitingForDeletion Reconciling=True/WaitingForDeletion", "InProgress"),
    Case("somebody has to act", (GOOD, REJECTED),
         "Ready=False/Rejected Stalled=True/Rejected", "Failed"),
    Case("what stalls outweighs what waits", (GOOD, WAITING, REJECTED, FORBIDDEN),
         "Ready=False/Rejected Stalled=True/Rejected", "Failed"),
    Case("contested and stalled", (BAD, FIELD, FORBIDDEN),
         "Ready=False/Forbidden Contested=True/FieldConflict Stalled=True/Forbidden", "Failed"),
    Case("contested and waiting", (GOOD, FIELD, WAITING),
         "Ready=False/WaitingForDeletion Contested=True/FieldConflict", "InProgress"),
    Case("compose itself is stalled", (BAD, STALLED),
         "Ready=False/Unavailable Stalled=True/BadSpec", "Failed"),
    Case("conditions of the controller's own are kept", (AVAILABLE, GOOD),
         "Ready=True/Serving Available=False/X", "Current"),
    Case("nothing composed", (), "Ready=True/Settled", "Current"),
    Case("nothing composed, and a problem", (REJECTED,),
         "Ready=False/Rejected Stalled=True/Rejected", "Failed"),
]  # fmt: skip


class TestConclude:
    @pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
    def test_what_is_concluded_and_how_kstatus_reads_it(self, case):
        concluded = conclude(case.of(Condition), case.of(ContestedField), case.of(Problem))

        assert by_type(concluded) == dict(one.split("=") for one in case.says.split())
        assert kstatus(concluded) == case.reads

    def test_a_contested_message_names_the_field_and_who_holds_it(self):
        (message,) = {c.message for c in conclude((GOOD,), (FIELD,), ())}

        assert message == "Service/demo: .spec.selector is held by kubectl-edit"

    def test_several_contested_fields_are_counted(self):
        (message,) = {c.message for c in conclude((GOOD,), (FIELD,) * 3, ())}

        assert message.endswith("(and 2 more)")

    def test_problems_are_told_each_once(self):
        concluded = conclude((GOOD,), (), (REJECTED, FORBIDDEN, REJECTED))

        assert {c.message for c in concluded} == {"it is invalid; it is not allowed"}

    def test_messages_are_cut_at_what_a_condition_may_hold(self):
        long = "x" * 40000
        field = FIELD.model_copy(update={"path": long})
        own = condition("Available", False, "Unavailable", long)

        concluded = conclude(
            (GOOD, own), (field,), (Problem("Rejected", long),), long, ignored=(long,)
        )

        assert max(len(c.message) for c in concluded) == LONGEST_MESSAGE
        assert [len(c.message) for c in concluded if c.type != "Contested"] == [LONGEST_MESSAGE] * 5

    def test_terms_that_mean_nothing_are_told_by_ready_alone(self):
        concluded = conclude((GOOD,), (FIELD,), (), unmatched=("a: b", "c: d"))
        messages = {c.type: c.message for c in concluded}

        told = "no field matches a: b, c: d"
        assert messages["Ready"] == f"{messages['Contested']}; {told}"

    def test_they_are_cut_and_what_is_wrong_besides_is_told_before(self):
        problem = Problem("Rejected", "x" * 40000)
        (message,) = {
            c.message
            for c in conclude((GOOD,), (), (problem,), unmatched=("y" * 4000,))
            if c.type == "Ready"
        }

        assert len(message) == LONGEST_MESSAGE
        assert message.count("y") > 200

    @given(
        st.lists(st.sampled_from([GOOD, BAD]), max_size=1),
        st.lists(st.just(FIELD), max_size=2),
        st.lists(st.sampled_from([WAITING, REJECTED, FORBIDDEN]), max_size=3),
    )
    def test_each_type_stands_once_and_ready_is_true_only_when_nothing_is_wrong(
        self, composed, contested, problems
    ):
        concluded = conclude(composed, contested, problems)
        said = by_type(concluded)

        assert len(said) == len(concluded)
        wrong = bool(contested or problems or BAD in composed)
        assert said["Ready"].startswith("False" if wrong else "True")
        assert not {"Reconciling", "Stalled"} <= said.keys()
        assert wrong or said.keys() == {"Ready"}


class TestStamp:
    OLD = GOOD.model_copy(
        update={"last_transition_time": NOW - timedelta(hours=1), "observed_generation": 1}
    )

    @pytest.mark.parametrize(
        ("now", "before", "changed"),
        [
            (GOOD, None, NOW),
            (ready(True, "Other", "in other words"), OLD, OLD.last_transition_time),
            (BAD, OLD, NOW),
            (GOOD, BAD.model_copy(update={"type": "Other"}), NOW),
            (GOOD, GOOD, NOW),
        ],
        ids=["a new one", "another reason", "another status", "one that came back", "no time yet"],
    )
    def test_its_time_is_that_of_the_last_change_of_its_status(self, now, before, changed):
        at = NOW.replace(microsecond=123456)
        (stamped,) = stamp((now,), (before,) if before else (), 3, at)

        assert (stamped.last_transition_time, stamped.observed_generation) == (changed, 3)
        assert stamped.reason == now.reason

    def test_what_was_stamped_is_stamped_the_same_again(self):
        first = stamp((GOOD, BAD.model_copy(update={"type": "X"})), (), 1, NOW)

        assert stamp(first, first, 1, NOW + timedelta(days=1)) == first
