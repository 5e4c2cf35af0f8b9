"""Faults on the model: whatever goes wrong, it ends where it would have ended otherwise."""

from __future__ import annotations

from collections import Counter
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faults.inmemory.catalogue import quick
from faults.inmemory.combinations import cases
from faults.inmemory.injector import Fault
from faults.inmemory.interludes import RESTORED, Interlude, interludes
from faults.inmemory.story import Ending
from faults.inmemory.trial import BY_NAME, calm, tried, wrong


class TestWithoutFaults:
    @pytest.mark.parametrize("name", BY_NAME)
    def test_a_scenario_ends_well(self, name):
        assert wrong(calm(name)) == []


class TestTwoWithoutElection:
    """Two laptops on one cluster: one field manager, and names that the spec determines."""

    @pytest.mark.parametrize("name", BY_NAME)
    def test_they_end_as_one_alone_and_change_nothing_twice(self, name):
        alone = calm(name).ending

        both = tried(BY_NAME[name], replicas=2, leader_elect=False)

        assert wrong(both) == []
        assert _changes(both.ending, name) == _changes(alone, name)
        assert len(both.ending.writes) <= 2 * len(alone.writes)

    @pytest.mark.parametrize("what", ["crash after", "answer lost", "stale when opened again"])
    @pytest.mark.parametrize("name", BY_NAME)
    def test_they_do_so_with_a_fault_in_one_of_them(self, name, what):
        scenario = BY_NAME[name]
        kind = scenario.children[0]["kind"] if what.startswith("stale") else ""

        both = tried(scenario, Fault(what, 3, kind=kind), replicas=2, leader_elect=False)

        assert wrong(both) == []


def _changes(ending: Ending, name: str) -> Counter[str]:
    """Count the writes that changed an object by kind, without Events.

    Where each of two made some of the children, each tells of those that it made. A check's Job
    counts only for the operator that was answered its uid: the other, if it sees the Job before
    the status records it, has another made, and the status says so.
    """
    left_out = {"Event", *(("Job", "BlueGreen") if name == "bluegreen-checked" else ())}
    return Counter(
        exchange.api.kind
        for exchange in ending.writes
        if exchange.effect and exchange.api.kind not in left_out
    )


@pytest.mark.untraced
@pytest.mark.timeout(900)
class TestQuickShare:
    def test_each_case_ends_as_without_faults(self):
        found = {str(case): problems for case in quick() if (problems := case.run())}

        assert found == {}


@pytest.mark.untraced
@pytest.mark.timeout(900)
class TestInterludes:
    def test_what_is_left_is_what_a_fresh_deployment_would_be(self):
        share = list(islice(interludes(), 16))
        found = {str(each): problems for each in share if (problems := each.run())}

        assert found == {}

    def test_versions_that_go_back_are_noticed(self):
        assert Interlude("bluegreen-flipped", RESTORED, "before", 6).run() == []


@pytest.mark.timeout(900)
class TestSeveralFaults:
    @settings(max_examples=max(10, settings().max_examples // 10))
    @given(data=st.data())
    def test_together_they_end_as_without(self, data):
        case = data.draw(cases())

        assert case.run() == []
