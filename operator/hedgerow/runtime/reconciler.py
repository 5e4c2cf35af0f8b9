"""Reconciler: the passes over the resources of one controller, and what outlives a pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import structlog
from msgspec.structs import replace

from hedgerow.kube.errors import Forbidden, Missing
from hedgerow.objects import metadata
from hedgerow.plan.status import reader_of
from hedgerow.runtime.context import PassContext
from hedgerow.runtime.giving_back import GivingBack
from hedgerow.runtime.metrics import Meter, Meters
from hedgerow.runtime.resource_pass import Outcome, Pass, soonest
from hedgerow.runtime.responses import Responses
from hedgerow.runtime.slow_compose import SlowCompose
from hedgerow.runtime.state import ResourceState

if TYPE_CHECKING:
    from collections.abc import Callable

    from hedgerow.contract import Key
    from hedgerow.runtime.applier import Applier
    from hedgerow.runtime.events.publisher import EventPublisher
    from hedgerow.runtime.large import PassLimits
    from hedgerow.runtime.observation import ResourcePlanner
    from hedgerow_schemas.base import Object

EXTRA_WRITES = 16
"""The most writes of a controller at a time, besides one for each pass."""

log = structlog.get_logger(__name__)


class Reconciler:
    """The passes of one controller, and what is remembered of each resource between them."""

    def __init__(
        self,
        planner: ResourcePlanner,
        applier: Applier,
        publisher: EventPublisher,
        meter: Meter | None = None,
        *,
        is_another_due: Callable[[Key], bool] = lambda _: False,
        looked: Callable[[Key], object] = lambda _: None,
    ) -> None:
        """`is_another_due` and `looked` are as `PassContext` has them."""
        meter = meter or Meters().of(planner.controller.name)
        self.context = PassContext(
            planner=planner,
            applier=applier,
            publisher=publisher,
            meter=meter,
            slow_compose=SlowCompose(planner.clock, meter),
            responses=Responses(planner),
            write_limiter=anyio.CapacityLimiter(EXTRA_WRITES),
            is_another_due=is_another_due,
            looked=looked,
        )
        self.states: dict[Key, ResourceState] = {}
        self._giving_back = GivingBack(
            planner.controller, planner.cache, applier, planner.clock, meter
        )

    async def reconcile(self, key: Key, limits: PassLimits | None = None) -> Outcome:
        """Make one pass over a resource, and return how it ended.

        By default, `limits` follow from the resource as it is cached now. Raises KubeError
        if the server cannot be reached or asks us to wait. A refused request or a user's mistake
        becomes a condition instead; `runtime/refusals.py` has the table.
        """
        limits = limits or self.context.cache.limits(key)
        retry_in = await self._giving_back.give_back(key, limits)
        live = self.context.cache.resource(key)
        outcome = await self._pass(key, live, limits) if live else self._gone(key)
        if retry_in is None:
            return outcome
        again = soonest(outcome.requeue_after, retry_in)
        is_requested = outcome.is_requested and again == outcome.requeue_after
        return replace(outcome, requeue_after=again, is_requested=is_requested, refused=True)

    def rewind(self) -> None:
        """Forget which children were deleted and which Events were sent: a restore may undo both.

        Children that were created once stay known, so that no start of a CronJob is made again.
        """
        for state in self.states.values():
            state.ledger.rewind()
        self.context.publisher.rewind()

    async def _pass(self, key: Key, live: Object, limits: PassLimits) -> Outcome:
        state, context = self._state(key, live), self.context
        this = Pass(context, key, state, limits)
        try:
            return await this.run() or self._not_written(this)
        except Forbidden as error:
            if not error.terminating:
                raise
            state.namespace_terminating = True
            return Outcome()
        except Missing as error:
            if not error.served:
                raise
            # The namespace is gone, and the resource with it: the watch will report it soon.
            return Outcome(retry=True)

    def _gone(self, key: Key) -> Outcome:
        """Forget a resource."""
        self.states.pop(key, None)
        self.context.meter.contest(key, ())
        self.context.meter.miss(key, None)
        return Outcome()

    def _not_written(self, this: Pass) -> Outcome:
        """Return the outcome for a resource for which nothing may be written, or not yet."""
        if self.context.cache.resource(this.key) is None:
            self.states.pop(this.key, None)
        return Outcome()

    def _state(self, key: Key, live: Object) -> ResourceState:
        uid = metadata(live)["uid"]
        state = self.states.get(key)
        if state is None or state.uid != uid:
            state = ResourceState.of(uid, reader_of(self.context.controller)(live))
            self.states[key] = state
        return state
