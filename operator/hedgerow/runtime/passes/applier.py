"""Applier: carries out planned writes: applies, forced only for claimed fields, and deletions."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from msgspec import Struct
from msgspec.structs import replace

from hedgerow.fields import managed_fields, ownership
from hedgerow.fields.applyconfiguration import declaring
from hedgerow.fields.ownership import covers
from hedgerow.kube.errors import UNDECODABLE, AlreadyExists, Conflict, Undecodable
from hedgerow.kube.secret_errors import withholding
from hedgerow.objects import ObjectRef, metadata
from hedgerow.plan.writes import admitted_digest, rewritten, settles, unguarded

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hedgerow.fields.ownership import Leaf
    from hedgerow.fields.paths import Tree
    from hedgerow.fields.sets import FieldPath
    from hedgerow.kube.object_api import ObjectApi
    from hedgerow.plan.writes import Deletion, Write
    from hedgerow.runtime.meters import Meter
    from hedgerow_schemas.base import Object


class AppliedWrite(Struct, frozen=True):
    """The response to an apply: the object, and whether it was created, configured or unchanged.

    `settled`: nothing is left to do about the object, though the server may have rewritten leaves.
    `admitted` is a digest of the object as the server respelled it.
    """

    obj: Object
    action: str
    admitted: str = ""
    rewritten: tuple[Leaf, ...] = ()
    settled: bool = False


class Applier:
    """Writes as one field manager."""

    def __init__(self, cluster: ObjectApi, field_manager: str, meter: Meter) -> None:
        self._cluster = cluster
        self.field_manager = field_manager
        self._meter = meter

    async def apply(self, write: Write, before: Object | None) -> AppliedWrite:
        """Apply a child or a status: create-only, or with the uid or version; return the response.

        Only a write that claims fields is forced. Raises KubeError.
        """
        try:
            with withholding(write.ref.api):
                applied = await self._apply(write)
        except Conflict as error:
            self._count(write, "conflicted")
            self._meter.conflicted(cause.manager for cause in error.causes)
            raise
        answer = applied.obj
        action = "created" if write.create else _action(before, answer)
        given_up = not write.is_status and _gave_up(before or {}, answer, self.field_manager)
        self._count(write, "released" if given_up else action)
        holders = (holder.manager for leaf in write.claims for holder in leaf.holders)
        self._meter.claimed(holders)
        return replace(applied, action=action)

    def _count(self, write: Write, action: str) -> None:
        """Count a write of a child; the metric leaves out statuses."""
        if not write.is_status:
            self._meter.wrote(action)

    async def _apply(self, write: Write) -> AppliedWrite:
        applied = await self._cluster.apply(
            write.ref.api,
            write.body,
            manager=self.field_manager,
            force=bool(write.claims),
            subresource=write.subresource,
        )
        return self._judged(write, applied.object)

    def _judged(self, write: Write, answer: Object) -> AppliedWrite:
        if write.is_status:
            is_stored = covers(write.body["status"], answer.get("status"))
            return AppliedWrite(answer, "configured", settled=write.is_complete and is_stored)
        want = unguarded(write.body)
        verdict = ownership.judge(want, answer, self.field_manager)
        return AppliedWrite(
            answer,
            "configured",
            admitted_digest(want, verdict),
            rewritten(want, verdict),
            settles(write, answer, verdict),
        )

    async def take_over(self, ref: ObjectRef, live: Object, places: Iterable[FieldPath]) -> Object:
        """Apply the fields that we hold in exactly this version, and these; return the object.

        No value changes, and nothing is forced. Raises KubeError.
        """
        body = declaring(live, self.field_manager, places)
        with withholding(ref.api):
            applied = await self._cluster.apply(ref.api, body, manager=self.field_manager)
        self._meter.wrote("configured")
        return applied.object

    async def would_create(self, ref: ObjectRef, body: Object) -> None:
        """Raise KubeError unless the server would create this object if its name were free.

        The server validates and admits an object before it looks whether one of its name exists.
        So a dry run that is refused for that alone was accepted otherwise.
        """
        with withholding(ref.api):
            try:
                await self._cluster.dry_run_create(
                    ref.api, ref.namespace, body, manager=self.field_manager
                )
            except AlreadyExists as error:
                if not error.is_about(ref.name):
                    raise

    async def delete(self, deletion: Deletion) -> bool:
        """Delete exactly the observed object; return False if it is gone. Raises KubeError."""
        ref = deletion.ref
        with withholding(ref.api):
            is_deleted = await self._cluster.delete(
                ref.api, ref.name, ref.namespace, uid=ref.uid, version=deletion.version
            )
        if is_deleted:
            self._meter.wrote("deleted")
        return is_deleted

    async def find(self, ref: ObjectRef, *, labels: str = "", fields: str = "") -> Object | None:
        """Return an object by name that the selectors select, or None. Raises KubeError.

        It needs only the right to list.
        """
        fields = ",".join(filter(None, (f"metadata.name={ref.name}", fields)))
        listing = await self._cluster.list(
            ref.api, ref.namespace, labels=labels, fields=fields, page=1
        )
        if listing.undecoded:
            raise Undecodable(UNDECODABLE, request=str(ref))
        return next(iter(listing.items), None)

    async def read_object(self, ref: ObjectRef) -> Object | None:
        """Return an object read by name, or None. Raises KubeError."""
        return await self._cluster.read_object(ref.api, ref.name, ref.namespace)


def _action(before: Object | None, after: Object) -> str:
    old = metadata(before or {}).get("resourceVersion")
    return "unchanged" if old == metadata(after).get("resourceVersion") else "configured"


def _gave_up(before: Object, after: Object, manager: str) -> bool:
    """Return whether the manager gave up fields."""
    held, holds = (managed_fields.entry(obj, manager) or {} for obj in (before, after))
    return not _within(held, holds)


def _within(part: Tree, whole: Tree) -> bool:
    return all(
        step in whole and _within(cast("Tree", below), cast("Tree", whole[step]))
        for step, below in part.items()
    )
