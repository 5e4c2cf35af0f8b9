"""Faults in memory: whatever goes wrong, it ends where it would have ended otherwise."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faults.catalogue import Case
from faults.inmemory.backend import MemoryRun
from faults.inmemory.more import BY_NAME
from faults.inmemory.shares import HERE, MEMORY, known, quick, several
from faults.verdict import broken


def problems(*cases: Case) -> dict[str, str]:
    found = ((case, case.make(MEMORY)) for case in cases)
    return {case.name: outcome.why for case, outcome in found if not outcome.passed}


@pytest.mark.parametrize("name", BY_NAME)
def test_a_scenario_ends_well_without_faults(name):
    assert known(name).writes


@pytest.mark.untraced
@pytest.mark.timeout(900)
class TestQuickShare:
    def test_it_has_each_fault(self):
        assert {case.fault for case in quick()} == {fault.name for fault in HERE}

    def test_each_case_ends_as_without_faults(self):
        assert problems(*quick()) == {}


@pytest.mark.timeout(900)
class TestSeveralFaults:
    @settings(max_examples=max(6, settings().max_examples // 20))
    @given(data=st.data())
    def test_together_they_end_as_without(self, data):
        assert problems(data.draw(several())) == {}


class TestTwoWithoutElection:
    """Two laptops on one cluster: one field manager, and names that the spec determines.

    The quick share has the other scenarios, with a fault in one of the two.
    """

    @pytest.mark.parametrize("name", list(BY_NAME)[1::2])
    def test_they_end_as_one_alone_and_change_nothing_twice(self, name):
        async def main(run: MemoryRun) -> Any:
            run.start()
            await run.go()
            await run.rest()
            return broken(run), tuple(run.endings), run.versions()

        alone = known(name)
        wrong, endings, versions = MEMORY.play(alone.scenario, main, replicas=2, elected=False)

        assert (wrong, endings) == ([], alone.endings)
        # Where each of two made some of the children, each tells of those that it made.
        assert {**versions, "Event": 0, "Lease": 0} == {**alone.versions, "Event": 0, "Lease": 0}
