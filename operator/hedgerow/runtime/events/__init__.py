"""Events: which Events a pass publishes, how often, and how they are written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.runtime.events.of_copies import CopiesPublisher
from hedgerow.runtime.events.publisher import EventPublisher

if TYPE_CHECKING:
    from hedgerow.runtime.events.recorder import Recorder
    from hedgerow.runtime.metrics import Meter
    from hedgerow.runtime.observation import ResourcePlanner


def publisher_of(
    planner: ResourcePlanner, recorder: Recorder, meter: Meter | None = None
) -> EventPublisher:
    """Return what publishes the Events of a planner's controller."""
    copies = planner.controller.copies
    if copies is not None:
        return CopiesPublisher(planner, recorder, copies, meter)
    return EventPublisher(planner, recorder, meter)
