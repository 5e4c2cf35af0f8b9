"""World: replicas, their Leases and all that may happen to them, on one simulated clock.

The pure parts are the product's own: the election, the members, the leader. Around them is what the
process does with them: requests that take their time or are lost, a watch that lags, clocks that
are fast or slow. A request is carried out within LATE seconds of being sent, or never.
"""

from __future__ import annotations

import copy
import heapq
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import count
from random import Random
from typing import Any

from hedgerow.runtime.leaderelection.record import Election, Read, Take, Timing, Wait, seen
from hedgerow.shards import assignment, members
from hedgerow.shards.assigner import Assigner, Proposal
from hedgerow.shards.member import Member, Orders
from hedgerow.shards.members import ASSIGNMENT, MEMBER_STATUS, Members, Sighting
from hedgerow.shards.slices import ALL, NONE, Slices

TIMING = Timing()
LATE = 4.0
"""Seconds until a request is carried out: with clocks 3 % wrong, less than duration - deadline."""
BASE = "hedgerow"
PLACE = f"{BASE}-shards"
WATCH = "things"
"""The only kind of objects that are written."""
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
Object = dict[str, Any]


class Refused(Exception):
    """The server refuses a write: somebody else was first, or holds a field."""

    def __init__(self, conflict: bool = False) -> None:
        self.conflict = conflict


class TwoWriters(AssertionError):
    """Two replicas write for one slice."""


class Unfilled(AssertionError):
    """A replica begins with a slice that its caches do not hold."""


class OutOfDate(AssertionError):
    """A replica takes for the last write in a slice what another one wrote before."""


class Store:
    """The Leases, and all that was ever seen of them by a watch."""

    def __init__(self) -> None:
        self.leases: dict[str, Object] = {}
        self.version = 100
        self.changes: list[tuple[float, str, Object | None]] = []
        self.restored = 0
        self._uids = count()
        self._kept: list[tuple[int, dict[str, Object]]] = []

    def apply(self, now: float, name: str, meta: Object, spec: Object, said: Object) -> Object:
        live = self.leases.get(name)
        if live is None:
            if meta.get("uid"):
                raise Refused
            live = {"metadata": {"name": name, "uid": f"u{next(self._uids)}"}}
            live["metadata"]["creationTimestamp"] = f"{self.version:09}"
        else:
            if live.get("forged"):
                raise Refused(conflict=True)
            if meta.get("uid") != live["metadata"]["uid"]:
                raise Refused
            if meta["resourceVersion"] != live["metadata"]["resourceVersion"]:
                raise Refused
        meta = {k: v for k, v in live["metadata"].items() if k != "annotations"}
        return self.put(now, name, {"metadata": {**meta, "annotations": said}, "spec": spec})

    def put(self, now: float, name: str, lease: Object) -> Object:
        self.version += 1
        lease = copy.deepcopy(lease)
        lease["metadata"]["resourceVersion"] = str(self.version)
        self.leases[name] = lease
        self.changes.append((now, name, lease))
        return lease

    def delete(self, now: float, name: str) -> None:
        if self.leases.pop(name, None) is not None:
            self.version += 1
            self.changes.append((now, name, None))

    def keep(self) -> None:
        """Take a backup."""
        self._kept.append((self.version, dict(self.leases)))

    def restore(self, now: float) -> None:
        """Go back to the last backup; versions are given again."""
        if self._kept:
            self.version, leases = self._kept.pop()
            self.leases = dict(leases)
            self.restored += 1
            self.changes.append((now, "", None))


class World:
    """Replicas around one store."""

    def __init__(self, seed: int, faulty: Faults | None = None) -> None:
        self.random = Random(seed)  # noqa: S311 - repeatable
        self.faulty = faulty or Faults()
        self.store = Store()
        self.now = 0.0
        self.nodes: list[Node] = []
        self.written: list[float] = []
        """When an assignment was written."""
        self.wrote: list[tuple[Node, Slices, float]] = []
        """Who wrote where and when, in order."""
        self.moved = 0.0
        """Which part of all points was begun, in sum."""
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._order = count()
        self._names = count()

    def at(self, when: float, act: Callable[[], None]) -> None:
        heapq.heappush(self._events, (when, next(self._order), act))

    def after(self, seconds: float, act: Callable[[], None]) -> None:
        self.at(self.now + seconds, act)

    def run(self, seconds: float) -> None:
        until = self.now + seconds
        while self._events and self._events[0][0] <= until:
            self.now, _, act = heapq.heappop(self._events)
            act()
        self.now = until

    def join(self, revision: str = "") -> Node:
        node = Node(self, f"{BASE}-m{next(self._names)}", revision)
        self.nodes.append(node)
        node.start()
        return node

    @property
    def alive(self) -> list[Node]:
        return [node for node in self.nodes if not node.dead]

    def died(self, node: Node) -> None:
        """The kubelet starts a container anew."""
        if not node.member.leaving:
            self.after(self.random.uniform(0.1, 3), lambda: self.join(node.revision) and None)

    def changed(self) -> None:
        for node in self.alive:
            self.after(node.lag, node.pull)

    def served(self) -> Slices:
        served = NONE
        for node in self.alive:
            served |= node.member.begun if node.permit > 0 else NONE
        return served

    def judge_begin(self, node: Node, orders: Orders) -> None:
        slices = orders.begin
        self.moved += slices.share
        for quiet in orders.quiet:
            last = self.last_write(quiet.slices)
            if last > quiet.last.get(WATCH, last):
                raise OutOfDate(f"{node.name} believes an old hand-over, at {self.now:.1f}")
            if last and self.wrote[last - 1][2] > node.instant(quiet.since):
                raise OutOfDate(f"{node.name} believes nobody writes, at {self.now:.1f}")
        if slices - node.filled:
            raise Unfilled(f"{node.name} begins what its caches lack, at {self.now:.1f}")
        for other in self.alive:
            if other is node or other.permit <= 0:
                continue
            if slices & (other.member.begun | other.member.draining):
                raise TwoWriters(f"{node.name} begins what {other.name} has, at {self.now:.1f}")

    def last_write(self, slices: Slices, node: Node | None = None) -> int:
        """Return the number of the last write in slices, by a node or by anybody; 0 if none."""
        for place in range(len(self.wrote), 0, -1) if slices else ():
            writer, where, _ = self.wrote[place - 1]
            if node in (None, writer) and where & slices:
                return place
        return 0

    def judge_write(self, node: Node, slices: Slices) -> None:
        self.wrote.append((node, slices, self.now))
        for other in self.alive:
            if other is not node and other.permit > 0 and slices & other.member.begun:
                raise TwoWriters(
                    f"a write of {node.name} for what {other.name} has, at {self.now:.1f}"
                )


class Faults:
    """What is wrong with the protocol: nothing."""

    def members(self, *given: Any, **more: Any) -> Members:
        return Members(*given, **more)

    def member(self, *given: Any) -> Member:
        return Member(*given)

    def assigner(self, *given: Any) -> Assigner:
        return Assigner(*given)

    fenced = True
    knows_what_it_lacks = True
    waits_for_passes = True


class Node:
    """One replica."""

    def __init__(self, world: World, name: str, revision: str) -> None:
        self.world, self.name, self.revision = world, name, revision
        self.random = world.random
        self.rate = self.random.uniform(0.97, 1.03)
        self.offset = self.random.uniform(0, 1e6)
        faulty = world.faulty
        self.view = faulty.members(BASE, name, duration=TIMING.duration, deadline=TIMING.deadline)
        self.member = faulty.member(self.view, revision)
        self.assigner = faulty.assigner(self.view)
        self.own = Election(name, TIMING)
        self.own.removed()  # nobody else has that name
        self.election = Election(name, TIMING)
        self.dead = self.was_permitted = self.stopping = False
        self.frozen_until = self.cut_until = self.slow_until = self.stalled_until = 0.0
        self.unheard_until = {"own": 0.0, "election": 0.0}
        self.lag = 0.02
        self.fills_within = 2.0
        self.weights: dict[int, float] = {}
        self._seen = -1
        self._restored = 0
        self._busy: dict[str, bool] = {}
        self._turns: dict[str, int] = {}
        self._reading = False
        self._leads = False
        self._told = self._asked = ""
        self._selection = 0
        self._selecting = self.filled = self.caught_up = NONE
        self._catch_ups = count()
        self._flying: dict[int, tuple[float, Slices]] = {}
        self._flights = count()

    # --- time ------------------------------------------------------------------------------------

    @property
    def clock(self) -> float:
        return self.world.now * self.rate + self.offset

    def instant(self, clock: float) -> float:
        """Return when its clock showed that."""
        return (clock - self.offset) / self.rate

    @property
    def permit(self) -> float:
        return self.own.remaining(self.clock)

    def later(self, seconds: float, act: Callable[[], None]) -> None:
        """Do something once so much time has passed, or when the replica thaws."""

        def do() -> None:
            if self.dead:
                return
            if self.world.now < self.frozen_until:
                self.world.at(self.frozen_until, do)
                return
            act()

        self.world.after(seconds, do)

    def start(self) -> None:
        self.world.after(self.lag, self.relist)
        self.later(0, lambda: self.turn("own"))
        self.later(0.5, lambda: self.turn("election"))
        self.later(0.1, self.tick)

    def die(self) -> None:
        if not self.dead:
            self.dead = True
            self.world.died(self)

    # --- requests --------------------------------------------------------------------------------

    def request(
        self,
        act: Callable[[], Any],
        done: Callable[[Any, Exception | None], None],
        what: str = "",
    ) -> None:
        """Have the server act; the answer, or that there is none, comes once."""
        unheard = self.world.now < max(self.cut_until, self.unheard_until.get(what, 0))
        slow = self.world.now < self.slow_until
        there = self.random.uniform(0, LATE) if slow else self.random.uniform(0.001, 0.02)
        back = self.random.uniform(0, LATE) if slow else self.random.uniform(0.001, 0.02)
        lost = self.random.random() < (0.3 if slow else 0)
        open_ = [True]

        def answer(result: Any, error: Exception | None) -> None:
            if open_[0]:
                open_[0] = False
                done(result, error)

        def carry_out() -> None:
            if self.world.now < self.cut_until:
                return
            try:
                result, error = act(), None
            except Refused as refused:
                result, error = None, refused
            if not lost:
                self.later(back, lambda: answer(result, error))

        if not unheard:
            self.world.after(there, carry_out)
        self.later(TIMING.deadline / 3, lambda: answer(None, TimeoutError()))

    def turn(self, what: str) -> None:  # noqa: C901 - one case for each step
        """Do what an election's turn does, and come again."""
        if self._busy.get(what):
            return
        election = self.own if what == "own" else self.election
        name = self.name if what == "own" else BASE
        step = election.next(self.clock, EPOCH + timedelta(seconds=self.clock))
        store = self.world.store
        self._busy[what] = True

        def done(result: Any, error: Exception | None) -> None:
            self._busy[what] = False
            if error is None:
                election.looked(seen(result), self.clock)
            elif isinstance(error, Refused) and error.conflict:
                election.contested()
                election.doubt()
            else:
                election.doubt()
            self.step()
            again = what == "own" and self._told != self._asked
            soon = (isinstance(step, Read) and error is None) or again
            self.turn_after(0.01 if soon else self.random.uniform(1.6, 2), what)

        if isinstance(step, Read):
            self.request(lambda: store.leases.get(name), done, what)
        elif isinstance(step, Take):
            said = {MEMBER_STATUS: self.told()} if what == "own" else {}
            asked = said.get(MEMBER_STATUS, "")

            def act() -> Object:
                applied = store.apply(self.world.now, name, step.meta, step.spec, said)
                self.world.changed()
                return applied

            def told(result: Any, error: Exception | None) -> None:
                if what == "own" and error is None:
                    self._told = asked
                done(result, error)

            self.request(act, told, what)
        elif isinstance(step, Wait):
            election.doubt()
            self._busy[what] = False
            self.turn_after(self.random.uniform(0.8, 1.2), what)
        else:
            self._busy[what] = False
            store.delete(self.world.now, name)
            election.removed()
            self.turn_after(0.01, what)

    def turn_after(self, seconds: float, what: str) -> None:
        self._turns[what] = turn = next(self._flights)
        self.later(seconds, lambda: self.turn(what) if self._turns[what] == turn else None)

    def told(self) -> str:
        self._asked = members.status_text(self.member.status(assignment.groups(self.weights, ALL)))
        return self._asked

    # --- the watch -------------------------------------------------------------------------------

    def pull(self) -> None:
        """Take in what the watch has brought by now."""
        now = self.world.now
        if self.dead or now < self.unseeing_until or self._seen < 0:
            return
        changes = self.world.store.changes
        if self._restored != self.world.store.restored:
            self.relist()
            return
        while self._seen < len(changes) and changes[self._seen][0] + self.lag <= now + 1e-9:
            _, name, lease = changes[self._seen]
            self._seen += 1
            if lease is None:
                self.view.deleted({"metadata": {"name": name}}, self.clock)
            else:
                self.view.changed(lease, self.clock)
            self.step()

    @property
    def unseeing_until(self) -> float:
        return max(self.cut_until, self.frozen_until, self.stalled_until)

    def relist(self) -> None:
        if self.dead or self.world.now < self.unseeing_until:
            return
        self._seen = len(self.world.store.changes)
        self._restored = self.world.store.restored
        self.view.snapshot(list(self.world.store.leases.values()), self.clock)
        self.step()

    def look(self) -> None:
        """Read all Leases, if that would show something."""
        due = self.view.relist_due()
        if due is None or self._reading or self.clock < due:
            return
        began = self.clock
        self._reading = True

        def done(result: Any, error: Exception | None) -> None:
            self._reading = False
            if error is None:
                self.view.relisted(result, began)
                self.step()

        self.request(lambda: list(self.world.store.leases.values()), done)

    # --- what it does ----------------------------------------------------------------------------

    def tick(self) -> None:
        """Come by all the time: what a timer would do."""
        if self._seen < 0 or self._restored != self.world.store.restored:
            self.relist()
        self.pull()
        self.look()
        self.step()
        self.write()
        if not self.dead:
            self.later(self.random.uniform(0.2, 0.4), self.tick)

    def step(self) -> None:
        if self.dead:
            return
        if self.permit > 0:
            self.was_permitted = True
        elif self.was_permitted:
            self.die()
            return
        self.view.now = self.clock  # type: ignore[attr-defined] - for what is wrong only
        orders = self.member.step(self.clock)
        if orders.begin:
            self.world.judge_begin(self, orders)
            self.catch_up(orders.begin)
        for part in orders.drain:
            self.drain(part)
        self.select()
        if (
            members.status_text(self.member.status(assignment.groups(self.weights, ALL)))
            != self._asked
        ):
            self.turn("own")
        self.lead()
        if self.stopping and self.member.is_done:
            self.release()

    def select(self) -> None:
        wanted = self.member.wanted
        if wanted == self._selecting:
            return
        self._selecting, self.filled = wanted, self.filled & wanted
        self._selection = number = self._selection + 1

        def filled() -> None:
            if self._selection == number:
                self.filled = wanted
                self.member.cached(wanted)
                self.step()

        self.later(self.random.uniform(0.01, self.fills_within), filled)

    def catch_up(self, slices: Slices) -> None:
        """Make passes once the caches have what was written last, unless it is drained before."""

        def has_all() -> None:
            self.caught_up |= slices & self.member.begun

        self.later((0.0, 0.3, 3.0)[next(self._catch_ups) % 3], has_all)

    def drain(self, slices: Slices) -> None:
        if not self.world.faulty.waits_for_passes:
            self.drained(slices)
            return
        ends = [sent + LATE for sent, flying in self._flying.values() if flying & slices]
        until = max([self.world.now + self.random.uniform(0, 2), *ends])

        def ended() -> None:
            self.drained(slices)
            self.step()

        self.later(until - self.world.now, ended)

    def drained(self, slices: Slices) -> None:
        """Tell of it with what it wrote last there, unless an answer was missing."""
        has_all = not slices - self.caught_up or not self.world.faulty.knows_what_it_lacks
        last = {WATCH: self.world.last_write(slices - self.caught_up, self)}
        last[WATCH] = max(last[WATCH], self.world.last_write(slices & self.caught_up))
        self.member.drained(slices, last if has_all and next(self._catch_ups) % 9 else None)
        self.caught_up -= slices

    def write(self) -> None:
        """Proposal for all that is begun; the server carries it out when it pleases."""
        slices = self.member.begun & self.caught_up
        if self.dead or not slices or self.permit <= 0:
            return
        number = next(self._flights)
        slow = self.world.now < self.slow_until
        there = self.random.uniform(0, LATE) if slow else self.random.uniform(0.001, 0.02)
        self._flying[number] = (self.world.now, slices)
        if self.world.now >= self.cut_until:
            self.world.after(there, lambda: self.world.judge_write(self, slices))
        else:
            there = LATE
        self.later(there + 0.01, lambda: self._flying.pop(number) and None)

    def lead(self) -> None:
        """Write assignments while the election permits it."""
        leads = self.election.remaining(self.clock) > 0
        if self.world.faulty.fenced and not leads:
            self.assigner.forget()
            self._leads = False
            return
        self._leads = self._leads or leads
        nonce = f"{self.random.random()}"
        write = self.assigner.next(self.clock, nonce) if self._leads else None
        if write is not None:
            self.assigner.sending(write, self.clock)
            self.assign(write)
        elif self._leads:
            for each in self.view.superfluous():
                self.remove(each)

    def remove(self, gone: Sighting) -> None:
        """Delete the Lease of one who is long gone, as it was seen."""
        store = self.world.store

        def act() -> None:
            live = store.leases.get(gone.name)
            if live and members.version_of(live) == gone.version:
                store.delete(self.world.now, gone.name)
                self.world.changed()

        self.request(act, lambda _result, _error: None)

    def assign(self, write: Proposal) -> None:
        store, stored = self.world.store, write.seen
        meta: Object = {"resourceVersion": "1"}
        if stored is not None:
            meta = {"uid": stored.uid, "resourceVersion": stored.version}
        text = assignment.text(write.assignment)

        def act() -> None:
            spec = {"holderIdentity": self.name}
            store.apply(self.world.now, PLACE, meta, spec, {ASSIGNMENT: text})
            self.world.written.append(self.world.now)
            self.world.changed()

        def remove() -> None:
            live = store.leases.get(PLACE)
            if live and stored and live["metadata"]["resourceVersion"] == stored.version:
                store.delete(self.world.now, PLACE)
                self.world.changed()

        def done(_result: Any, error: Exception | None) -> None:
            if error is None:
                return
            self.assigner.forget()
            if isinstance(error, Refused) and error.conflict:
                self.request(remove, lambda _result, _error: None)

        self.request(act, done)

    def leave(self) -> None:
        self.member.leaving = self.stopping = True

    def release(self) -> None:
        """End the process, and say so."""
        self.dead = True
        for name, election in ((self.name, self.own), (BASE, self.election)):
            step = election.give_up()
            if step is not None:
                said = (
                    {MEMBER_STATUS: members.status_text(self.member.status())}
                    if name == self.name
                    else {}
                )
                try:
                    self.world.store.apply(self.world.now, name, step.meta, step.spec, said)
                except Refused:
                    continue
        self.world.changed()
