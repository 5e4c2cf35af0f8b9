"""Reads: the objects that one pass reads by name, because no watch shows them."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING

from hedgerow.contract import Keep
from hedgerow.encoding import encode
from hedgerow.kube.errors import Forbidden, Missing, Undecodable
from hedgerow.objects import ChildId, ObjectRef, controller_of, ref_of
from hedgerow.plan.ledger import EntryState
from hedgerow.plan.too_large import excess, stub_of
from hedgerow.runtime.cache.caches import owner_key

if TYPE_CHECKING:
    from hedgerow.contract import Key
    from hedgerow.runtime.passes.context import PassContext
    from hedgerow.runtime.passes.observation import Observation
    from hedgerow.runtime.passes.state import ResourceState
    from hedgerow_schemas.base import Object

MOST_READS = 8
"""The most reads of one object in one pass; if it changes faster, the next pass goes on."""
UNREADABLE = Forbidden, Missing, Undecodable
"""The errors of a read without the right to it, of an absent kind, and of an object that cannot be
decoded: what is known of the object is kept."""


class Reads:
    """The reads of one pass over the resource with this key."""

    def __init__(self, context: PassContext, key: Key, state: ResourceState) -> None:
        self._context, self._key, self._state = context, key, state
        self._number: Counter[ChildId] = Counter()
        self._looked_for: set[ChildId] = set()
        self.unwatched: dict[ChildId, Object] = {}
        """The children without our label, as they were read: no watch shows them."""

    def may_read(self, target: ChildId) -> bool:
        """Return whether a target may be read once more in this pass; count the read."""
        self._number[target] += 1
        return self._number[target] <= MOST_READS

    async def read_uncached(self) -> None:
        """Read the objects that the caches lack, before a pass observes. Raises KubeError."""
        await self._unanswered()
        await self._taken_names()
        await self._left_out()

    async def child(self, ref: ObjectRef) -> Object | None:
        """Read an object by name, and return it, or None. Raises KubeError.

        Of a child it is remembered whose it is.
        """
        obj = await self._named(ref)
        if not self._context.intake.is_owned_kind(ref):
            return obj
        state, child = self._state, ChildId(ref.api.kind, ref.name)
        # A child left by an earlier resource of this name is not taken: it will be deleted soon.
        ours = obj is not None and self._key in owner_key(self._context.planner.controller, obj)
        taken = obj is not None and not ours
        if taken:
            state.ledger.record_taken(child, self._context.planner.clock.now())
        elif state.ledger.entry(child).state is EntryState.TAKEN:
            state.ledger.clear(child)
        state.ledger.reads_names |= obj is not None
        return obj

    async def read_kept_children(self, observation: Observation) -> bool:
        """Read each kept child that the caches lack, once in a pass; return if one is or was there.

        A child that has lost our label looks deleted to the watch. One that has lost its owner
        reference as well is a stray: it is never written.
        """
        plan_input, state, is_news = observation.plan_input, self._state, False
        kept = [child for child in observation.desired.children if isinstance(child, Keep)]
        named = {ChildId(child.kind.api.kind, child.name) for child in kept} - {*plan_input.live}
        state.strays = {target: obj for target, obj in state.strays.items() if target in named}
        for child in kept:
            target = ChildId(child.kind.api.kind, child.name)
            if target in plan_input.live or target in self._looked_for:
                continue
            self._looked_for.add(target)
            ref = plan_input.ref(child.kind.api, child.name)
            try:
                obj = await self._named(ref)
            except UNREADABLE:
                continue
            before = state.strays.pop(target, None)
            if obj is not None and controller_of(obj).get("uid") != state.uid:
                state.strays[target] = child.kind(obj)
            is_news |= obj is not None or before is not None
        return is_news

    async def _named(self, ref: ObjectRef) -> Object | None:
        """Read an object by name; cache it, or keep it for this pass if no watch shows it.

        A child of another resource is neither cached nor kept: if it were cached here, the watch
        would not queue that resource for it. Raises KubeError.
        """
        intake = self._context.intake
        before = intake.cached(ref)
        obj = await self._context.applier.read_object(ref)
        if obj is not None:
            owner = owner_key(self._context.planner.controller, obj)
            if not (owner and intake.is_owned_kind(ref)) or self._key in owner:
                intake.absorb(ref, obj, before)
            self.note(ref, obj)
            return obj
        self.unwatched.pop(ChildId(ref.api.kind, ref.name), None)
        intake.forget_object(ref, ref.uid)
        return None

    async def deleted(self, ref: ObjectRef) -> None:
        """Read a child that was deleted, if no watch tells when it is gone. Raises KubeError."""
        if ChildId(ref.api.kind, ref.name) in self.unwatched:
            with suppress(*UNREADABLE):
                await self._named(ref)

    async def _unanswered(self) -> None:
        """Read the children whose creation got no response: the watch may not show them yet.

        A plan without them might create one too many, such as another Job of a CronJob.
        """
        ledger = self._state.ledger
        for child in tuple(ledger.unknown):
            with suppress(*UNREADABLE):
                await self._named(self._ref(child))
            ledger.unknown.discard(child)

    async def _taken_names(self) -> None:
        """Read the objects of others that have a child's name, but not too often."""
        ledger, now = self._state.ledger, self._context.planner.clock.now()
        for child in ledger.in_state(EntryState.TAKEN):
            if not ledger.entry(child).is_due(now):
                continue
            try:
                await self.child(self._ref(child))
            except UNREADABLE:
                ledger.record_taken(child, now)

    def _ref(self, child: ChildId) -> ObjectRef:
        controller = self._context.planner.controller
        api = next(kind.api for kind in controller.owns if kind.api.kind == child.kind)
        return ObjectRef(api, controller.home(self._key), child.name)

    async def _left_out(self) -> None:
        """Read and cache the objects that were left out, and for which there is room again."""
        home = self._context.planner.controller.home(self._key)
        for kind, obj in self._context.planner.cache.to_read_again(self._key, home):
            ref = ref_of(kind.api, obj)
            with suppress(Undecodable):
                if whole := await self._context.applier.find(ref):
                    self._context.intake.store(ref).put_read(whole)

    def note(self, ref: ObjectRef, obj: Object) -> None:
        """Take in a newer version of an object that no watch shows as ours."""
        target, planner = ChildId(ref.api.kind, ref.name), self._context.planner
        self.unwatched.pop(target, None)
        if not self._context.intake.is_owned_kind(ref) or planner.is_watched(obj):
            return
        if self._key in owner_key(planner.controller, obj):
            too_large, manager = excess(obj, encode(obj)), self._context.applier.field_manager
            self.unwatched[target] = stub_of(obj, too_large, manager) if too_large else obj
