"""What is known of one resource besides the caches."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from hedgerow.fields.ownership import Leaf
from hedgerow.objects import ObjectRef
from hedgerow.plan.conditions import Problem
from hedgerow.plan.input import ChildHistory
from hedgerow.plan.status import said
from hedgerow.plan.writes import Write
from hedgerow.runtime.refusals import STATUS
from hedgerow.runtime.state import (
    MOST_EVENTS_SENT,
    MOST_ONCE,
    MOST_REPEATS,
    MOST_WRITES,
    RECHECK_NAME,
    REPEATED_WITHIN,
    PastWrite,
    ResourceState,
)
from hedgerow_schemas.builtin import Service

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
DEMO = ("Service", "demo")
PROBLEM = Problem("Rejected", "no")


def state(**status: Any) -> ResourceState:
    return ResourceState.of("u", said({"status": status}))


def write(*restores: str) -> Write:
    leaves = tuple(Leaf(path, (), "lost", 1, None, (), equal=False) for path in restores)
    return Write(ObjectRef(Service.api, "ns", "demo"), {}, "mark", create=False, restores=leaves)


class TestBeginning:
    @pytest.mark.parametrize(
        ("status", "read_before_create"),
        [
            ({}, False),
            ({"conditions": [{"type": "Ready", "status": "False", "reason": "NameTaken"}]}, True),
            ({"conditions": [{"type": "Ready", "status": "True", "reason": "Serving"}]}, False),
            ({"contested": [{"object": "o", "path": ".spec.selector", "manager": "m"}]}, False),
            ({"contested": [{"object": "o", "path": ".metadata.labels", "manager": "m"}]}, True),
            ({"conditions": "nonsense"}, False),
        ],
    )
    def test_names_are_read_first_when_the_status_tells_of_what_no_watch_shows(
        self, status, read_before_create
    ):
        assert state(**status).read_before_create is read_before_create


class TestNames:
    def test_taken_names_are_read_every_half_minute(self):
        known = state()

        assert known.may_read_names(NOW)
        assert not known.may_read_names(NOW + RECHECK_NAME - timedelta(seconds=1))
        assert known.may_read_names(NOW + RECHECK_NAME)
        assert not known.may_read_names(NOW + RECHECK_NAME)

    def test_a_clock_that_was_ahead_for_a_while_does_not_keep_them_from_being_read(self):
        known = state()
        assert known.may_read_names(NOW + timedelta(days=365))

        assert known.may_read_names(NOW)

    def test_taken_names_are_told(self):
        known = state()
        known.history = {DEMO: ChildHistory(taken=True), ("Service", "other"): ChildHistory()}

        assert known.taken == (DEMO,)


class TestWrites:
    def test_a_refusal_is_remembered_until_a_write_is_taken(self):
        known = state()
        known.refusals.record(DEMO, "mark", PROBLEM, NOW, draw=0.5)

        assert known.refusals.children == {DEMO}
        known.accept(write(), NOW)
        assert known.refusals.children == frozenset()

    def test_what_was_restored_is_remembered_with_its_time(self):
        known = state()
        known.accept(write(".a"), NOW)
        known.accept(write(".b"), NOW + timedelta(seconds=1))

        assert known.history[DEMO].restored == {".a": NOW, ".b": NOW + timedelta(seconds=1)}

    def test_another_declaration_forgets_what_was_restored(self):
        known = state()
        known.renew(1)
        known.accept(write(".a"), NOW)
        known.renew(1)
        assert known.history[DEMO].restored
        known.renew(2)
        assert known.history[DEMO].restored == {}

    @pytest.mark.parametrize("create", [True, False])
    @pytest.mark.parametrize("once", [True, False])
    def test_what_was_made_once_is_remembered_though_it_may_be_gone_soon(self, create, once):
        known = state()
        known.accept(replace(write(), create=create, once=once), NOW)
        known.learn({}, ())

        assert set(known.created_once) == ({DEMO} if create and once else set())


class TestLearning:
    def test_what_planning_learned_is_taken_over(self):
        known = state()
        known.learn({DEMO: ChildHistory(taken=True)}, ())

        assert known.taken == (DEMO,)

    def test_what_is_gone_is_forgotten(self):
        known = state()
        known.history, known.pruned = {DEMO: ChildHistory()}, {DEMO: "u"}
        known.recent_writes = {DEMO: (PastWrite("g", NOW),), STATUS: (PastWrite("g", NOW),)}
        known.learn({}, ())

        assert (known.history, known.pruned, list(known.recent_writes)) == ({}, {}, [STATUS])

    def test_of_a_child_that_is_there_everything_is_kept(self):
        known = state()
        known.history = {DEMO: ChildHistory(restored={".a": NOW})}
        known.pruned = {DEMO: "u"}
        known.learn({}, {DEMO})

        assert known.history[DEMO] == ChildHistory(restored={".a": NOW})
        assert known.pruned == {DEMO: "u"}

    def test_a_declared_childs_repetitions_are_counted_while_it_is_away(self):
        known = state()
        known.recent_writes = {DEMO: (PastWrite("g", NOW),)}
        known.learn({DEMO: ChildHistory()}, ())

        assert known.recent_writes == {DEMO: (PastWrite("g", NOW),)}


class TestRepetition:
    def tired(self) -> ResourceState:
        known = state()
        for _ in range(MOST_REPEATS):
            assert not known.is_undone_too_often(DEMO, "g", NOW)
            known.note(DEMO, "g", NOW)
        return known

    def test_the_same_write_is_made_only_so_often(self):
        assert self.tired().is_undone_too_often(
            DEMO, "g", NOW + REPEATED_WITHIN - timedelta(seconds=1)
        )

    def test_after_a_while_it_may_be_made_again(self):
        assert not self.tired().is_undone_too_often(DEMO, "g", NOW + REPEATED_WITHIN)

    def test_what_was_made_under_a_clock_that_was_ahead_does_not_count(self):
        assert not self.tired().is_undone_too_often(DEMO, "g", NOW - timedelta(days=365))

    def test_another_write_is_counted_by_itself_and_ends_no_count(self):
        known = self.tired()

        assert not known.is_undone_too_often(DEMO, "h", NOW)
        assert not known.is_undone_too_often(("Service", "other"), "g", NOW)
        known.note(DEMO, "h", NOW)
        assert known.is_undone_too_often(DEMO, "g", NOW)

    def test_writes_that_never_repeat_are_bounded_too(self):
        known = state()
        for number in range(MOST_WRITES):
            assert not known.is_undone_too_often(DEMO, str(number), NOW)
            known.note(DEMO, str(number), NOW)

        assert known.is_undone_too_often(DEMO, "new", NOW)
        assert not known.is_undone_too_often(DEMO, "new", NOW + REPEATED_WITHIN)

    @pytest.mark.parametrize(("generation", "field_policy"), [(2, ""), (1, "mine")])
    def test_a_new_declaration_is_tried_anew(self, generation, field_policy):
        known = state()
        known.renew(1)
        for _ in range(MOST_REPEATS):
            known.note(DEMO, "g", NOW)
        known.renew(1)
        assert known.is_undone_too_often(DEMO, "g", NOW)

        known.renew(generation, field_policy)

        assert not known.is_undone_too_often(DEMO, "g", NOW)

    def test_a_status_may_go_back_and_forth(self):
        known = state()
        for number in range(MOST_WRITES):
            assert not known.is_undone_too_often(STATUS, str(number % 2), NOW)
            known.note(STATUS, str(number % 2), NOW)

        assert known.is_undone_too_often(STATUS, "1", NOW)
        assert not known.is_undone_too_often(STATUS, "2", NOW)
        assert not known.is_undone_too_often(STATUS, "1", NOW + REPEATED_WITHIN)

    def test_a_status_that_says_the_same_in_a_row_is_undone_each_time(self):
        known = state()
        for _ in range(MOST_REPEATS):
            known.note(STATUS, "g", NOW)

        assert known.is_undone_too_often(STATUS, "g", NOW)
        known.note(STATUS, "h", NOW)
        assert not known.is_undone_too_often(STATUS, "g", NOW)

    def test_what_is_remembered_is_bounded(self):
        known = self.tired()
        for day in range(100):
            known.note(DEMO, "g", NOW + timedelta(days=day))

        assert len(known.recent_writes[DEMO]) == 1


class TestTelling:
    def test_a_field_of_a_holder_is_told_once_in_a_while(self):
        known = state()

        assert known.may_send_event(DEMO, ".a", "helm", NOW)
        assert not known.may_send_event(
            DEMO, ".a", "helm", NOW + REPEATED_WITHIN - timedelta(seconds=1)
        )
        assert known.may_send_event(DEMO, ".a", "helm", NOW + REPEATED_WITHIN)

    def test_what_was_told_under_a_clock_that_was_ahead_is_told_again(self):
        known = state()
        assert known.may_send_event(DEMO, ".a", "helm", NOW + timedelta(days=365))

        assert known.may_send_event(DEMO, ".a", "helm", NOW)

    def test_another_field_holder_or_child_is_told_by_itself(self):
        known = state()

        told = [
            known.may_send_event(child, path, manager, NOW)
            for child in (DEMO, ("Service", "other"))
            for path in (".a", ".b")
            for manager in ("helm", "kubectl")
        ]

        assert all(told)

    def test_what_is_remembered_is_bounded_and_the_oldest_goes(self):
        known = state()
        for number in range(MOST_EVENTS_SENT + 1):
            assert known.may_send_event(DEMO, f".{number}", "helm", NOW)

        assert len(known.events_sent) == MOST_EVENTS_SENT
        assert known.may_send_event(DEMO, ".0", "helm", NOW)
        assert not known.may_send_event(DEMO, f".{MOST_EVENTS_SENT}", "helm", NOW)


def test_only_the_newest_of_what_was_made_once_are_remembered():
    known = state()
    for number in range(MOST_ONCE + 5):
        made = write()
        ref = replace(made.ref, name=f"job-{number}")
        known.accept(replace(made, ref=ref, create=True, once=True), NOW)

    assert len(known.created_once) == MOST_ONCE
    assert "job-4" not in {name for _, name in known.created_once}


def test_no_more_children_are_remembered_for_an_event_than_fit_in_one():
    known = ResourceState("u", read_before_create=False)
    for number in range(2 * MOST_ONCE):
        known.note_created(ObjectRef(Service.api, "ns", f"d{number}"))
        known.note_created(ObjectRef(Service.api, "ns", f"d{number}"))

    assert len(known.created) == MOST_ONCE
    assert f"Service/d{2 * MOST_ONCE - 1}" in known.created
