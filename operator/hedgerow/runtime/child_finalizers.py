"""Child finalizers: ours are removed from children whose resource is gone.

So the children can be deleted. What the resource claimed of other objects is given back, except for
what the controller says remains.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.contract import Key
from hedgerow.kube.errors import KubeError
from hedgerow.objects import controller_of, is_terminating, metadata, ref_of
from hedgerow.plan.finalizers import finalization
from hedgerow.plan.oversized import oversize_of
from hedgerow.plan.writes import release
from hedgerow.runtime import refusals
from hedgerow.runtime.refusals import Reaction, RefusalLog, Refusals, RequestKind

if TYPE_CHECKING:
    from datetime import timedelta

    from hedgerow.contract import Claimable, Controller
    from hedgerow.plan.writes import Write
    from hedgerow.runtime.applier import Applier
    from hedgerow.runtime.cache.caches import Cache
    from hedgerow.runtime.large import PassLimits
    from hedgerow_schemas.base import ApiResource, Object, Resource


class Finalizers:
    """Removes one controller's finalizers and claims once their resources are deleted."""

    def __init__(
        self,
        controller: Controller[Resource],
        cache: Cache,
        applier: Applier,
        refusal_log: RefusalLog,
    ) -> None:
        self._controller = controller
        self._cache = cache
        self._applier = applier
        self._refusal_log = refusal_log
        self._refused: dict[Key, Refusals] = {}

    async def take_off(self, key: Key, limits: PassLimits) -> timedelta | None:
        """Remove our finalizers from the children of deleted resources with this key, and claims.

        A resource that is being deleted counts too. An orphaned child, which has no owner any more,
        is found under its own name. Return the time until a refused request is tried again, or
        None. Raises KubeError if the server cannot be reached.
        """
        if not (self._controller.child_finalizers or self._controller.claims):
            return None
        known = self._refused.pop(key, None) or Refusals()
        asked = {write.id: write for write in await self._due(key)}
        known.keep({child: _attempt(write) for child, write in asked.items()})
        try:
            for write in asked.values():
                await self._take_off(write, known, limits)
        finally:
            if known:
                self._refused[key] = known
        return known.due_in(self._refusal_log.now())

    async def _due(self, key: Key) -> list[Write]:
        live = self._cache.resource(key)
        present = None if live is None or is_terminating(live) else metadata(live)["uid"]
        manager, ours = self._applier.field_manager, self._controller.child_finalizers
        due = [
            (kind.api, child)
            for kind, child in self._cache.finalized(key)
            if present is None or controller_of(child).get("uid") != present
        ]
        whole = [(api, await self._whole(api, child)) for api, child in due]
        writes = [finalization(api, child, manager, ours) for api, child in whole if child]
        for claimable, claimed in self._claimed(key, is_gone=present is None):
            kind, obj = claimable.kind, await self._whole(claimable.kind.api, claimed)
            if obj and not is_terminating(obj):
                remains = claimable.remains(kind(obj), manager)
                writes.append(release(kind.api, obj, manager, remains))
        return [write for write in writes if write is not None]

    def _claimed(self, key: Key, *, is_gone: bool) -> list[tuple[Claimable, Object]]:
        """Return the objects of which nothing is to be claimed any more, of all that have this key.

        An object may be assigned to no resource any more; it is then found under its own key.
        """
        found = [*self._cache.astray(key), *(self._cache.claimable(key) if is_gone else ())]
        by_kind = {claimable.kind: claimable for claimable in self._controller.claims}
        return [(by_kind[kind], obj) for kind, obj in found]

    async def _whole(self, api: ApiResource, child: Object) -> Object | None:
        """Return the whole child: an apply would remove what it leaves out. Raises KubeError."""
        if oversize_of(child) is None:
            return child
        ref = ref_of(api, child)
        found = await self._applier.read(ref)
        return found if metadata(found or {}).get("uid") == ref.uid else None

    async def _take_off(self, write: Write, known: Refusals, limits: PassLimits) -> None:
        attempt = _attempt(write)
        if known.waiting(write.id, attempt, self._refusal_log.now()):
            return
        kind, name = write.id
        store = self._cache.child_store(kind, write.ref.namespace)
        before: Object | None = store.get(Key(write.ref.namespace, name))
        try:
            answer = (await self._applier.apply(write, before, limits)).obj
        except KubeError as error:
            if refusals.rule(RequestKind.FINALIZER, error).reaction is Reaction.PUT_OFF:
                raise
            self._refusal_log.record(
                known, write.id, attempt, request=RequestKind.FINALIZER, ref=write.ref, error=error
            )
            return
        known.clear(write.id)
        store.absorb(answer)


def _attempt(write: Write) -> str:
    """Return the version that the write is for; for another version it is tried again at once."""
    return str(metadata(write.body).get("resourceVersion", write.fingerprint))
