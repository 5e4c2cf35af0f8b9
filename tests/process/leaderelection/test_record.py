"""Election: the rules one by one, then whatever may happen at once."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, precondition, rule
from msgspec.structs import replace

from hedgerow.kube.errors import Conflict, Stale
from hedgerow.process.leaderelection.record import (
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
VACANT = Seen("u", "7", vacant=True)


def election(found: Seen | None = OTHERS, now: float = 0.0) -> Election:
    """Return a candidate that has looked."""
    candidate = Election(MINE, USUAL)
    candidate.take_in(found, now)
    return candidate


def answer(step: Any, version: str = "8") -> Seen:
    """Return the Lease as the server has it after an apply."""
    meta = {"uid": "u", **step.meta, "resourceVersion": version}
    found = seen({"metadata": meta, "spec": step.spec})
    assert found is not None
    return found


def leader(now: float = 0.0) -> Election:
    """Return one whose apply, sent at `now`, was answered at once."""
    candidate = election(VACANT, now)
    candidate.take_in(answer(candidate.next(now, WALL)), now)
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
            candidate.take_in(found, now + 0.95)
        assert isinstance(candidate.next(100 + wait, WALL), Take)

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

    def test_one_that_is_not_there_has_not_changed_hands(self):
        assert election(None).next(15, WALL).spec["leaseTransitions"] == 0

    def test_a_renewal_keeps_since_when_and_how_often(self):
        candidate = leader()
        before = candidate.seen
        spec = candidate.next(2, WALL + timedelta(seconds=2)).spec

        assert before is not None
        assert (spec["acquireTime"], spec["leaseTransitions"]) == (
            before.acquired, before.transitions
        )  # fmt: skip
        assert spec["renewTime"] == "2026-01-01T00:00:02.000000Z"

    def test_each_has_a_time_of_its_own_though_the_wall_stands_still(self):
        candidate = leader()
        stamps = {candidate.seen.renewed}
        for now in (1, 2, 3):
            stamps.add(candidate.next(now, WALL).spec["renewTime"])
            candidate.take_in(candidate.seen, now)

        assert len(stamps) == 4


CONFLICT, REMOVED, GIVES_UP = "conflict", "removed", "gives up"
ANSWERED, FIRST_ANSWERED, AS_BEFORE = "answered", "first answered", "as before"
NOTED = "noted"
GONE = {"resourceVersion": "1"}
"""What an apply names where nothing is there: it creates, and takes over from nobody."""
ANEW = {
    "renewed": Seen("u", "8", "other", 15, "then", "a year ago", 3),
    "taken by a third": Seen("u", "8", "third", 15),
    "made anew": Seen("v", "8", "other", 15),
    "made anew, and vacant: nobody gave it up whom we know to hold it": Seen("v", "8", vacant=True),
    "deleted": None,
}
CANDIDATES = {
    "before a look it asks for nothing else": [(0, Read())],
    **{
        f"any change begins the wait anew: {how}": [
            (0, OTHERS), (14, found), (28.9, Wait(found.holder if found else "")), (29, Take),
        ]
        for how, found in ANEW.items()
    },
    "what is given up before our eyes is taken at once": [
        (0, OTHERS), (5, Seen("u", "8", "", 1, renewed="x", transitions=3, vacant=True)),
        (5, {"uid": "u", "resourceVersion": "8"}),
    ],
    "one that is not there is created": [(0, None), (15, GONE)],
    "one at a time is asked": [(0, OTHERS), (15, Take), (15, Read())],
    "it leads from before the apply was sent": [
        (0, VACANT), (1, Take), (4, ANSWERED), (4, 7.0), (11, 0.0), (999, 0.0),
    ],
    "fields of another manager are deleted after expiry": [
        (0, OTHERS), (15, Take), (15, CONFLICT), (15, Read()), (16, OTHERS),
        (16, Remove("u", "7")), (16, REMOVED), (14, GONE),
    ],
    "a conflict over a version that was not seen counts for nothing": [
        (0, OTHERS), (15, Take), (15, CONFLICT), (16, Seen("u", "8", "other", 15)),
        (16, Wait("other")), (31, Take),
    ],
    "what another manager emptied was not given up": [
        (0, Seen("u", "7", vacant=True, renewed="x")), (0, Take), (0, CONFLICT), (1, AS_BEFORE),
        (14, Wait("")), (15, Remove),
    ],
    "a create-only apply that meets one says nothing about it": [
        (0, None), (15, Take), (15, CONFLICT), (16, OTHERS), (16, Wait("other")),
    ],
    "what is there again after we deleted it is held": [
        (0, OTHERS), (0, REMOVED), (16, Seen("w", "20", "third", 15)), (17, Wait("third")),
    ],
}  # fmt: skip
LEADERS = {
    "a renewal counts from when it was sent": [(2, Take), (2, ANSWERED), (2, 10.0)],
    "a read tells that a lost answer was yes": [(2, Take), (5, Read()), (5, ANSWERED), (5, 7.0)],
    "and that it was no": [(2, Take), (5, AS_BEFORE), (5, 5.0)],
    "a late arrival is told from the one after it": [
        (2, Take), (3, AS_BEFORE), (4, Take), (5, FIRST_ANSWERED), (5, 7.0),
    ],
    "an edit of something else takes nothing away": [
        (3, NOTED), (3, 7.0), (3, {"uid": "u", "resourceVersion": "9"}),
    ],
    "it ends at once when another is seen": [(3, Seen("u", "9", "other", 15)), (3, 0.0)],
    "or nobody": [(3, Seen("u", "9", vacant=True)), (3, 0.0)],
    "one that is deleted under it is created again": [(3, None), (3, 7.0), (3, GONE)],
    "once over it is no more than anybody": [
        (11, Seen("u", "9", MINE, 15, renewed="of another life")), (12, Wait(MINE)),
    ],
    "nothing heard later brings back what was given up": [
        (2, Take), (2, GIVES_UP), (2, 0.0), (3, ANSWERED), (3, 0.0),
    ],
    "it goes on trying against another manager and deletes nothing": [
        (2, Take), (2, CONFLICT), (3, AS_BEFORE), (3, Take),
    ],
}  # fmt: skip
"""Stories: what is seen and heard of a Lease, and what is asked next or for how long it leads.

A Lease or None is seen, a word heard. A step, the type of one, or what an apply names has to be
next; a number of seconds has to remain.
"""


def tell(candidate: Election, story: list[tuple[float, Any]]) -> None:
    """Play a story; fail where it does not go on as it is told."""
    asked: list[Any] = []
    for now, what in story:
        if isinstance(what, float):
            assert candidate.remaining(now) == what
        elif isinstance(what, str):
            hear(candidate, what, now, asked)
        elif what is None or isinstance(what, Seen):
            candidate.take_in(what, now)
        else:
            step = candidate.next(now, WALL)
            asked.append(step)
            kind = what if isinstance(what, type) else type(step)
            assert what in (step, kind, getattr(step, "meta", None)), (now, step)
            assert isinstance(step, kind), (now, step)


def hear(candidate: Election, word: str, now: float, asked: list[Any]) -> None:
    takes = [step for step in asked if isinstance(step, Take)]
    match word:
        case "conflict":
            candidate.contested()
        case "removed":
            candidate.removed()
        case "gives up":
            candidate.give_up()
        case "as before":
            candidate.take_in(candidate.seen, now)
        case "noted":
            assert candidate.seen is not None
            candidate.take_in(replace(candidate.seen, version="9", acquired="x"), now)
        case _:
            candidate.take_in(answer(takes[0 if word == FIRST_ANSWERED else -1], "9"), now)


class TestStories:
    @pytest.mark.parametrize("story", CANDIDATES.values(), ids=CANDIDATES)
    def test_of_a_candidate(self, story: list[tuple[float, Any]]):
        tell(Election(MINE, USUAL), story)

    @pytest.mark.parametrize("story", LEADERS.values(), ids=LEADERS)
    def test_of_one_that_leads_since_the_beginning(self, story: list[tuple[float, Any]]):
        tell(leader(), story)


class TestGivingUp:
    def test_it_is_released_as_client_go_does(self):
        candidate = leader()
        step = candidate.give_up()

        assert step is not None
        assert step.meta == {"uid": "u", "resourceVersion": "8"}
        assert (step.spec["holderIdentity"], step.spec["leaseDurationSeconds"]) == ("", 1)
        assert step.spec["leaseTransitions"] == candidate.seen.transitions

    @pytest.mark.parametrize("found", [None, OTHERS, Seen("u", "9", vacant=True)])
    def test_nothing_is_told_about_what_is_not_ours(self, found):
        assert election(found).give_up() is None


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
                candidate.election.take_in(seen(found), self.now)
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
