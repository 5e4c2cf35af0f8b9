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
        """Return what is cached now, with the plan of it; None if nothing is to be given back."""
        abandoned = self.context.planner.abandoned(self.key)
        found = [(target, await self._whole(target, obj)) for target, obj in abandoned]
        there = [(target, obj) for target, obj in found if obj is not None]
        return self.context.planner.given_back(self.key, self.state, there) if there else None

    async def decide(self, found: Observation) -> tuple[Write | Deletion, ...]:
        """Return the next steps."""
        self.observation = found
        self.state.ledger.keep(found.plan.requests)
        return self._next_steps()

    async def report(self) -> Outcome:
        """Return the outcome: there is no resource to say it."""
        return self.outcome()

    async def _whole(self, target: ContributesTo, obj: Object) -> Object | None:
        """Return the whole object: an apply would remove what it leaves out. Raises KubeError."""
        if excess_of(obj) is None:
            return obj
        ref = ref_of(target.kind.api, obj)
        found = await self.context.applier.read(ref)
        return found if metadata(found or {}).get("uid") == ref.uid else None
