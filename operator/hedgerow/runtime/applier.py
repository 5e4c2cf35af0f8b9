"""Applier: carries out planned writes, each an unforced apply or a guarded delete."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from hedgerow.fields import managed, ownership
from hedgerow.kube.errors import Conflict
from hedgerow.objects import ObjectRef, metadata
from hedgerow.plan.writes import normal_form, unguarded, with_normal_form
from hedgerow.runtime.heavy import aside
from hedgerow.runtime.metrics import Meter, Meters

if TYPE_CHECKING:
    from hedgerow.fields.paths import Tree
    from hedgerow.kube.client import Cluster
    from hedgerow.plan.writes import Deletion, Write
    from hedgerow_schemas.base import Object


USUAL, PATIENT = 10.0, 50.0
"""Seconds for an apply, all attempts together; the API server itself gives up after 60."""


@dataclass(frozen=True, slots=True)
class Applied:
    """The answer to an apply: the object, and whether it was made, changed or left."""

    obj: Object
    action: str


class Applier:
    """Writes as one field manager."""

    def __init__(self, cluster: Cluster, field_manager: str, meter: Meter | None = None) -> None:
        self._cluster = cluster
        self.field_manager = field_manager
        self._meter = meter or Meters().of(field_manager)

    async def apply(self, write: Write, before: Object | None) -> Applied:
        """Apply a child, create-only or guarded by its uid.

        Where the server spells the declaration in another way, a second apply leaves the mark
        of that on the object, or every restart would send it again; what is made once is not sent
        again anyway. Forced is only what claims fields. Raises KubeError.
        """
        try:
            answer = await self._apply(write)
        except Conflict as error:
            self._meter.wrote("conflicted")
            self._meter.conflicted(cause.manager for cause in error.causes)
            raise
        action = "created" if write.create else _action(before, answer)
        old, counted = before or {}, str(action)
        if action == "configured" and await aside(
            (old, answer), _gave_up, old, answer, self.field_manager
        ):
            counted = "released"
        self._meter.wrote(counted)
        holders = (holder.manager for leaf in write.claims for holder in leaf.holders)
        self._meter.claimed(holders)
        return Applied(answer, action)

    async def _apply(self, write: Write) -> Object:
        applied = await self._cluster.apply(
            write.ref.api, write.body, manager=self.field_manager, force=bool(write.claims)
        )
        answer = applied.object
        want = unguarded(write.body)
        mark = await aside((want, answer), self._mark, want, answer)
        if mark and not write.once:
            guarded = {"metadata": {**want["metadata"], "uid": metadata(answer)["uid"]}}
            marked = with_normal_form({**want, **guarded}, mark)
            again = await self._cluster.apply(write.ref.api, marked, manager=self.field_manager)
            answer = again.object
        return answer

    def _mark(self, want: Object, answer: Object) -> str:
        """Return the mark of how the server spells a declaration, as its answer shows it."""
        return normal_form(want, ownership.judge(want, answer, self.field_manager))

    async def apply_status(
        self, ref: ObjectRef, body: Object, version: str, *, is_large: bool = False
    ) -> Object:
        """Apply a resource's status, guarded by `version`. Raises KubeError, Stale among others.

        Where the resource is large, the server takes seconds to put the two together: it is waited
        for, since to ask again is to have it do so twice at a time.

        On a custom resource's status the server ignores a wrong uid (tried on 1.36): only the
        version keeps the write from a resource that was made anew under the name.
        """
        body = {**body, "metadata": {**body["metadata"], "resourceVersion": version}}
        try:
            applied = await self._cluster.apply(
                ref.api,
                body,
                manager=self.field_manager,
                subresource="status",
                timeout=PATIENT if is_large else USUAL,
            )
        except Conflict as error:
            self._meter.conflicted(cause.manager for cause in error.causes)
            raise
        return applied.object

    async def delete(self, deletion: Deletion) -> bool:
        """Delete exactly the object that was observed; False when it is gone. Raises KubeError."""
        ref = deletion.ref
        found = await self._cluster.delete(
            ref.api, ref.name, ref.namespace, uid=ref.uid, version=deletion.version
        )
        if found:
            self._meter.wrote("deleted")
        return found

    async def find(self, ref: ObjectRef) -> Object | None:
        """Return an object of that name, or None; the right to list will do. Raises KubeError."""
        fields = f"metadata.name={ref.name}"
        found = await self._cluster.list(ref.api, ref.namespace, fields=fields, page=1)
        return next(iter(found.items), None)

    async def read(self, ref: ObjectRef) -> Object | None:
        """Read an object by name, or None. Raises KubeError."""
        return await self._cluster.read(ref.api, ref.name, ref.namespace)


def _action(before: Object | None, after: Object) -> str:
    old = metadata(before or {}).get("resourceVersion")
    return "unchanged" if old == metadata(after).get("resourceVersion") else "configured"


def _gave_up(before: Object, after: Object, manager: str) -> bool:
    """Return whether the manager holds less than it did."""
    held, holds = (managed.entry(obj, manager) or {} for obj in (before, after))
    return not _within(held, holds)


def _within(part: Tree, whole: Tree) -> bool:
    return all(
        step in whole and _within(cast("Tree", below), cast("Tree", whole[step]))
        for step, below in part.items()
    )
