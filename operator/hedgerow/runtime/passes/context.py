"""Context: the parts that the passes of one controller share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Callable

    from hedgerow.contract import Key
    from hedgerow.runtime.cache.intake import CacheIntake
    from hedgerow.runtime.events.publisher import EventPublisher
    from hedgerow.runtime.meters import Meter
    from hedgerow.runtime.passes.applier import Applier
    from hedgerow.runtime.passes.observation import ResourcePlanner


class PassContext(Struct, frozen=True, kw_only=True):
    """The parts that the passes of one controller share; none of them is about one resource.

    `on_observed` is called when a pass observes a resource: changes until then need no other pass.
    `has_changed` returns whether a cached object of it has changed since.
    """

    planner: ResourcePlanner
    applier: Applier
    publisher: EventPublisher
    meter: Meter
    intake: CacheIntake
    on_observed: Callable[[Key], object] = lambda _: None
    has_changed: Callable[[Key], bool] = lambda _: False
