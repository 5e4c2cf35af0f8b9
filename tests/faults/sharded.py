"""Sharded: the division of the namespaces changes under load, and how such a run is judged.

Only on a real API server: its audit log tells who wrote where, and under whose Lease.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import anyio

from faults.catalogue import Case
from faults.doings import Outcome, judged, strike
from faults.fleet import DURATION, Fleet, Undisturbed, division, fleet
from faults.real import World
from faults.run import Wrong

SCENARIO = "shards"
STOPPED = "stopped"
STRIKES = ("killed", "frozen", "cut off", "silent")
AGAIN = 11.0
"""Seconds after the end of a Lease in which all is served again: up to eight processes fill their
caches at once, on two cores."""
LET_END = 20.0
"""Seconds that one has for its passes that is told to stop."""


@dataclass(frozen=True)
class Divided:
    """A run under load in which others come that divide the namespaces otherwise.

    Something happens to the former ones; only then may the later ones begin.
    """

    known: Undisturbed
    former: int
    later: int
    fault: str = STOPPED

    def __call__(self, world: World) -> Outcome:
        with fleet(world, division(self.former), division(self.later)) as two:
            came = False

            async def act() -> list[str]:
                return await anyio.to_thread.run_sync(whole)

            def whole() -> list[str]:
                nonlocal came
                former, later = two.divisions
                two.begin(former)
                two.until(lambda: two.work(former) and two.places.begun(), "the former work")
                two.places.contest()
                with two.load:
                    two.turns()
                    two.begin(later)
                    two.until(lambda: two.hold(later), "the later hold their Leases")
                    two.turns()
                    if any(two.works(each) for each in later):
                        raise Wrong("one of another division works beside the former")
                    end = self.strike_all(two)
                    two.until(lambda: two.work(later), "the later work")
                    two.turns()
                    end()
                    two.turns()
                    came = True
                two.finish(self.known)
                two.run.longest = two.longest()
                within = DURATION + AGAIN + LET_END * (self.fault == STOPPED)
                late = two.run.longest > within
                return [
                    *([f"a change waited for {two.run.longest:.1f} s"] if late else []),
                    *two.broken(self.known, [self.former or 1, self.later or 1]),
                ]

            return anyio.run(judged, two.run, act, lambda: came)

    def strike_all(self, two: Fleet) -> Callable[[], object]:
        """Have it happen to all of the former division; return what ends it."""
        former = two.divisions[0]
        two.leave(former)
        if self.fault == STOPPED:
            for each in former:
                each.terminate()
            return list
        ends = [strike(two.run, each, self.fault, two.offs[each.line.client]) for each in former]
        return lambda: [end() for end in ends]


def sharded(known: Undisturbed) -> Iterator[Case]:
    """Return all cases; each needs an API server of its own."""
    for fault in (STOPPED, *STRIKES):
        case = Divided(known, 4, 8, fault)
        yield Case("four shards become eight", SCENARIO, f"the former are {fault}", case)
    for name, former, later in (
        ("one operator becomes four shards", 0, 4),
        ("four shards become one operator", 4, 0),
    ):
        yield Case(name, SCENARIO, "the former are stopped", Divided(known, former, later))
