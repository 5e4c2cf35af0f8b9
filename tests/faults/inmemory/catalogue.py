"""Catalogue: every single fault at every write of every scenario, and the quick share of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain, cycle

from faults.inmemory import more
from faults.inmemory.injector import (
    CLOCKS,
    CRASHES,
    LOSSES,
    MINUTES,
    OUTAGES,
    REFUSALS,
    REPLICAS,
    STREAMS,
    Fault,
)
from faults.inmemory.trial import BY_NAME, Trial, calm, tried, wrong
from hedgerow.objects import digest


@dataclass(frozen=True)
class Case:
    """One run: a scenario, its faults, and how many replicas there are."""

    scenario: str
    faults: tuple[Fault, ...]
    replicas: int = 1

    def __str__(self) -> str:
        several = f" with {self.replicas} replicas" if self.replicas > 1 else ""
        return f"{self.scenario}{several}: {'; '.join(map(str, self.faults))}"

    def run(self) -> list[str]:
        """Play it, and tell everything that must not be."""
        return wrong(self.play())

    def play(self) -> Trial:
        """Play it."""
        return tried(BY_NAME[self.scenario], *self.faults, replicas=self.replicas)


LEASE_WRITES = 8
"""Writes of the Lease that faults are tried at: later ones are like these."""
QUICK = 48
"""Cases of the quick share that are picked by turns."""
ALONE = (
    Case(
        "bluegreen-checked",
        (Fault("cut", 0, kind="BlueGreen"), Fault("refused with 403", 39, MINUTES)),
    ),
    Case("bluegreen-lost", (Fault("API server restarted", 6, 5),)),
    Case("bluegreen-names", (Fault("stale when opened again", 0, kind="Service"),)),
    Case("cronjob-on-time", (Fault("dropped before it arrived", 4, MINUTES),)),
    Case("cronjob-replacing", (Fault("refused with 403", 4, MINUTES),)),
    Case("cronjob-replacing", (Fault("silent", 5, kind="Job"),)),
)
"""Cases of the quick share that alone find one of the named mutants."""


@dataclass(frozen=True)
class Family:
    """Faults of one sort: what can happen, and where."""

    name: str
    scenario: str
    kinds: tuple[Fault, ...]
    """Each what, lasting how long, with which watch; its write is still to be named."""
    places: int
    replicas: int = 1

    def case(self, kind: Fault, place: int) -> Case:
        """Name the case of a kind at a write."""
        return Case(self.scenario, (self.fault(kind, place),), self.replicas)

    @staticmethod
    def fault(kind: Fault, place: int) -> Fault:
        """Place a fault at a write."""
        return replace(kind, at=place)

    def every(self) -> Iterator[Case]:
        """Return every kind at every write, each once, in an order that says nothing."""
        found = [(kind, place) for kind in self.kinds for place in range(self.places)]
        found.sort(key=lambda case: digest(self.name, self.scenario, *map(str, case)))
        return (self.case(kind, place) for kind, place in found)


@cache
def families() -> tuple[Family, ...]:
    """Return every family of every scenario."""
    return tuple(family for name in BY_NAME for family in _families(name))


def _families(name: str) -> Iterator[Family]:
    trial = calm(name)
    writes = len(trial.ending.writes)
    watched = sorted({e.api.kind for e in trial.machine.api.exchanges if e.verb == "watch"})
    lasting = tuple(Fault(what, 0, MINUTES) for what in REFUSALS)
    once = tuple(Fault(what, 0) for what in (*REFUSALS, *LOSSES, *CRASHES))
    streams = [Fault(what, 0, kind=kind) for what in STREAMS for kind in watched]
    streams += [Fault("silent", 0, MINUTES, kind) for kind in watched]
    outages = tuple(Fault(what, 0, seconds) for what in OUTAGES for seconds in (5, MINUTES))
    lease = tuple(Fault(f.what, 0, f.seconds, lease=True) for f in (*once, *lasting))
    yield Family("a write goes wrong once", name, once, writes)
    yield Family("a write is refused for minutes", name, lasting, writes)
    yield Family("a watch goes wrong", name, tuple(streams), writes)
    yield Family("the API server is away", name, outages, writes)
    yield Family("a write of the Lease goes wrong", name, lease, LEASE_WRITES)
    replicas = tuple(Fault(what, 0) for what in (*REPLICAS, *CRASHES))
    yield Family("two replicas", name, replicas, writes, replicas=2)
    if not (name.startswith("cronjob") or BY_NAME[name].by_clock):
        clocks = tuple(Fault(what, 0, 120) for what in CLOCKS)
        yield Family("clocks jump", name, clocks, writes)


@cache
def quick() -> tuple[Case, ...]:
    """Return the quick share: small scenarios twice as often as others, families by turns."""
    small = {scenario.name for scenario in more.SCENARIOS}
    mixed = sorted(families(), key=lambda family: digest(family.name, family.scenario))
    many = _by_turns([family for family in mixed if family.scenario in small])
    few = _by_turns([family for family in mixed if family.scenario not in small])
    thirds = ((next(many), next(many), next(few)) for _ in range(QUICK // 3))
    return (*chain.from_iterable(thirds), *ALONE)


def _by_turns(mixed: list[Family]) -> Iterator[Case]:
    return (next(share) for share in cycle([family.every() for family in mixed]))
