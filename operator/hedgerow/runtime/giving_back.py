"""Giving back: what a resource that is gone claimed of other objects, but for what remains.

What was claimed is found by the object alone: `Claimable.of` says of which resource it is, and its
managed fields say what we hold. So nothing has to keep the resource, and a start finds what an
earlier process left.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.contract import Key
from hedgerow.kube.errors import KubeError
from hedgerow.objects import is_terminating, metadata, ref_of
from hedgerow.plan.ledger import Ledger
from hedgerow.plan.oversized import oversize_of
from hedgerow.plan.writes import release
from hedgerow.runtime import refusals
from hedgerow.runtime.refusals import Reaction, RequestKind

if TYPE_CHECKING:
    from datetime import timedelta

    from hedgerow.contract import Claimable, Controller
    from hedgerow.plan.writes import Write
    from hedgerow.runtime.applier import Applier
    from hedgerow.runtime.cache.caches import Cache
    from hedgerow.runtime.clock import Clock
    from hedgerow.runtime.large import PassLimits
    from hedgerow.runtime.metrics import Meter
    from hedgerow_schemas.base import ApiResource, Object, Resource


class GivingBack:
    """Gives back the claims of one controller's resources once these are deleted."""

    def __init__(
        self,
        controller: Controller[Resource],
        cache: Cache,
        applier: Applier,
        clock: Clock,
        meter: Meter,
    ) -> None:
        self._controller = controller
        self._cache = cache
        self._applier = applier
        self._clock, self._meter = clock, meter
        self._ledgers: dict[Key, Ledger] = {}

    async def give_back(self, key: Key, limits: PassLimits) -> timedelta | None:
        """Give back what deleted resources with this key claimed.

        A resource that is being deleted counts too. Return the time until a refused request is
        tried again, or None. Raises KubeError if the server cannot be reached.
        """
        if not self._controller.claims:
            return None
        ledger = self._ledgers.pop(key, None) or Ledger()
        asked = {write.id: write for write in await self._due(key)}
        ledger.keep(asked.values())
        try:
            for write in asked.values():
                await self._give_back(write, ledger, limits)
        finally:
            if ledger.refused:
                self._ledgers[key] = ledger
        return ledger.due_in(ledger.refused, self._clock.now())

    async def _due(self, key: Key) -> list[Write]:
        manager = self._applier.field_manager
        writes: list[Write | None] = []
        for claimable, claimed in self._claimed(key):
            kind, obj = claimable.kind, await self._whole(claimable.kind.api, claimed)
            if obj and not is_terminating(obj):
                remains = claimable.remains(kind(obj), manager)
                writes.append(release(kind.api, obj, manager, remains))
        return [write for write in writes if write is not None]

    def _claimed(self, key: Key) -> list[tuple[Claimable, Object]]:
        """Return the objects of which nothing is to be claimed any more, of all that have this key.

        An object may be assigned to no resource any more; it is then found under its own key.
        """
        live = self._cache.resource(key)
        is_gone = live is None or is_terminating(live)
        found = [*self._cache.astray(key), *(self._cache.claimable(key) if is_gone else ())]
        by_kind = {claimable.kind: claimable for claimable in self._controller.claims}
        return [(by_kind[kind], obj) for kind, obj in found]

    async def _whole(self, api: ApiResource, obj: Object) -> Object | None:
        """Return the whole object: an apply would remove what it leaves out. Raises KubeError."""
        if oversize_of(obj) is None:
            return obj
        ref = ref_of(api, obj)
        found = await self._applier.read(ref)
        return found if metadata(found or {}).get("uid") == ref.uid else None

    async def _give_back(self, write: Write, ledger: Ledger, limits: PassLimits) -> None:
        if ledger.waits(write, self._clock.now()):
            return
        kind, name = write.id
        store = self._cache.child_store(kind, write.ref.namespace)
        before: Object | None = store.get(Key(write.ref.namespace, name))
        try:
            answer = (await self._applier.apply(write, before, limits)).obj
        except KubeError as error:
            if refusals.rule(RequestKind.RELEASE, error).reaction is Reaction.PUT_OFF:
                raise
            refusals.record(
                ledger,
                write,
                error,
                request=RequestKind.RELEASE,
                clock=self._clock,
                meter=self._meter,
            )
            return
        ledger.clear(write.id)
        store.absorb(answer)
