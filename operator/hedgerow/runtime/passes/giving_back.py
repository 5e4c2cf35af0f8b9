"""Giving back: a resource that is gone gives back what it contributed, but for what remains.

What was contributed is found by the object alone: `ContributesTo.of` says of which resource it
is, and its managed fields say what we hold. So nothing has to keep the resource, and a start finds
what an earlier process left. Its children are left to garbage collection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.objects import metadata, ref_of
from hedgerow.plan.stubs import excess_of
from hedgerow.runtime.passes.resource_pass import Outcome, Pass

if TYPE_CHECKING:
    from hedgerow.contract import ContributesTo
    from hedgerow.plan.writes import Deletion, Write
    from hedgerow.runtime.passes.observation import Observation
    from hedgerow_schemas.base import Object


class GivingBack(Pass):
    """One pass over the objects with a key to which nothing is to be contributed any more."""

    async def observe(self) -> Observation | None:
        """Return the abandoned objects with their plan; None if there are none."""
        abandoned = self.context.planner.abandoned(self.key)
        whole = [(target, await self._whole(target, obj)) for target, obj in abandoned]
        there = [(target, obj) for target, obj in whole if obj is not None]
        return self.context.planner.given_back(self.key, self.state, there) if there else None

    async def decide(self, observation: Observation) -> tuple[Write | Deletion, ...]:
        """Return the next steps."""
        self.observation = observation
        self.state.ledger.keep(observation.plan.requests)
        return self._next_steps()

    async def report(self) -> Outcome:
        """Return the outcome: there is no resource to say it."""
        return self.outcome()

    async def _whole(self, target: ContributesTo, obj: Object) -> Object | None:
        """Return the whole object: an apply would remove what it leaves out. Raises KubeError."""
        if excess_of(obj) is None:
            return obj
        ref = ref_of(target.kind.api, obj)
        whole = await self.context.applier.read_object(ref)
        return whole if metadata(whole or {}).get("uid") == ref.uid else None
