"""Combinations: several faults in one run, drawn at random."""

from __future__ import annotations

from hypothesis import strategies as st

from faults.inmemory.catalogue import Case, Family, families
from faults.inmemory.injector import Fault

MANY = 300
"""Examples, where nobody says how many."""
MOST = 3


def cases() -> st.SearchStrategy[Case]:
    """Return scenarios with two or three faults of any family."""
    by_scenario: dict[str, list[Family]] = {}
    for family in families():
        by_scenario.setdefault(family.scenario, []).append(family)

    @st.composite
    def drawn(draw: st.DrawFn) -> Case:
        scenario = draw(st.sampled_from(sorted(by_scenario)))
        chosen = draw(st.lists(st.sampled_from(by_scenario[scenario]), min_size=2, max_size=MOST))
        faults = tuple(draw(_faults(family)) for family in chosen)
        return Case(scenario, faults, max(family.replicas for family in chosen))

    return drawn()


def _faults(family: Family) -> st.SearchStrategy[Fault]:
    places = st.integers(0, family.places - 1)
    return st.builds(family.fault, st.sampled_from(family.kinds), places)
