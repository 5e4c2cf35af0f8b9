"""Sharded: what happens to three replicas that share the work, and how such a run is judged."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from faults import outages
from faults.cases import Case, Outcome, judged
from faults.fleet import ASSIGNED, ELECTION, SHARED, Fleet, Undisturbed, fleet
from faults.machine import Operator, World, Wrong
from faults.proxy import Exchange, Line, Reply, Silence, Trouble
from faults.scenario import OTHER
from faults.strikes import STRIKES, strike
from faults.troubles import Off
from hedgerow.objects import annotation
from hedgerow.shards import assignment
from hedgerow.shards.assignment import Assignment
from hedgerow.shards.members import ASSIGNMENT
from support.operator.sharing import SHORT

SCENARIO = "shards"
REPLICAS = 3
AGAIN = 2.0
"""Seconds after the end of a Lease in which what its replica served is served again."""
RESTORED = 30.0
"""Seconds in which all is served again after the store was set back, its outage included."""
LONGER = ("--lease-duration", "15s", "--renew-deadline", "10s", "--retry-period", "2s")


@dataclass
class Timing:
    """How long a Lease lasts, as flags and in seconds."""

    flags: tuple[str, ...] = SHORT
    duration: float = 6.0


@dataclass(frozen=True)
class Sharded:
    """A run with three replicas under load, in which something happens."""

    known: Undisturbed
    act: Callable[[Fleet], bool]
    """Has it happen, and returns whether it did, when all is shared again."""
    within: float = Timing.duration + AGAIN
    """Seconds in which each change is answered."""
    timing: Timing = field(default_factory=Timing)

    def __call__(self, world: World) -> Outcome:
        with fleet(world, REPLICAS, *SHARED, *self.timing.flags) as three:
            came = True

            def act() -> list[str]:
                nonlocal came
                for operator in three.operators:
                    operator.line.trouble = Off()
                    operator.start()
                three.until(lambda: three.share() and three.places.begun(), "all share the work")
                three.places.contest()
                with three.load:
                    three.turns()
                    came = self.act(three)
                    three.until(three.share, "all share the work again")
                    three.turns()
                three.finish(self.known)
                three.run.longest = three.longest()
                late = three.run.longest > self.within
                return [
                    *([f"a change waited for {three.run.longest:.1f} s"] if late else []),
                    *three.broken(self.known, self.timing.duration),
                ]

            return judged(three.run, act, lambda: came)


def sharded(known: Undisturbed) -> Iterator[Case]:
    """Return all cases; each needs an API server of its own."""
    for fault in STRIKES:
        for where, leads in (("one that does not lead", False), ("the leader", True)):
            case = Sharded(known, Struck(fault, leads=leads))
            yield Case(f"three replicas, one {fault}", SCENARIO, where, case)
    for fault, act in (
        ("two leaders", two_leaders),
        ("leader's Lease taken", lease_taken),
        ("assignment deleted", assignment_deleted),
        ("assignment forged", assignment_forged),
    ):
        yield Case(f"three replicas, {fault}", SCENARIO, "under load", Sharded(known, act))
    restored = "three replicas, etcd restored"
    yield Case(restored, SCENARIO, "Leases run out", Sharded(known, set_back, RESTORED))
    timing = Timing(LONGER, 15.0)
    outlive = Sharded(known, outlived, RESTORED, timing)
    yield Case(restored, SCENARIO, "Leases outlive it", outlive)


# --- one of three -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Struck:
    """Something happens to one, until others serve what it did; then it is as before."""

    fault: str
    leads: bool

    def __call__(self, three: Fleet) -> bool:
        victim = one_that(three, leads=self.leads)
        name = three.name(victim)
        end = strike(three.world, victim, self.fault)
        three.until(lambda: three.serve_without(name), "others serve what it did")
        end()
        three.until(lambda: three.name(victim) != name, "it has another name")
        return True


def one_that(three: Fleet, *, leads: bool) -> Operator:
    """Return a replica that leads, or one that does not."""
    three.until(three.leader, "one leads")
    leader = three.leader()
    return next(each for each in three.operators if (each is leader) is leads)


# --- two leaders --------------------------------------------------------------------------------


class Deposed(Trouble):
    """Renewals of the election are not answered, and assignments pass only when it is over."""

    def __init__(self) -> None:
        super().__init__()
        self.late: list[Exchange] = []
        self._over = asyncio.Event()

    async def before(self, line: Line, asked: Exchange) -> Reply | None:
        name = asked.path.rpartition("/")[2]
        if asked.method != "PATCH" or not asked.of_lease or self._over.is_set():
            return None
        if name == ELECTION["metadata"]["name"]:
            self.fired += 1
            raise Silence
        if name == ASSIGNED["metadata"]["name"]:
            self.late.append(asked)
            await self._over.wait()
        return None

    async def end(self) -> None:
        """Let everything pass."""
        self._over.set()


def two_leaders(three: Fleet) -> bool:
    """The leader's assignment arrives only when another has been elected and has made one.

    There is one to make because a third replica leaves.
    """
    former, leaving = one_that(three, leads=True), one_that(three, leads=False)
    epoch = assigned(three).epoch
    trouble = former.line.trouble = Deposed()
    leaving.kill(signal.SIGTERM)

    def is_replaced() -> bool:
        leader = three.leader()
        return leader not in (None, former) and assigned(three).epoch > epoch

    three.until(is_replaced, "another leader has assigned")
    three.world.proxy.call(trouble.end())
    three.until(lambda: all(each.ended for each in trouble.late), "late assignments have arrived")
    taken = [each for each in trouble.late if 0 < each.done < 300]
    if taken:
        raise Wrong("a deposed leader has assigned")
    return bool(trouble.late and trouble.fired)


def lease_taken(three: Fleet) -> bool:
    """Somebody gives the election's Lease to a replica that knows nothing of it."""
    leader, other = one_that(three, leads=True), one_that(three, leads=False)
    live = three.places.system.get(ELECTION) or {}
    spec = {**live["spec"], "holderIdentity": three.name(other)}
    three.places.system.apply({**ELECTION, "spec": spec}, OTHER, force=True)

    def is_elected() -> bool:
        entries = (three.places.system.get(ELECTION) or {}).get("metadata", {})
        managers = {entry["manager"] for entry in entries.get("managedFields", ())}
        return bool(managers) and OTHER not in managers and three.leader() is not None

    three.until(is_elected, "one is elected")
    return leader is not other


# --- the assignment -----------------------------------------------------------------------------


def assigned(three: Fleet) -> Assignment:
    """Return the assignment that there is."""
    told = assignment.read(annotation(three.places.system.get(ASSIGNED) or {}, ASSIGNMENT))
    return told or Assignment(1, "", (), ())


def assignment_deleted(three: Fleet) -> bool:
    """Somebody deletes it."""
    epoch = assigned(three).epoch
    three.places.system.delete(ASSIGNED)
    three.until(lambda: assigned(three).epoch > epoch, "there is another")
    return True


def assignment_forged(three: Fleet) -> bool:
    """Somebody writes one that gives half of all to a replica, and half to one that is none."""
    before = assigned(three)
    members = (three.name(one_that(three, leads=False)), "hedgerow-ghost")
    forged = Assignment(before.epoch + 1, "forged", members, ((0, 0), (2**23, 1)))
    meta = {**ASSIGNED["metadata"], "annotations": {ASSIGNMENT: assignment.text(forged)}}
    three.places.system.apply({**ASSIGNED, "metadata": meta}, OTHER, force=True)
    three.until(lambda: assigned(three).epoch > forged.epoch, "there is another")
    return True


# --- the store ----------------------------------------------------------------------------------


def set_back(three: Fleet) -> bool:
    """The store goes back to before one replica left, as a backup of that time has it."""
    restored = outages.Restored()
    people, sandbox = three.places.system, three.world.sandbox
    since = people.now()  # before the backup: what is in it must not be made again
    restored.prepare(sandbox)
    leaving = one_that(three, leads=False)
    name = three.name(leaving)
    leaving.kill(signal.SIGTERM)
    three.until(lambda: three.serve_without(name), "others serve what it did")
    three.turns()
    outages.stopped(sandbox)
    three.forgotten = since, people.now()
    restored.set_back(sandbox)
    return True


def outlived(three: Fleet) -> bool:
    """The same, with Leases that last for longer than the store is away."""
    before = {three.name(each) for each in three.operators}
    set_back(three)
    three.until(three.share, "all share the work again")
    return len(before & {three.name(each) for each in three.operators}) == REPLICAS - 1
