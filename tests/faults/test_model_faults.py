"""Faults on the model: whatever goes wrong, it ends where it would have ended otherwise."""

from __future__ import annotations

from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faults.inmemory.catalogue import quick
from faults.inmemory.combinations import cases
from faults.inmemory.interludes import RESTORED, Interlude, interludes
from faults.inmemory.measured import unmeasured
from faults.inmemory.trial import BY_NAME, calm, wrong


class TestWithoutFaults:
    @pytest.mark.parametrize("name", BY_NAME)
    def test_a_scenario_ends_well(self, name):
        assert wrong(calm(name)) == []


@pytest.mark.timeout(900)
class TestQuickShare:
    def test_each_case_ends_as_without_faults(self):
        with unmeasured():
            found = {str(case): problems for case in quick() if (problems := case.run())}

        assert found == {}


@pytest.mark.timeout(900)
class TestInterludes:
    def test_what_is_left_is_what_a_fresh_deployment_would_be(self):
        with unmeasured():
            share = list(islice(interludes(), 16))
            found = {str(each): problems for each in share if (problems := each.run())}

        assert found == {}

    def test_versions_that_go_back_are_noticed(self):
        with unmeasured():
            assert Interlude("bluegreen-flipped", RESTORED, "before", 6).run() == []


@pytest.mark.timeout(900)
class TestSeveralFaults:
    @settings(max_examples=settings().max_examples // 10)
    @given(data=st.data())
    def test_together_they_end_as_without(self, data):
        case = data.draw(cases())

        assert case.run() == []
