"""Reconciler: the passes over the resources of one controller, and their memory between passes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.kube.errors import Forbidden, Missing
from hedgerow.objects import metadata
from hedgerow.plan.status import reader_of
from hedgerow.runtime.passes.giving_back import GivingBack
from hedgerow.runtime.passes.resource_pass import Outcome, Pass
from hedgerow.runtime.passes.state import ResourceState

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hedgerow.contract import Key
    from hedgerow.runtime.passes.context import PassContext
    from hedgerow_schemas.base import Object


class Reconciler:
    """The passes of one controller, and the state of each resource between them."""

    def __init__(self, context: PassContext) -> None:
        self.context = context
        self.states: dict[Key, ResourceState] = {}
        self._gone: dict[Key, ResourceState] = {}
        """Of resources that are gone: the state of passes that write to abandoned objects."""

    async def reconcile(self, key: Key) -> Outcome:
        """Make one pass over a resource, and return how it ended.

        Raises KubeError if the server cannot be reached or asks us to wait. A refused request or a
        user's mistake becomes a condition instead; `runtime/passes/refusals.py` has the table.
        """
        given_back = await self._give_back(key)
        live = self.context.planner.cache.resource(key)
        if live is None:
            self._forget_resource(key)
            return given_back
        state = self._state(key, live)
        return (await self._pass(Pass(self.context, key, state))).combined(given_back)

    def begin_anew(self) -> Iterator[Key]:
        """Forget everything but children that were created once: no start is made again.

        It yields the key of each resource once its state is forgotten.
        """
        self._gone = {}
        self.context.publisher.begin_anew()
        for key, state in self.states.items():
            self.states[key] = state.begun_anew()
            yield key

    async def _give_back(self, key: Key) -> Outcome:
        """Give back contributions of earlier resources with this key; mostly there are none."""
        if not self.context.planner.controller.contributes:
            return Outcome()
        state = self._gone.setdefault(key, ResourceState(""))
        try:
            return await self._pass(GivingBack(self.context, key, state))
        finally:
            if not len(state.ledger) or not self.context.planner.abandoned(key):
                self._gone.pop(key, None)

    async def _pass(self, current: Pass) -> Outcome:
        """Return how a pass ended; with an empty outcome if nothing may be written, or not yet."""
        try:
            return await current.run() or Outcome()
        except Forbidden as error:
            if not error.terminating:
                raise
            current.state.namespace_terminating = True
            return Outcome()
        except Missing as error:
            if not error.served:
                raise
            # The namespace is gone, and the resource with it: the watch will report it soon.
            return Outcome(retry=True)

    def _forget_resource(self, key: Key) -> None:
        """Forget a resource that is gone."""
        self.states.pop(key, None)
        self.context.meter.contest(key, ())
        self.context.meter.miss(key, None)

    def _state(self, key: Key, live: Object) -> ResourceState:
        uid = metadata(live)["uid"]
        state = self.states.get(key)
        if state is None or state.uid != uid:
            state = ResourceState.from_status(uid, reader_of(self.context.planner.controller)(live))
            self.states[key] = state
        return state
