"""What is known of one resource besides the caches."""

from __future__ import annotations

from typing import Any

import pytest

from hedgerow.objects import ChildId
from hedgerow.plan.status import said
from hedgerow.runtime.passes.state import MOST_ONCE, ResourceState


def state(**status: Any) -> ResourceState:
    return ResourceState.from_status("u", said({"status": status}))


@pytest.mark.parametrize(
    ("status", "reads_names"),
    [
        ({}, False),
        ({"conditions": [{"type": "Ready", "status": "False", "reason": "NameTaken"}]}, True),
        ({"conditions": [{"type": "Ready", "status": "True", "reason": "Serving"}]}, False),
        ({"contested": [{"object": "o", "path": ".spec.selector", "manager": "m"}]}, False),
        ({"contested": [{"object": "o", "path": ".metadata.labels", "manager": "m"}]}, True),
        ({"conditions": "nonsense"}, False),
    ],
)
def test_names_are_read_first_when_the_status_tells_of_what_no_watch_shows(status, reads_names):
    assert state(**status).ledger.reads_names is reads_names


def test_only_the_newest_of_what_was_made_once_are_remembered():
    known = state()
    for number in range(MOST_ONCE + 5):
        known.note_created_once(ChildId("Job", f"job-{number}"), "u")

    assert len(known.created_once) == MOST_ONCE
    assert ("Job", "job-4") not in known.created_once
