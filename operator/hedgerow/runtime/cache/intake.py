"""Intake: takes the API server's answers to reads and writes into the caches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from hedgerow.kube.errors import Unreachable
from hedgerow.objects import metadata
from hedgerow.runtime.cache.store import Store, version_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from hedgerow.objects import ObjectRef
    from hedgerow.runtime.passes.observation import ResourcePlanner
    from hedgerow_schemas.base import Object


class CacheIntake(Struct, frozen=True):
    """Stores answers in the caches of one controller.

    `on_restored` is called when an answer is older than the object that was cached before.
    """

    planner: ResourcePlanner
    on_restored: Callable[[], object] = lambda: None

    def store(self, ref: ObjectRef) -> Store:
        """Return the store of an object: the resource, a child, or one with contributions."""
        return self.planner.cache.store(ref.api.kind, ref.namespace)

    def has_cached(self, ref: ObjectRef, answer: Object) -> bool:
        """Return whether an object is cached in the version of an answer, and in no other one."""
        cached = self.store(ref).get(ref.key)
        return cached is not None and version_of(cached) == version_of(answer)

    def is_owned_kind(self, ref: ObjectRef) -> bool:
        """Return whether objects of this kind are children, not the resource or contributed to."""
        kind = ref.api.kind
        is_resource = kind == self.planner.controller.resource.api.kind
        return not is_resource and not self.planner.cache.is_contributed_to(kind)

    def cached(self, ref: ObjectRef) -> Object | None:
        """Return the cached object or its stub, or None."""
        return self.store(ref).peek(ref.key)

    def absorb(self, ref: ObjectRef, answer: Object, before: Object | None = None) -> None:
        """Store the object of an answer, or forget it if no watch shows it as ours any more.

        Raises Unreachable if it is older than the object cached `before` the request: the API
        server's store was restored from a backup, and no list has shown that yet.
        """
        if before is not None and 0 < version_of(answer) < version_of(before):
            self.on_restored()
            raise Unreachable("versions went back: the store was restored", sent=True)
        if self.is_owned_kind(ref) and not self.planner.is_watched(answer):
            # It has no label of ours: no watch would tell when it is gone.
            self.forget_object(ref, ref.uid or metadata(answer)["uid"])
            return
        self.store(ref).absorb(answer)

    def forget_object(self, ref: ObjectRef, uid: str) -> None:
        """Forget the object with this uid."""
        self.store(ref).forget_object(ref.key, uid)
