"""Bulk: managed fields of objects relabelled: read, tried out or written, compared and recorded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from msgspec.structs import replace

from hedgerow.cli.program import field_manager
from hedgerow.fields.applyconfiguration import versioned
from hedgerow.fields.managed_fields import entries
from hedgerow.kube.secret_errors import withholding
from hedgerow.objects import ObjectRef, identity, metadata
from hedgerow_tools.fields.relabelling import ValuesNeeded, changed, moves
from hedgerow_tools.fields.transfers import MoveRefused
from hedgerow_tools.moving.adoption import replace_managed_fields
from hedgerow_tools.moving.outcomes import FieldSource, moved, outcome_of, tried
from hedgerow_tools.objects.selection import UnknownObject
from hedgerow_tools.objects.writing import applied
from hedgerow_tools.render.holders import NOBODY, holder_words

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from hedgerow.kube.cluster import Cluster
    from hedgerow_schemas.base import Object
    from hedgerow_tools.fields.relabelling import Relabelling, Takeover
    from hedgerow_tools.moving.outcomes import ObjectFate, ObjectOutcome
    from hedgerow_tools.moving.undo import UndoFile


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """What is planned for one object: the change of its managed fields, or `why` there is none.

    `fate` is that of an object without a change.

    `to` gets the fields. `first` writes what has to be there before, or tries it as a dry run,
    and returns what is in the way. `resource` is the one that controls the object; it `yielded` the
    fields.
    """

    change: Relabelling | None = None
    to: str = ""
    why: str = ""
    fate: ObjectFate = "nothing"
    first: Callable[..., Awaitable[str]] | None = None
    resource: str = ""
    yielded: str = ""


if TYPE_CHECKING:
    Plan = Callable[[ObjectRef, Object], Awaitable[PlannedChange]]
    """Returns what is planned for a live object, which may have nothing but metadata."""


@dataclass(frozen=True, slots=True)
class Task:
    """A change of the managed fields of objects, one by one.

    With `dry_run` the server checks it and stores nothing. `whole` objects are read with their
    values, which are shown. `asked` is set for an adoption, `restoring` to undo. An object that is
    `required` and not there is an error.
    """

    cluster: Cluster
    dry_run: bool = True
    record: UndoFile | None = None
    asked: Takeover | None = None
    restoring: bool = False
    whole: bool = False
    required: bool = False

    async def carry_out(self, plan: Plan, ref: ObjectRef | UnknownObject) -> ObjectOutcome:
        """Return what became of an object. Raises KubeError if no object can be written."""
        if isinstance(ref, UnknownObject):
            return outcome_of(ref.ref, "failed", why=ref.why)
        yielded: dict[str, str] = {}

        async def attempt() -> ObjectOutcome:
            with withholding(ref.api):
                return await self._attempt(ref, plan, yielded)

        return replace(await tried(ref, attempt), **yielded)

    async def _attempt(self, ref: ObjectRef, plan: Plan, yielded: dict[str, str]) -> ObjectOutcome:
        """Return what became of an object; add what is written first, whatever comes after it."""
        live = await self.cluster.read_object(
            ref.api, ref.name, ref.namespace, partial=not self.whole
        )
        if live is None and self.required:
            where = f" in namespace {ref.namespace}; name another with -n" if ref.namespace else ""
            raise MoveRefused(f"it does not exist{where}")
        if live is None:
            return outcome_of(ref, "absent")
        is_first = self.asked is not None and self.asked.takes_first(live)
        if self.asked and is_first:
            live = await self._first_apply(ref, live)
        try:
            step = await plan(ref, live)
        except ValuesNeeded:
            live = await self.cluster.read_object(ref.api, ref.name, ref.namespace) or live
            step = await plan(ref, live)
        details = {"to": step.to, "resource": step.resource, "yielded": step.yielded}
        if step.first and (why := await step.first(dry_run=self.dry_run)):
            return outcome_of(ref, "kept", why=why)
        if step.first and not self.dry_run:
            yielded |= {"resource": step.resource, "yielded": step.yielded}
        if step.change is None:
            fate: ObjectFate = "changed" if step.first else step.fate
            return outcome_of(ref, fate, why=step.why, **details)
        if not (is_first and self.dry_run):
            await self.write(ref, live, step.change)
        sources = tuple(
            FieldSource(holder.manager, holder.operation, holder.subresource, fields=count)
            for holder, count in step.change.sources
        )
        return outcome_of(
            ref,
            "changed",
            fields=sum(source.fields for source in sources),
            sources=sources,
            moves=moved(moves(live, step.change)) if self.whole else (),
            **details,
        )

    async def _first_apply(self, ref: ObjectRef, live: Object) -> Object:
        """Apply nothing, so that the server records who held what before the first apply.

        As the command itself: as `kubectl` it would replace client-side apply's copy by nothing.
        """
        body = versioned(identity(replace(ref, uid=metadata(live)["uid"])), live)
        return await applied(self.cluster, ref, body, field_manager(), dry_run=self.dry_run)

    async def write(self, ref: ObjectRef, live: Object, change: Relabelling) -> Object:
        """Relabel an object's entries, and return it; raises MoveRefused if others are stored."""
        record = None if self.dry_run else self.record
        if record:
            await record.add(ref, live, change.before, change.after)
        after = await replace_managed_fields(
            self.cluster,
            ref.api,
            live,
            change.edits,
            restoring=self.restoring,
            dry_run=self.dry_run,
        )
        stored = changed(after, change)
        if stored is None:
            return after
        if record:
            await record.add(ref, live, change.before, stored)
        has = "would have" if self.dry_run else "has"
        holders = (holder for holder, *_ in entries({"metadata": {"managedFields": stored}}))
        words = ", ".join(map(holder_words, holders)) or NOBODY
        raise MoveRefused(
            f"the server stores other managed fields than it was sent: it {has} {words}"
        )
