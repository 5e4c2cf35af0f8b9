"""Changes on the model: what was declared before leaves no trace."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controllers.worlds import SUBJECTS
from faults.inmemory.changes import changes, wrong


class TestChanges:
    @pytest.mark.parametrize("subject", SUBJECTS, ids=str)
    @settings(max_examples=max(8, settings().max_examples // 12))
    @given(data=st.data())
    def test_the_last_valid_spec_ends_as_a_fresh_one_does(self, subject, data):
        assert wrong(subject, data.draw(changes(subject))) == []
