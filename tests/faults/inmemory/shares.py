"""Shares: which runs are made in memory: each fault once, several at once, or all there are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from itertools import cycle, islice
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from controllers.worlds import SUBJECTS
from faults.catalogue import FAULTS, Case, Fault, case, cases
from faults.doings import Answers, Away, Clocks, Outcome, Place, Strikes, Watches, calm, played
from faults.exchange import ANY_STEP
from faults.inmemory import changes
from faults.inmemory.backend import Memory
from faults.inmemory.more import BY_NAME
from faults.run import Reference
from hedgerow.objects import digest

MEMORY = Memory()
HERE = tuple(fault for fault in FAULTS if fault.on(MEMORY.name))
MOST = 3
"""Faults in one run."""
TOGETHER = tuple(
    fault for fault in HERE if isinstance(fault.doing, (Answers, Away, Clocks, Strikes, Watches))
)


@cache
def known(name: str) -> Reference:
    """Play a scenario without faults, once."""
    return calm(MEMORY, BY_NAME[name])


def _places(fault: Fault, name: str) -> list[Place]:
    """Return where a fault can come in a scenario, in an order that says nothing."""
    found = fault.doing.places(known(name), fine=True)
    return sorted(found, key=lambda place: digest(fault.name, name, str(place)))


def quick() -> list[Case]:
    """Return one case of each fault, the scenarios by turns."""
    names, found = cycle(BY_NAME), list[Case]()
    for fault in HERE:
        placed = ((name, _places(fault, name)) for name in islice(names, len(BY_NAME)))
        name, places = next((name, places) for name, places in placed if places)
        found.append(case(fault, known(name), places[0]))
    return [*found, *two_without_election(), *(alone(*words) for words in ALONE)]


def two_without_election() -> Iterator[Case]:
    """Return runs of two operators, none of which is elected, with a fault in one of them."""
    faults = [
        fault for fault in HERE if fault.name in {"crash after", "answer lost", "watch stale"}
    ]
    for fault, name in zip(cycle(faults), islice(BY_NAME, None, None, 2)):
        reference = known(name)
        places = (each for each in _places(fault, name) if each.within != ANY_STEP)
        place = next(places)  # of a Lease nobody writes

        def make(_: Any, known: Reference = reference, part: Any = (fault.doing, place)) -> Outcome:
            return played(MEMORY, known, [part], replicas=2, elected=False)

        yield Case(fault.name, f"two of {name}", str(place), make)


ALONE = (
    (
        "API server killed for 5 s",
        "bluegreen-lost",
        "step 2, apply Event Created on BlueGreen/demo",
    ),
    (
        "watch stale",
        "bluegreen-names",
        "services at step 2, apply deployments/demogreen-deployment",
    ),
    ("dropped for a while", "cronjob-on-time", "step 3, apply jobs/cron-N"),
    ("403 for a while", "cronjob-replacing", "step 3, delete jobs/cron-N"),
    ("watch silent", "cronjob-replacing", "jobs at step 3, apply jobs/cron-N"),
)
"""Fault, scenario and place of the cases that alone find one of the named mutants."""


def alone(fault: str, name: str, where: str) -> Case:
    """Return one case."""
    placed = ((one, place) for one in HERE if one.name == fault for place in _places(one, name))
    return next(case(one, known(name), place) for one, place in placed if str(place) == where)


def every() -> Iterator[Case]:
    """Return every fault at every write of every scenario."""
    return cases({name: known(name) for name in BY_NAME}, MEMORY.name)


def several() -> st.SearchStrategy[Case]:
    """Return scenarios with two or three faults."""
    for name in BY_NAME:  # before anything is drawn: a run has dice of its own
        known(name)
    return _several()


@st.composite
def _several(draw: st.DrawFn) -> Case:
    name = draw(st.sampled_from(sorted(BY_NAME)))
    chosen = draw(st.lists(st.sampled_from(TOGETHER), min_size=2, max_size=MOST))
    placed = [(fault, [p for p in _places(fault, name) if p.target]) for fault in chosen]
    parts = [(fault, draw(st.sampled_from(places))) for fault, places in placed if places]
    where = "; ".join(f"{fault.name} {place}" for fault, place in parts)
    doings = [(fault.doing, place) for fault, place in parts]
    return Case("several faults", name, where, lambda world: played(world, known(name), doings))


def drawn(examples: int) -> Iterator[Case]:
    """Return several faults at once, and changes of specs, so many of each."""
    yield from _drawn(examples, several())
    for subject in SUBJECTS:
        for sequence in _drawn(examples, changes.changes(subject)):
            yield Case(f"changes of {subject}", "", str(sequence), _changed(subject, sequence))


def _changed(subject: Any, sequence: list[changes.Change]) -> Callable[[Any], Outcome]:
    def make(_world: Any) -> Outcome:
        lines = changes.wrong(subject, sequence)
        return Outcome(not lines, "; ".join(lines))

    return make


def _drawn(examples: int, strategy: Any) -> list[Any]:
    found: list[Any] = []

    @settings(
        max_examples=examples,
        phases=[Phase.generate],
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def draw(value: Any) -> None:
        found.append(value)

    draw()
    return found
