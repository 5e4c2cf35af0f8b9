"""Election: the rules one by one, then whatever may happen at once."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, precondition, rule

from hedgerow.kube.errors import Conflict, Stale
from hedgerow.runtime.leaderelection.record import (
    Election,
    Read,
    Remove,
    Seen,
    Take,
    Timing,
    Wait,
    micro_time,
    seen,
)
from runtime.leases import Leases

WALL = datetime(2026, 1, 1, tzinfo=UTC)
USUAL = Timing()
OTHERS = Seen("u", "7", "other", 15, "then", "then", 3)
MINE = "me"


def election(found: Seen | None = OTHERS, now: float = 0.0) -> Election:
    """Return a candidate that has looked."""
    candidate = Election(MINE, USUAL)
    candidate.looked(found, now)
    return candidate


def answer(step: Any, version: str = "8") -> Seen:
    """Return the Lease as the server has it after an apply."""
    spec = step.spec
    return Seen(
        step.meta.get("uid", "u"),
        version,
        spec["holderIdentity"],
        spec["leaseDurationSeconds"],
        spec["acquireTime"],
        spec["renewTime"],
        spec["leaseTransitions"],
    )


def leader(now: float = 0.0) -> Election:
    """Return one whose apply, sent at `now`, was answered at once."""
    candidate = election(Seen("u", "7", vacant=True), now)
    step = candidate.next(now, WALL)
    candidate.looked(answer(step), now)
    assert candidate.remaining(now) == 10
    return candidate


class TestTiming:
    def test_the_defaults_are_those_of_client_go(self):
        assert (USUAL.duration, USUAL.deadline, USUAL.retry) == (15, 10, 2)

    @pytest.mark.parametrize("duration", [1.0, 3.0, 180.0])
    def test_whatever_its_duration_the_rule_of_client_go_holds(self, duration):
        made = Timing(duration)

        assert made.duration > made.deadline > 1.2 * made.retry > 0
        assert made.margin == made.duration - made.deadline

    def test_a_lease_is_rather_longer_than_shorter(self):
        assert Timing(2.1).seconds == 3


class TestReading:
    def test_what_is_there_is_read_and_what_is_not_is_empty(self):
        spec = {
            "holderIdentity": "a",
            "leaseDurationSeconds": 15,
            "acquireTime": "t1",
            "renewTime": "t2",
            "leaseTransitions": 4,
        }
        meta = {"uid": "u", "resourceVersion": "9"}

        assert seen(None) is None
        assert seen({"metadata": meta, "spec": spec}) == Seen("u", "9", "a", 15, "t1", "t2", 4)
        assert seen({"metadata": meta, "spec": {"leaseDurationSeconds": "x"}}).seconds == 0

    @pytest.mark.parametrize(
        ("spec", "vacant"),
        [
            ({}, True),
            ({"holderIdentity": "", "renewTime": "t"}, True),
            ({"holderIdentity": "a", "renewTime": "t"}, False),
            ({"renewTime": "t"}, False),
        ],
    )
    def test_it_is_vacant_when_given_up_or_never_held(self, spec, vacant):
        assert seen({"metadata": {}, "spec": spec}).vacant is vacant

    def test_instants_have_six_decimals_and_are_in_utc(self):
        east = timezone(timedelta(hours=2))
        assert micro_time(datetime(2026, 1, 1, 2, tzinfo=east)) == "2026-01-01T00:00:00.000000Z"


class TestTaking:
    def test_nothing_is_asked_before_a_look(self):
        assert Election(MINE, USUAL).next(0, WALL) == Read()

    @pytest.mark.parametrize(
        ("found", "wait"),
        [
            (None, 15),
            (OTHERS, 15),
            (Seen("u", "7", "other", 60), 60),
            (Seen("u", "7", "other", 1), 15),  # an edit; nobody of us writes less than he means
            (Seen("u", "7", "", 15), 15),
            (Seen("u", "7", vacant=True), 0),
        ],
    )
    def test_it_is_free_when_nothing_changed_for_its_duration(self, found, wait):
        candidate = election(found, 100)
        holder = found.holder if found else ""

        for now in range(100, 100 + wait):
            assert candidate.next(now + 0.9, WALL) == Wait(holder)
            candidate.looked(found, now + 0.95)
        assert isinstance(candidate.next(100 + wait, WALL), Take)

    @pytest.mark.parametrize(
        "change",
        [
            Seen("u", "8", "other", 15, "then", "a year ago", 3),
            Seen("u", "8", "third", 15),
            Seen("v", "8", "other", 15),
            Seen("v", "8", vacant=True),  # made anew: not given up by whom we know to hold it
            None,
        ],
    )
    def test_any_change_begins_the_wait_anew(self, change):
        candidate = election(OTHERS, 0)
        candidate.looked(change, 14)

        assert isinstance(candidate.next(28.9, WALL), Wait)
        assert isinstance(candidate.next(29, WALL), Take)

    def test_what_is_given_up_before_our_eyes_is_taken_at_once(self):
        candidate = election(OTHERS, 0)
        candidate.looked(Seen("u", "8", "", 1, renewed="x", transitions=3, vacant=True), 5)

        step = candidate.next(5, WALL)
        assert isinstance(step, Take)
        assert step.meta == {"uid": "u", "resourceVersion": "8"}

    def test_the_lease_reads_as_client_go_writes_it(self):
        at = "2026-01-01T00:00:00.000000Z"
        assert election(OTHERS).next(15, WALL) == Take(
            {"uid": "u", "resourceVersion": "7"},
            {
                "holderIdentity": MINE,
                "leaseDurationSeconds": 15,
                "acquireTime": at,
                "renewTime": at,
                "leaseTransitions": 4,
            },
        )

    def test_one_that_is_not_there_is_created_and_never_taken_over(self):
        step = election(None).next(15, WALL)

        assert isinstance(step, Take)
        assert step.meta == {"resourceVersion": "1"}
        assert step.spec["leaseTransitions"] == 0

    def test_one_at_a_time_is_asked(self):
        candidate = election(OTHERS)
        candidate.next(15, WALL)

        assert candidate.next(15, WALL) == Read()


class TestLeading:
    def test_it_lasts_from_before_the_apply_was_sent(self):
        candidate = election(Seen("u", "7", vacant=True), 0)
        step = candidate.next(1, WALL)
        candidate.looked(answer(step), 4)

        assert candidate.remaining(4) == 7
        assert candidate.remaining(11) == 0
        assert candidate.remaining(999) == 0

    def test_a_renewal_keeps_since_when_and_how_often(self):
        candidate = leader()
        before = candidate.seen
        step = candidate.next(2, WALL + timedelta(seconds=2))
        candidate.looked(answer(step, "9"), 2)

        assert before is not None
        assert isinstance(step, Take)
        assert step.spec["acquireTime"] == before.acquired
        assert step.spec["renewTime"] == "2026-01-01T00:00:02.000000Z"
        assert step.spec["leaseTransitions"] == before.transitions
        assert candidate.remaining(2) == 10

    def test_a_read_tells_that_a_lost_answer_was_yes(self):
        candidate = leader()
        step = candidate.next(2, WALL)
        assert candidate.next(5, WALL) == Read()
        candidate.looked(answer(step, "9"), 5)

        assert candidate.remaining(5) == 7

    def test_and_that_it_was_no(self):
        candidate = leader()
        before = candidate.seen
        candidate.next(2, WALL)
        candidate.looked(before, 5)

        assert candidate.remaining(5) == 5

    def test_a_late_arrival_is_told_from_the_one_after_it(self):
        candidate = leader()
        first = candidate.next(2, WALL)
        candidate.looked(candidate.seen, 3)
        candidate.next(4, WALL)
        candidate.looked(answer(first, "9"), 5)

        assert candidate.remaining(5) == 7

    def test_of_two_at_the_same_instant_of_a_wall_that_stands_still_too(self):
        candidate = leader()
        stamps = {candidate.seen.renewed}
        for now in (1, 2, 3):
            stamps.add(candidate.next(now, WALL).spec["renewTime"])
            candidate.looked(candidate.seen, now)

        assert len(stamps) == 4

    def test_an_edit_of_something_else_takes_nothing_away(self):
        candidate = leader()
        noted = Seen("u", "9", MINE, 15, "x", candidate.seen.renewed)
        candidate.looked(noted, 3)

        assert candidate.remaining(3) == 7
        assert candidate.next(3, WALL).meta["resourceVersion"] == "9"

    @pytest.mark.parametrize("found", [Seen("u", "9", "other", 15), Seen("u", "9", vacant=True)])
    def test_it_ends_at_once_when_another_is_seen_or_nobody(self, found):
        candidate = leader()
        candidate.looked(found, 3)

        assert candidate.remaining(3) == 0

    def test_a_lease_deleted_under_it_is_created_again(self):
        candidate = leader()
        candidate.looked(None, 3)

        assert candidate.remaining(3) == 7
        assert candidate.next(3, WALL).meta == {"resourceVersion": "1"}

    def test_once_over_it_is_no_more_than_anybody(self):
        candidate = leader()
        candidate.looked(Seen("u", "9", MINE, 15, renewed="of another life"), 11)

        assert candidate.next(12, WALL) == Wait(MINE)


class TestGivingUp:
    def test_ends_it_before_anybody_is_told(self):
        candidate = leader()
        step = candidate.give_up()

        assert candidate.remaining(0) == 0
        assert step is not None
        assert step.meta == {"uid": "u", "resourceVersion": "8"}
        assert (step.spec["holderIdentity"], step.spec["leaseDurationSeconds"]) == ("", 1)
        assert step.spec["leaseTransitions"] == candidate.seen.transitions

    def test_nothing_heard_later_brings_it_back(self):
        candidate = leader()
        late = candidate.next(2, WALL)
        candidate.give_up()
        candidate.looked(answer(late, "9"), 3)

        assert candidate.remaining(3) == 0

    @pytest.mark.parametrize("found", [None, OTHERS, Seen("u", "9", vacant=True)])
    def test_tells_nothing_about_what_is_not_ours(self, found):
        assert election(found).give_up() is None


class TestForeign:
    def test_fields_of_another_field_manager_are_deleted_after_expiry(self):
        candidate = election(OTHERS, 0)
        assert isinstance(candidate.next(15, WALL), Take)
        candidate.contested()
        assert candidate.next(15, WALL) == Read()
        candidate.looked(OTHERS, 16)

        assert candidate.next(16, WALL) == Remove("u", "7")
        candidate.removed()
        assert candidate.next(14, WALL).meta == {"resourceVersion": "1"}

    def test_a_conflict_over_a_version_that_was_not_seen_counts_for_nothing(self):
        candidate = election(OTHERS, 0)
        candidate.next(15, WALL)
        candidate.contested()
        candidate.looked(Seen("u", "8", "other", 15), 16)

        assert candidate.next(16, WALL) == Wait("other")
        assert isinstance(candidate.next(31, WALL), Take)

    def test_what_another_manager_emptied_was_not_given_up(self):
        vacant = Seen("u", "7", vacant=True, renewed="x")
        candidate = election(vacant, 0)
        assert isinstance(candidate.next(0, WALL), Take)
        candidate.contested()
        candidate.looked(vacant, 1)

        assert isinstance(candidate.next(14, WALL), Wait)
        assert isinstance(candidate.next(15, WALL), Remove)

    def test_a_leader_goes_on_trying_and_deletes_nothing(self):
        candidate = leader()
        candidate.next(2, WALL)
        candidate.contested()
        candidate.looked(candidate.seen, 3)

        assert isinstance(candidate.next(3, WALL), Take)

    def test_a_create_only_apply_that_meets_one_says_nothing_about_it(self):
        candidate = election(None)
        candidate.next(15, WALL)
        candidate.contested()
        candidate.looked(OTHERS, 16)

        assert candidate.next(16, WALL) == Wait("other")

    def test_what_is_there_again_after_we_deleted_it_is_held(self):
        candidate = election(OTHERS, 0)
        candidate.removed()
        candidate.looked(Seen("w", "20", "third", 15), 16)

        assert candidate.next(17, WALL) == Wait("third")


@dataclass
class Candidate:
    """One process: what it decides by, and its request that is under way, if any."""

    election: Election
    waiting: Flight | None = None
    has_looked: bool = False


@dataclass(eq=False)
class Flight:
    """One request: on its way, then answered; whoever sent it may wait for it no more."""

    step: Any
    sender: Candidate
    answer: Any = field(default=None)
    handled: bool = False

    @property
    def creates(self) -> bool:
        return isinstance(self.step, Take) and "uid" not in self.step.meta


class Elections(RuleBasedStateMachine):
    """Candidates, their requests, time and people, in any order; the wall stands still."""

    candidates = Bundle("candidates")

    def __init__(self) -> None:
        super().__init__()
        self.server, self.now = Leases(), 1000.0
        self.alive: list[Candidate] = []
        self.flights: list[Flight] = []
        self.names = 0

    def _send(self, candidate: Candidate, step: Any) -> None:
        candidate.waiting = Flight(step, candidate)
        self.flights.append(candidate.waiting)

    @rule(target=candidates)
    @precondition(lambda self: len(self.alive) < 4)
    def start(self) -> Candidate:
        self.names += 1
        candidate = Candidate(Election(f"c{self.names}", USUAL))
        self.alive.append(candidate)
        return candidate

    @rule(candidate=candidates)
    def kill(self, candidate: Candidate) -> None:
        if candidate in self.alive:
            self.alive.remove(candidate)

    @rule(seconds=st.sampled_from([0.1, 1.0, 2.0, 5.0, 9.9, 14.9, 15.0, 60.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule(candidate=candidates, anew=st.booleans())
    def ask(self, candidate: Candidate, anew: bool) -> None:
        """Ask the next; a candidate that still waits for an answer waits no more."""
        if candidate in self.alive:
            if anew:
                candidate.election.doubt()
            step = candidate.election.next(self.now, WALL)
            if not isinstance(step, Wait):
                self._send(candidate, step)

    @rule(candidate=candidates)
    def whole_turn(self, candidate: Candidate) -> None:
        """Look and act with nothing in the way."""
        for number in range(3):
            self.ask(candidate, number == 0)
            if candidate.waiting in self.flights:
                self.handle(self.flights.index(candidate.waiting))
            self.hear(candidate)

    @rule(candidate=candidates)
    def release(self, candidate: Candidate) -> None:
        if candidate in self.alive:
            self.alive.remove(candidate)
            step = candidate.election.give_up()
            if step is not None:
                self._send(candidate, step)

    @precondition(lambda self: self.flights)
    @rule(number=st.integers(0, 30))
    def handle(self, number: int) -> None:
        """Let the server take up one of the requests."""
        flight = self.flights.pop(number % len(self.flights))
        flight.handled = True
        try:
            flight.answer = self._carry_out(flight.step)
        except (Conflict, Stale) as error:
            flight.answer = error

    def _carry_out(self, step: Any) -> Any:
        match step:
            case Read():
                return self.server.lease
            case Take(meta, spec):
                return self.server.take(meta, spec)
            case Remove(uid, version):
                return self.server.remove(uid, version)

    @rule(candidate=candidates)
    def hear(self, candidate: Candidate) -> None:
        """Let an answer arrive."""
        flight = candidate.waiting
        if flight is None or not flight.handled:
            return
        candidate.waiting = None
        match flight.answer:
            case Conflict():
                candidate.election.contested()
            case Stale() | False:
                pass
            case True:
                candidate.election.removed()
            case found:
                candidate.election.looked(seen(found), self.now)
                candidate.has_looked = True

    @rule(manager=st.sampled_from(["client-go", "kubectl-edit"]), holder=st.sampled_from("xy"))
    def another_manager_writes(self, manager: str, holder: str) -> None:
        self.server.edit(
            manager,
            holderIdentity=holder,
            renewTime=f"{manager}-{holder}-{self.now}",
            leaseDurationSeconds=15,
        )

    @precondition(lambda self: self.server.lease)
    @rule(emptied=st.sampled_from(["", None]))
    def somebody_empties_it(self, emptied: str | None) -> None:
        self.server.edit(holderIdentity=emptied)

    @precondition(lambda self: self.server.lease)
    @rule()
    def somebody_annotates_it(self) -> None:
        self.server.annotate()

    def everybody_knows(self) -> bool:
        """Whether nobody acts on there being no Lease: absence has no version to compare."""
        waiting = [flight for c in self.alive if (flight := c.waiting) is not None]
        unaware = [flight for flight in waiting if flight.handled and flight.answer is None]
        creates = [flight for flight in self.flights if flight.creates]
        unseen = [c for c in self.alive if c.has_looked and c.election.seen is None]
        return not (unaware or creates or unseen)

    @precondition(everybody_knows)
    @rule()
    def somebody_deletes_it(self) -> None:
        self.server.remove()

    @invariant()
    def at_most_one_leads(self) -> None:
        leaders = [c.election.identity for c in self.alive if c.election.remaining(self.now) > 0]
        assert len(leaders) <= 1, leaders


TestElections = Elections.TestCase
TestElections.settings = settings(stateful_step_count=60)


class TestTheElections:
    def test_come_to_a_leader(self):
        """The machine above does not hold for want of leaders."""
        elections = Elections()
        all_of_them = [elections.start() for _ in range(3)]
        led: set[str] = set()
        for _ in range(200):
            elections.wait(1.0)
            for candidate in all_of_them:
                elections.whole_turn(candidate)
            elections.at_most_one_leads()
            leading = [c for c in elections.alive if c.election.remaining(elections.now) > 0]
            led |= {c.election.identity for c in leading}
            if leading and len(elections.alive) > 1 and elections.now % 50 < 1:
                elections.kill(leading[0])

        assert led == {"c1", "c2", "c3"}
