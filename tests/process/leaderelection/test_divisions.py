"""Divisions: the rules one by one, then operators of several divisions in any order."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from hedgerow.kube.errors import Stale
from hedgerow.process.leaderelection.divisions import Divisions, at_work, by_name
from hedgerow.process.leaderelection.record import (
    Election,
    Read,
    Remove,
    Seen,
    Take,
    Timing,
    micro_time,
    seen,
)
from hedgerow.shard import Shard, lease_name
from runtime.leases import Leases

BASE, USUAL = "hedgerow", Timing()
WALL = datetime(2026, 1, 1, tzinfo=UTC)
OF_TWO, OF_THREE = Shard(1, 2), Shard(1, 3)


def lease(name: str, renewed: str = "t1", **more: Any) -> dict[str, Seen]:
    return {name: Seen("u", "7", **{"holder": "x", "seconds": 15, "renewed": renewed, **more})}


def of(shard: Shard | None, *looks: tuple[dict[str, Seen], float]) -> Divisions:
    """Return what an operator knows after looks at some instants."""
    made = Divisions(BASE, shard, USUAL)
    for leases, now in looks:
        made.take_in(leases, now)
    return made


class TestWhoIsOfAnother:
    @pytest.mark.parametrize(
        ("own", "other", "waits"),
        [
            (OF_TWO, BASE, True),
            (OF_TWO, lease_name(BASE, OF_THREE), True),
            (None, lease_name(BASE, OF_TWO), True),
            (OF_TWO, lease_name(BASE, OF_TWO), False),
            (OF_TWO, lease_name(BASE, Shard(0, 2)), False),
            (None, BASE, False),
            (OF_TWO, "hedgerow-two", False),
            (OF_TWO, lease_name("hedgerow-two", OF_THREE), False),
            (OF_TWO, "hedgerow-shard-3-of-3", False),
            (OF_TWO, "hedgerow-shard-01-of-3", False),
            (OF_TWO, "hedgerow-shard-1-of-3-x", False),
            (None, "other", False),
        ],
    )
    def test_by_the_names_of_leases_alone(self, own, other, waits):
        assert (of(own, (lease(other), 0)).held(0) != {}) is waits


class TestHeld:
    def test_none_are_where_there_are_none(self):
        assert (of(OF_TWO).held(0), of(OF_TWO, ({}, 0)).free_in(0)) == ({}, 0)

    def test_one_is_until_nobody_has_renewed_it_for_its_duration(self):
        made = of(OF_TWO, (lease(BASE), 100), (lease(BASE, "t2"), 110), (lease(BASE, "t2"), 124.9))

        assert made.held(124.9) == {BASE: "x"}
        assert made.free_in(124.9) == pytest.approx(0.1)
        assert (made.held(125), made.free_in(125)) == ({}, 0)

    def test_its_own_duration_counts_if_that_is_longer_and_ours_otherwise(self):
        assert of(OF_TWO, (lease(BASE, seconds=60), 0)).free_in(0) == 60
        assert of(OF_TWO, (lease(BASE, seconds=1), 0)).free_in(0) == 15

    def test_one_that_was_released_is_free_at_once(self):
        released = lease(BASE, "t1", holder="", vacant=True)

        assert of(OF_TWO, (released, 0)).held(0) == {}
        assert of(OF_TWO, (lease(BASE), 0), (released, 3)).held(3) == {}

    def test_one_whose_holder_somebody_took_away_may_be_held(self):
        assert of(OF_TWO, (lease(BASE, "t1", holder=""), 0)).held(0) == {BASE: ""}

    def test_one_that_somebody_deleted_may_be_held(self):
        made = of(OF_TWO, (lease(BASE), 0), ({}, 5))

        assert made.held(5) == {BASE: ""}
        assert made.held(20) == {}

    def test_what_was_seen_long_ago_need_not_be_waited_out_again(self):
        assert of(OF_TWO, (lease(BASE), 0), (lease(BASE), 20)).held(20) == {}

    def test_the_first_that_may_be_free_says_when_to_look(self):
        later = {**lease(BASE), **lease(lease_name(BASE, OF_THREE), "t9")}

        assert of(OF_TWO, (lease(BASE), 0), (later, 10)).free_in(10) == 5


class TestAtWork:
    def renewed(self, ago: float, **more: Any) -> dict[str, Seen]:
        return lease(BASE, micro_time(WALL - timedelta(seconds=ago)), **more)

    @pytest.mark.parametrize("ago", [0, 14.9, -3600])
    def test_who_renewed_it_lately_is(self, ago):
        assert at_work(self.renewed(ago), WALL) == (BASE, self.renewed(ago)[BASE])

    @pytest.mark.parametrize(
        ("ago", "more"), [(15, {}), (0, {"holder": ""}), (1, {"seconds": 1}), (15, {"seconds": 0})]
    )
    def test_who_did_not_or_released_it_is_not(self, ago, more):
        assert at_work(self.renewed(ago, **more), WALL) is None

    @pytest.mark.parametrize("ours", [-86_400, -20, 0, 20, 86_400])
    @pytest.mark.parametrize("theirs", [-86_400, -20, 0, 20, 86_400])
    @pytest.mark.parametrize(("ago", "works"), [(0, True), (14, True), (16, False)])
    def test_where_the_servers_clock_is_known_no_other_one_counts(self, ours, theirs, ago, works):
        written = WALL - timedelta(seconds=ago)
        there = lease(
            BASE,
            micro_time(written + timedelta(seconds=theirs)),
            written=f"{written:%Y-%m-%dT%H:%M:%SZ}",
        )

        assert bool(at_work(there, WALL + timedelta(seconds=ours), WALL)) is works

    @pytest.mark.parametrize("written", ["", "soon"])
    def test_where_it_is_not_known_when_it_was_written_our_clock_counts(self, written):
        there = lease(BASE, micro_time(WALL), written=written)

        assert at_work(there, WALL, WALL + timedelta(days=1)) is not None

    @pytest.mark.parametrize("renewed", ["", "soon", "2026-01-01"])
    def test_what_is_no_time_tells_nothing(self, renewed):
        assert at_work(lease(BASE, renewed), WALL) is None


def test_leases_are_told_by_name_whoever_wrote_them():
    made = by_name([{"metadata": {"name": "a"}, "spec": 3}, {"metadata": {"name": "b"}}])

    assert {name: each.holder for name, each in made.items()} == {"a": "", "b": ""}


SHARDS = (None, Shard(0, 2), Shard(1, 2), Shard(0, 3))


@dataclass(eq=False)
class Operator:
    """One process: its election, what it knows of others, and the list that is under way."""

    shard: Shard | None
    election: Election
    divisions: Divisions
    is_elected: bool = False
    works: bool = False
    listed: dict[str, Seen] | None = None
    late: list[tuple[Any, float]] = field(default_factory=list[Any])


class Operators(RuleBasedStateMachine):
    """Operators of several divisions, lists that take long, time, and ends of all kinds."""

    def __init__(self) -> None:
        super().__init__()
        self.servers = {
            name: Leases(name) for name in (lease_name(BASE, shard) for shard in SHARDS)
        }
        for server in self.servers.values():
            server.take({"resourceVersion": "1"}, {})  # nobody has held it yet
        self.now, self.number = 1000.0, 0
        self.alive: list[Operator] = []
        self.worked: set[int] = set()
        for shard in SHARDS[:2]:  # one works already, and another one waits
            self.start(shard)
            self.whole_turn(len(self.alive) - 1)

    @rule(shard=st.sampled_from(SHARDS))
    @precondition(lambda self: len(self.alive) < 5)
    def start(self, shard: Shard | None) -> None:
        self.number += 1
        election = Election(f"o{self.number}", USUAL)
        self.alive.append(Operator(shard, election, Divisions(BASE, shard, USUAL)))

    def one(self, number: int) -> Operator | None:
        return self.alive[number % len(self.alive)] if self.alive else None

    @rule(number=st.integers(0, 9), is_answered=st.booleans())
    def take(self, number: int, is_answered: bool) -> None:
        """Read and then write its Lease; of the write, it may never hear."""
        operator = self.one(number)
        if operator is None:
            return
        election, server = operator.election, self.servers[lease_name(BASE, operator.shard)]
        election.doubt()
        assert isinstance(election.next(self.now, WALL), Read)
        election.take_in(seen(server.lease), self.now)
        step = election.next(self.now, WALL)
        if not isinstance(step, Take):
            assert not isinstance(step, Remove)
            return
        try:
            answer = server.take(step.meta, step.spec)
        except Stale:
            return
        if is_answered:
            election.take_in(seen(answer), self.now)
        operator.is_elected = operator.is_elected or election.remaining(self.now) > 0

    @rule(number=st.integers(0, 9))
    def ask(self, number: int) -> None:
        """Have it list all Leases: they are as they are now, whenever it hears of them."""
        operator = self.one(number)
        if operator and operator.is_elected and operator.listed is None and not operator.works:
            leases = {name: found for name, s in self.servers.items() if (found := seen(s.lease))}
            operator.listed = leases

    @rule(number=st.integers(0, 9))
    def hear(self, number: int) -> None:
        operator = self.one(number)
        if operator is None or operator.listed is None:
            return
        operator.divisions.take_in(operator.listed, self.now)
        operator.listed = None
        if not operator.divisions.held(self.now):
            operator.works = True
            self.worked.add(operator.shard.count if operator.shard else 1)

    @rule(number=st.integers(0, 9))
    def whole_turn(self, number: int) -> None:
        """Have it do what is due, with nothing in the way."""
        self.take(number, is_answered=True)
        self.ask(number)
        self.hear(number)

    @rule(seconds=st.sampled_from([2.0, 4.9, 5.0]), but=st.integers(0, 9), turns=st.integers(1, 4))
    def go_on(self, seconds: float, but: int, turns: int) -> None:
        """Let all do what is due for a while, but for one that stands still."""
        still = self.one(but)
        for _ in range(turns):
            for number, each in enumerate(list(self.alive)):
                if each is not still:
                    self.whole_turn(number)
            self.one_division_works()
            self.wait(seconds)

    @rule(seconds=st.sampled_from([0.1, 2.0, 5.0, 9.9, 10.0, 14.9, 15.0]))
    def wait(self, seconds: float) -> None:
        """Let time pass: whoever was elected, and is not any more, ends."""
        self.now += seconds
        self.alive = [
            each
            for each in self.alive
            if not each.is_elected or each.election.remaining(self.now) > 0
        ]

    @rule(number=st.integers(0, 9))
    def kill(self, number: int) -> None:
        if operator := self.one(number):
            self.alive.remove(operator)

    @rule(number=st.integers(0, 9))
    def release(self, number: int) -> None:
        if operator := self.one(number):
            self.alive.remove(operator)
            step = operator.election.give_up()
            if step is not None:
                server = self.servers[lease_name(BASE, operator.shard)]
                try:
                    server.take(step.meta, step.spec)
                except Stale:
                    return

    @invariant()
    def one_division_works(self) -> None:
        working = [
            each.shard.count if each.shard else 1
            for each in self.alive
            if each.works and each.election.remaining(self.now) > 0
        ]
        assert len(set(working)) <= 1, working


TestOperators = Operators.TestCase
TestOperators.settings = settings(stateful_step_count=60)


class TestTheOperators:
    def test_come_to_work(self):
        """The machine above does not hold for want of operators that work."""
        all_of_them = Operators()
        all_of_them.alive.clear()
        for round_ in range(4):
            for shard in SHARDS[1:] if round_ % 2 else SHARDS[:1]:
                all_of_them.start(shard)
            for _ in range(40):
                for number in range(len(all_of_them.alive)):
                    all_of_them.whole_turn(number)
                all_of_them.one_division_works()
                all_of_them.wait(2.0)
            for _ in range(len(all_of_them.alive)):
                all_of_them.release(0)

        assert {1} < all_of_them.worked
