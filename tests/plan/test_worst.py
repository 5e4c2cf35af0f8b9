"""Worst: no work on an object that is let in holds the event loop for long."""

from __future__ import annotations

import time

import pytest

from plan.worst import COMPOSES, ENTRIES, SITUATIONS, admitted

pytestmark = pytest.mark.untraced

MOST = 0.5
"""Seconds of CPU: ten times what the event loop bears. Work that grows as the square of an object
takes seconds; a busy machine does not take ten times as long."""


@pytest.mark.parametrize("where", SITUATIONS)
def test_no_work_on_the_largest_object_takes_ten_times_what_the_loop_bears(where):
    case, taken = admitted(where), dict[str, float]()
    for name, work in ENTRIES.items():
        began = time.process_time()
        work(case)
        taken[name] = time.process_time() - began

    assert {name: seconds for name, seconds in taken.items() if seconds > MOST} == {}


@pytest.mark.parametrize("over", COMPOSES)
def test_a_pass_over_thousands_of_objects_takes_no_time_that_grows_as_their_square(over):
    compose = COMPOSES[over]()
    began = time.process_time()
    compose()

    assert time.process_time() - began < 6 * MOST
