"""What is known of one resource besides the caches."""

from __future__ import annotations

from hedgerow.objects import ChildId
from hedgerow.plan.status import said
from hedgerow.runtime.passes.state import MOST_ONCE, ResourceState


def test_only_the_newest_of_what_was_made_once_are_remembered():
    known = ResourceState.from_status("u", said({}))
    for number in range(MOST_ONCE + 5):
        known.note_created_once(ChildId("Job", f"job-{number}"), "u")

    assert len(known.created_once) == MOST_ONCE
    assert ("Job", "job-4") not in known.created_once
