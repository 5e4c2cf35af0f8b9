"""What is remembered of each try, and when the next one is made."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.fields.ownership import Leaf
from hedgerow.objects import ChildId, ObjectRef
from hedgerow.plan.conditions import Problem
from hedgerow.plan.ledger import (
    FIRST_WAIT,
    LONGEST_WAIT,
    MOST_TOLD,
    MOST_UNDONE,
    MOST_UNTOLD,
    MOST_WRITES,
    PACE,
    RECHECK_NAME,
    WINDOW,
    EntryState,
    Ledger,
    LedgerEntry,
)
from hedgerow.plan.writes import STATUS, Deletion, Write
from hedgerow_schemas.builtin import Service

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
PROBLEM = Problem("Refused", "no")
DEMO = ChildId("Service", "demo")
OTHER = ChildId("Service", "other")


def write(
    intent: str = "a", content: str = "1", *restores: str, target: ChildId = DEMO, **how: bool
) -> Write:
    leaves = tuple(Leaf(path, (), "lost", 1, None, (), equal=False) for path in restores)
    return Write(
        ObjectRef(Service.api, "ns", target.name),
        {},
        create=how.get("create", False),
        content=content,
        declared=intent,
        restores=leaves,
    )


def deletion(uid: str = "u", declared: str = "") -> Deletion:
    return Deletion(ObjectRef(Service.api, "ns", "demo", uid), "7", declared)


def refused(ledger: Ledger, step: Write, now: datetime = NOW, **how: float) -> LedgerEntry:
    pair = step.intent_digest, step.content
    return ledger.refuse(step.id, pair, PROBLEM, now, draw=how.get("draw", 1.0), **_after(how))


def _after(how: dict[str, float]) -> dict[str, float]:
    return {"after": how["after"]} if "after" in how else {}


def undone(times: int, intent: str = "a") -> tuple[Ledger, datetime]:
    """Return a ledger whose target was undone so often, each time once it was due; and the time."""
    ledger, now = Ledger(), NOW
    for number in range(times + 1):
        step = write(intent, str(number))
        while ledger.waits(step, now):
            now += SECOND
        ledger.succeed(step, now, f"{number}'")
    return ledger, now


class TestRefused:
    def waits(self, number: int, **how: float) -> list[float]:
        ledger, now, waits = Ledger(), NOW, []
        for _ in range(number):
            again = refused(ledger, write(), now, **how).again or now
            waits.append((again - now).total_seconds())
            now = again
        return waits

    def test_the_wait_doubles_up_to_minutes(self):
        waits = self.waits(12)

        assert waits[:4] == [1, 2, 4, 8]
        assert waits[-2:] == [LONGEST_WAIT, LONGEST_WAIT]

    def test_half_of_the_wait_is_chance(self):
        assert self.waits(2, draw=0.0) == [FIRST_WAIT / 2, FIRST_WAIT]

    @pytest.mark.parametrize(("after", "seconds"), [(0.2, 0.5), (60, 60), (1e9, LONGEST_WAIT)])
    def test_it_is_not_shorter_than_the_server_asks_nor_longer_than_minutes(self, after, seconds):
        assert self.waits(1, draw=0.0, after=after) == [seconds]

    @pytest.mark.parametrize(
        ("step", "seconds", "waits"),
        [
            pytest.param(write(), 0, True, id="the same pair"),
            pytest.param(write("b"), 0, False, id="another intent"),
            pytest.param(write(content="2"), 0, False, id="another content"),
            pytest.param(write(target=OTHER), 0, False, id="another target"),
            pytest.param(write(), 1, False, id="when it is due"),
            pytest.param(write(), -31_536_000, False, id="after the clock was set back"),
        ],
    )
    def test_the_same_pair_is_not_tried_before_its_time(self, step, seconds, waits):
        ledger = Ledger()
        refused(ledger, write())

        assert ledger.waits(step, NOW + seconds * SECOND) is waits

    @pytest.mark.parametrize("content", ["0", "2"])
    def test_another_content_begins_anew(self, content):
        ledger = Ledger()
        for _ in range(5):
            refused(ledger, write())

        assert refused(ledger, write(content=content)).attempts == 1

    def test_a_child_of_which_something_else_is_intended_begins_anew(self):
        ledger = Ledger()
        for _ in range(5):
            refused(ledger, write())
        ledger.keep([write("b")])

        assert not ledger.waits(write("b"), NOW)
        assert refused(ledger, write("b")).attempts == 1

    def test_a_status_that_is_another_at_each_look_waits_from_its_second_refusal(self):
        ledger, sent = Ledger(), []
        for second in range(60):
            now, status = NOW + second * SECOND, write(str(second), target=STATUS)
            if not ledger.waits(status, now):
                sent.append(second)
                refused(ledger, status, now)

        assert sent == [0, 1, 3, 7, 15, 31]

    def test_it_is_told_until_it_succeeds(self):
        ledger = Ledger()
        refused(ledger, write())
        assert ledger.refused == {DEMO}
        assert ledger.problem(write(), NOW + 60 * SECOND) == PROBLEM

        ledger.succeed(write(), NOW, "2")

        assert (ledger.refused, ledger.problem(write(), NOW)) == (frozenset(), None)

    def test_what_is_not_planned_any_more_is_forgotten(self):
        ledger = Ledger()
        for target in (DEMO, OTHER):
            refused(ledger, write(target=target))
        ledger.refuse(STATUS, ("a", "1"), None, NOW, draw=1.0)

        ledger.keep([write("b"), write(target=OTHER)])

        assert ledger.refused == {OTHER}
        assert ledger.in_state(EntryState.REFUSED) == (OTHER, STATUS)

    def test_the_first_that_is_due_says_when_to_look_again(self):
        ledger = Ledger()
        assert ledger.due_in({DEMO, STATUS}, NOW) is None
        ledger.refuse(STATUS, ("a", "1"), None, NOW, draw=1.0, after=30)
        refused(ledger, write(), after=10)

        assert ledger.due_in({DEMO, STATUS}, NOW) == 10 * SECOND
        assert ledger.due_in({STATUS}, NOW) == 30 * SECOND
        assert ledger.due_in({DEMO}, NOW + 60 * SECOND) == FIRST_WAIT / 2 * SECOND

    def test_what_was_settled_before_is_still_known(self):
        ledger = Ledger()
        ledger.succeed(write("a", "1", ".x"), NOW, "2")
        refused(ledger, write("a", "3"))

        entry = ledger.entry(DEMO)
        assert (entry.settled, entry.restored) == ("a", {".x": NOW})


class TestSilent:
    def test_another_one_of_the_kind_is_in_a_row_until_each_has_an_answer(self):
        ledger = Ledger()
        assert not ledger.note_answer(DEMO, is_silent=True)
        assert not ledger.note_answer(ChildId("Secret", "demo"), is_silent=True)
        assert ledger.note_answer(OTHER, is_silent=True)
        ledger.succeed(write(), NOW)
        assert not ledger.note_answer(OTHER, is_silent=False)
        assert not ledger.note_answer(DEMO, is_silent=True)


class TestSettled:
    def test_a_success_settles_the_pair_of_the_answer(self):
        ledger = Ledger()
        ledger.succeed(write("a", "1"), NOW, "2")

        entry = ledger.entry(DEMO)
        assert entry.is_settled("a", "2")
        assert not entry.is_settled("a", "3")
        assert not entry.is_settled("b", "2")

    def test_without_the_content_of_the_answer_it_is_judged_again(self):
        ledger = Ledger()
        ledger.succeed(write(content=""), NOW)

        assert not ledger.entry(DEMO).is_settled("a", "")

    def test_what_was_restored_is_known_with_its_time(self):
        ledger = Ledger()
        ledger.succeed(write("a", "1", ".a"), NOW)
        ledger.succeed(write("a", "2", ".b"), NOW + SECOND)

        assert ledger.entry(DEMO).restored == {".a": NOW, ".b": NOW + SECOND}

    def test_what_planning_found_is_taken_in_and_what_is_gone_forgotten(self):
        ledger = Ledger()
        for target in (DEMO, OTHER):
            ledger.succeed(write(target=target), NOW)
        ledger.entries[STATUS] = LedgerEntry(settled="s")
        found = ledger.entry(OTHER).judged("b", "9")

        ledger.learn({OTHER: found}, ())

        assert set(ledger.entries) == {OTHER, STATUS}
        assert ledger.entry(OTHER).is_settled("b", "9")

    def test_a_child_that_was_deleted_is_not_deleted_again(self):
        ledger = Ledger()
        ledger.deleted(deletion(), NOW)

        assert ledger.waits(deletion(), NOW + WINDOW)
        assert ledger.problem(deletion(), NOW) is None
        assert not ledger.waits(deletion("another"), NOW)


class TestUndone:
    def test_the_first_is_mended_at_once_then_the_wait_doubles(self):
        found: list[float] = []
        for times in range(1, 6):
            ledger, now = undone(times)
            again = ledger.entry(DEMO).again or now
            found.append((again - now).total_seconds())

        assert not undone(0)[0].waits(write("a", "x"), NOW)
        assert found == [1, 2, 4, 8, 16]

    def test_so_does_a_child_that_is_made_anew_each_time(self):
        ledger, now = undone(3)

        assert ledger.waits(deletion(declared="a"), now)
        assert not ledger.waits(deletion(declared="b"), now)

    @pytest.mark.parametrize(
        ("times", "stalled", "told"),
        [(1, False, "is written again"), (MOST_UNDONE, True, "written 8 times, and undone each")],
    )
    def test_meanwhile_it_is_told(self, times, stalled, told):
        ledger, now = undone(times)

        problem = ledger.problem(write("a", "x"), now)

        assert problem is not None
        assert (problem.reason, problem.stalled) == ("NotSettling", stalled)
        assert told in problem.message

    def test_another_intent_does_not_wait_and_ends_it(self):
        ledger, now = undone(4)
        assert not ledger.waits(write("b", "x"), now)
        ledger.succeed(write("b", "x"), now, "y")

        assert not ledger.waits(write("a", "z"), now)

    def test_it_is_forgotten_after_ten_minutes(self):
        ledger, now = undone(6)
        later = now + WINDOW

        ledger.succeed(write("a", "x"), later, "y")

        assert ledger.entry(DEMO).undone == 1

    @pytest.mark.parametrize("generation", [True, False])
    def test_a_user_who_changes_the_resource_ends_it(self, generation):
        ledger, now = undone(8)
        ledger.succeed(write("a", "x", ".a"), now, "y")

        ledger.renew(generation=generation)

        assert not ledger.waits(write("a", "z"), now)
        assert ledger.entry(DEMO).undone == 0
        assert ledger.entry(DEMO).restored == ({} if generation else {".a": now})

    def test_writes_of_different_intents_are_bounded_too(self):
        ledger = Ledger()
        for number in range(MOST_WRITES):
            step = write(str(number), str(number))
            assert not ledger.waits(step, NOW + number * SECOND)
            ledger.succeed(step, NOW + number * SECOND, str(number))
        more, now = write("more", "more"), NOW + MOST_WRITES * SECOND

        problem = ledger.problem(more, now)

        assert ledger.waits(more, now)
        assert problem is not None
        assert (problem.reason, problem.stalled) == ("NotSettling", True)
        assert not ledger.waits(more, now + PACE)
        ledger.succeed(more, now + PACE)
        assert ledger.waits(write("again", "again"), now + PACE + SECOND)
        assert len(ledger.entry(DEMO).written) == MOST_WRITES
        ledger.succeed(more, NOW + 2 * WINDOW)
        assert not ledger.waits(write("again", "again"), NOW + 2 * WINDOW)

    def test_under_a_clock_that_was_ahead_it_does_not_count(self):
        ledger, now = undone(8)

        assert not ledger.waits(write("a", "x"), now - timedelta(days=365))


class TestTaken:
    def test_a_taken_name_is_due_every_half_minute(self):
        ledger = Ledger()
        ledger.record_taken(DEMO, NOW)

        assert ledger.in_state(EntryState.TAKEN) == (DEMO,)
        assert ledger.due_in((), NOW) == RECHECK_NAME
        assert not ledger.entry(DEMO).is_due(NOW + RECHECK_NAME - SECOND)
        assert ledger.entry(DEMO).is_due(NOW + RECHECK_NAME)
        assert ledger.entry(DEMO).is_due(NOW - timedelta(days=365))

    def test_once_it_is_free_the_child_is_created_at_once(self):
        ledger = Ledger()
        ledger.record_taken(DEMO, NOW)
        ledger.clear(DEMO)

        assert not ledger.waits(write(create=True), NOW)


class TestTelling:
    def test_an_event_is_told_once_in_ten_minutes(self):
        ledger, event = Ledger(), (DEMO, ".a", "helm")

        assert ledger.may_tell(event, NOW)
        assert not ledger.may_tell(event, NOW + WINDOW - SECOND)
        assert ledger.may_tell(event, NOW + WINDOW)

    def test_under_a_clock_that_was_ahead_it_is_told_again(self):
        ledger = Ledger()
        assert ledger.may_tell("x", NOW + timedelta(days=365))

        assert ledger.may_tell("x", NOW)

    def test_another_one_is_told_by_itself_and_a_refused_one_again(self):
        ledger = Ledger()

        assert all(ledger.may_tell((path, by), NOW) for path in [".a", ".b"] for by in "xy")
        ledger.untell((".a", "x"))
        assert ledger.may_tell((".a", "x"), NOW)

    def test_what_is_remembered_is_bounded_and_the_oldest_goes(self):
        ledger = Ledger()
        for number in range(MOST_TOLD + 1):
            assert ledger.may_tell(number, NOW)

        assert len(ledger) == MOST_TOLD
        assert ledger.may_tell(0, NOW)
        assert not ledger.may_tell(MOST_TOLD, NOW)

    def test_no_more_children_are_noted_for_an_event_than_fit_in_one(self):
        ledger = Ledger()
        for number in range(2 * MOST_UNTOLD):
            ledger.note_created(f"Service/d{number}")
            ledger.note_created(f"Service/d{number}")

        assert len(ledger.untold) == MOST_UNTOLD
        assert f"Service/d{2 * MOST_UNTOLD - 1}" in ledger.untold


@dataclass
class Play:
    """A child on a server, and an operator that goes by the ledger; each act is one letter.

    `content` counts what the child was: 0 while it is not there. `stored` is the intent that it was
    made from, if it is still as declared. `admission` respells whatever is applied. `answer` is
    what becomes of the next request, and `writes` are the times of those that were answered.
    """

    ledger: Ledger = field(default_factory=Ledger)
    now: datetime = NOW
    intent: int = 0
    content: int = 0
    stored: int | None = None
    admission: bool = False
    answer: str = ""
    tried: dict[tuple[str, str], datetime] = field(default_factory=dict[tuple[str, str], datetime])
    writes: list[datetime] = field(default_factory=list[datetime])
    _contents: int = 0

    def act(self, letter: str) -> None:
        """Let something happen."""
        match letter:
            case "i":
                self.intent += 1
            case "u":
                self._undo()
            case "l" if self.content:
                self._changed()
            case "d":
                self.content, self.stored = 0, None
            case "a":
                self.admission = not self.admission
            case "r" | "?":
                self.answer = letter
            case "R":
                self.ledger = Ledger()
                self.tried.clear()
            case "s":
                self.now += SECOND
            case "m":
                self.now += 60 * SECOND
            case _:
                self.operate()

    def _changed(self) -> None:
        self._contents += 1
        self.content = self._contents

    def _undo(self) -> None:
        if self.content:
            self._changed()
            self.stored = None

    def operate(self) -> None:
        """Make a pass: judge what is there, write what is due."""
        intent, content = str(self.intent), str(self.content or "")
        step = write(intent, content, create=not self.content)
        entry = self.ledger.entry(DEMO)
        if entry.is_settled(intent, content):
            self.ledger.keep(())
            return
        if self.content and self.stored == self.intent and not self.admission:
            self.ledger.learn({DEMO: entry.judged(intent, content)}, {DEMO})
            self.ledger.keep(())
            return
        self.ledger.keep([step])
        if not self.ledger.waits(step, self.now):
            self._send(step)

    def _send(self, step: Write) -> None:
        pair = step.intent_digest, step.content
        if pair in self.tried and not step.create:
            assert self.now - self.tried[pair] >= FIRST_WAIT / 2 * SECOND, "tried before its time"
        answer, self.answer = self.answer, ""
        if answer == "r":
            self.tried[pair] = self.now
            refused(self.ledger, step, self.now, draw=0.0)
            return
        self._changed()
        self.stored = self.intent
        if answer == "?":
            self.ledger.note_answer(DEMO, is_silent=True)
        else:
            self.writes.append(self.now)
            self.ledger.succeed(step, self.now, str(self.content))


@given(st.text("iuldar?Rsmppp", max_size=60))
def test_whatever_happens_the_child_is_as_declared_in_the_end_and_nothing_loops(acts: str):
    play = Play()
    for letter in acts:
        play.act(letter)
        before = len(play.writes)
        play.operate()
        play.operate()
        assert len(play.writes) <= before + 1, "one thing that happened is mended by one write"

    play.answer = ""
    for _ in range(3):
        play.now += LONGEST_WAIT * SECOND
        play.operate()

    assert play.content
    assert play.stored == play.intent
    made = len(play.writes)
    for _ in range(3):
        play.now += WINDOW
        play.operate()
    assert len(play.writes) == made, "what is settled is not written"


@given(st.integers(1, 20))
def test_who_undoes_it_each_time_is_answered_less_and_less_often(seconds: int):
    play = Play()
    for _ in range(3600 // seconds):
        play.act("u")
        play.now += seconds * SECOND
        play.operate()

    in_ten = [sum(abs(one - other) < WINDOW for other in play.writes) for one in play.writes]
    assert max(in_ten) <= 2 * MOST_UNDONE
    assert play.writes[-1] > play.now - 2 * LONGEST_WAIT * SECOND, "it is never given up"
