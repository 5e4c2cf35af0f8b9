"""Giving back: the fields that a resource contributed to foreign objects, once it is gone.

The object alone tells them: `ContributesTo.of` names its resource, and its managed fields say which
fields we hold. So nothing has to keep the resource, and a start finds what an earlier process left.
`ContributesTo.remains` are not given back. Children are left to garbage collection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.objects import ObjectRef, is_terminating, metadata, ref_of
from hedgerow.plan.too_large import excess_of
from hedgerow.runtime.passes.resource_pass import Outcome, Pass

if TYPE_CHECKING:
    from hedgerow.contract import ContributesTo
    from hedgerow.plan.writes import Deletion, Write
    from hedgerow.runtime.passes.observation import Observation
    from hedgerow_schemas.base import Object


class GivingBack(Pass):
    """One pass over the abandoned objects with a key: no resource contributes to them any more."""

    async def observe(self) -> Observation | None:
        """Return the abandoned objects with their plan; None if there are none."""
        abandoned = self.context.planner.abandoned(self.key)
        whole = [(target, await self._whole(target, obj)) for target, obj in abandoned]
        there = [(target, obj) for target, obj in whole if obj is not None]
        return (
            self.context.planner.observe_abandoned(self.key, self.state, there) if there else None
        )

    async def decide(self, observation: Observation) -> tuple[Write | Deletion, ...]:
        """Return the next steps; none while there may still be a resource."""
        self.observation = observation
        self.state.ledger.keep(observation.plan.requests)
        steps = self._next_steps()
        return steps if not steps or await self._is_gone() else ()

    async def report(self) -> Outcome:
        """Return the outcome: there is no resource to say it."""
        return self.outcome()

    async def _is_gone(self) -> bool:
        """Return whether no resource contributes to these objects. Raises KubeError.

        The API server is asked: the caches also lack a resource that cannot be decoded, or that is
        in a namespace whose resources are not shown.
        """
        cache, key = self.context.planner.cache, self.key
        source = cache.source(key)
        if source is None or cache.resource(key) is not None or not cache.contributable(key):
            return True
        ref = ObjectRef(source.api, *key)
        live = await self.context.applier.find(ref, labels=source.labels, fields=source.fields)
        if live is None or is_terminating(live):
            return True
        return source.picks is not None and not source.picks(live)

    async def _whole(self, target: ContributesTo, obj: Object) -> Object | None:
        """Return the whole object: an apply would remove what it leaves out. Raises KubeError."""
        if excess_of(obj) is None:
            return obj
        ref = ref_of(target.kind.api, obj)
        whole = await self.context.applier.read_object(ref)
        return whole if metadata(whole or {}).get("uid") == ref.uid else None
