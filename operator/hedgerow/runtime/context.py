"""Context: what the passes of one controller share, and the points at which they do more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from anyio import CapacityLimiter

    from hedgerow.contract import Controller, Key
    from hedgerow.runtime.applier import Applier
    from hedgerow.runtime.cache.caches import Cache
    from hedgerow.runtime.clock import Clock
    from hedgerow.runtime.events.publisher import EventPublisher
    from hedgerow.runtime.in_flight import InFlight
    from hedgerow.runtime.metrics import Meter
    from hedgerow.runtime.observation import ResourcePlanner
    from hedgerow.runtime.refusals import RefusalLog
    from hedgerow.runtime.report.reporter import Reporter
    from hedgerow.runtime.resource_pass import Pass
    from hedgerow.runtime.responses import Responses
    from hedgerow_schemas.base import Resource


class Extension:
    """The points of a pass at which a controller may need more than children and a status.

    By default nothing is done there. A controller that needs no more has no extension.
    """

    def begin(self, known: Callable[[], Iterable[Key] | None]) -> None:
        """Take in that passes will be made; `known` returns all keys, None until that is known."""

    def looked(self, this: Pass) -> None:
        """Take in what a pass has observed and planned: before its first write, and at its end."""

    def unmanaged(self, key: Key) -> None:
        """Take in that nothing is written for a resource any more: it is gone, or not ours."""

    def ended(self, key: Key) -> None:
        """Take in that a pass has done all that it could."""


class PassContext(Struct, frozen=True, kw_only=True):
    """What the passes of one controller share; nothing in it is about one resource.

    `write_limiter` limits the writes of all passes that run at the same time. `is_another_due`
    tells if another resource, whose time has come, waits for this pass.
    """

    planner: ResourcePlanner
    applier: Applier
    publisher: EventPublisher
    meter: Meter
    refusal_log: RefusalLog
    responses: Responses
    in_flight: InFlight
    write_limiter: CapacityLimiter
    is_another_due: Callable[[Key], bool]
    extensions: tuple[Extension, ...] = ()

    @property
    def controller(self) -> Controller[Resource]:
        """The controller."""
        return self.planner.controller

    @property
    def cache(self) -> Cache:
        """The controller's caches."""
        return self.planner.cache

    @property
    def reporter(self) -> Reporter:
        """How the resources say what passes find."""
        return self.planner.reporter

    @property
    def clock(self) -> Clock:
        """The clock of the process."""
        return self.planner.clock
