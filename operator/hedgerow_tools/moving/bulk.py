"""Bulk: managed fields of many objects relabelled: found, read, shown, written and recorded."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from msgspec.structs import replace

from hedgerow.cli.program import field_manager
from hedgerow.cli.targets import located, parted
from hedgerow.fields.sets import versioned
from hedgerow.kube.withholding import withholding
from hedgerow.objects import ObjectRef, identity, metadata
from hedgerow_schemas.base import ApiResource
from hedgerow_tools.fields.relabelling import ValuesNeeded, changed, restoration
from hedgerow_tools.moving.transfers import MoveRefused
from hedgerow_tools.moving.undo_file import AdoptedObject
from hedgerow_tools.moving.writing import ITS_OWN, ObjectOutcome, applied, tried
from hedgerow_tools.objects.listing import listed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from hedgerow.kube.cluster import Cluster
    from hedgerow.kube.discovery import ServedKinds
    from hedgerow_schemas.base import Object
    from hedgerow_tools.fields.relabelling import Relabelling, Takeover
    from hedgerow_tools.moving.undo_file import UndoFile
    from hedgerow_tools.moving.writing import ObjectFate

    Plan = Callable[[ObjectRef, Object], Relabelling | None]
    """Returns the change of a live object that has nothing but metadata."""


@dataclass(frozen=True, slots=True)
class FoundObjects:
    """The objects of a command, or why one cannot be named, and kinds that were not read."""

    objects: Sequence[ObjectRef | ObjectOutcome]
    unread: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Task:
    """A change of the managed fields of many objects, one by one.

    Without `write` it is only planned; with `dry_run` the server checks it and stores nothing.
    `asked` is set for an adoption.
    """

    cluster: Cluster
    write: bool = False
    dry_run: bool = False
    record: UndoFile | None = None
    asked: Takeover | None = None

    async def carry_out(self, plan: Plan, ref: ObjectRef | ObjectOutcome) -> ObjectOutcome:
        """Return what became of an object. Raises KubeError if no object can be written."""
        if isinstance(ref, ObjectOutcome):
            return ref

        async def attempt() -> ObjectOutcome:
            with withholding(ref.api):
                return await self._attempt(ref, plan)

        return await tried(ref, attempt)

    async def _attempt(self, ref: ObjectRef, plan: Plan) -> ObjectOutcome:
        live = await self.cluster.read(ref.api, ref.name, ref.namespace, partial=True)
        if live is None:
            return ObjectOutcome(ref, "absent")
        is_first = self.asked is not None and self.asked.takes_first(live)
        if self.asked and is_first:
            live = await self._first_apply(ref, live)
        try:
            change = plan(ref, live)
        except ValuesNeeded:
            live = await self.cluster.read(ref.api, ref.name, ref.namespace) or live
            change = plan(ref, live)
        if change is None:
            return ObjectOutcome(ref, "nothing")
        if self.write and not (is_first and self.dry_run):
            await self._write(ref, live, change)
        fields = sum(count for _, count in change.sources)
        return ObjectOutcome(ref, "changed", fields=fields, sources=change.sources)

    async def _first_apply(self, ref: ObjectRef, live: Object) -> Object:
        """Apply nothing, so that the server records who held what before the first apply.

        As the command itself: as `kubectl` it would replace client-side apply's copy by nothing.
        """
        body = versioned(identity(replace(ref, uid=metadata(live)["uid"])), live)
        dry_run = self.dry_run or not self.write
        return await applied(self.cluster, ref, body, field_manager(), dry_run=dry_run)

    async def _write(self, ref: ObjectRef, live: Object, change: Relabelling) -> None:
        record = None if self.dry_run else self.record
        if record:
            await record.add(_recorded(ref, live, change.before, change.after))
        after = await self.cluster.replace_managed_fields(
            ref.api, live, change.edits, manager=field_manager(), dry_run=self.dry_run
        )
        found = changed(after, change)
        if record and found is not None:
            await record.add(_recorded(ref, live, change.before, found))


def _recorded(
    ref: ObjectRef, live: Object, before: Iterable[Object], after: Iterable[Object]
) -> AdoptedObject:
    uid: str = metadata(live)["uid"]
    return AdoptedObject(ref.api, ref.namespace, ref.name, uid, list(before), list(after))


async def undo(task: Task, records: Sequence[AdoptedObject]) -> ObjectOutcome:
    """Return what became of an object whose records, the oldest first, are undone.

    One record that fits is enough: the others may never have been carried out.
    """
    outcomes: list[ObjectOutcome] = []
    for record in reversed(records):
        ref = ObjectRef(record.api, record.namespace, record.name)
        outcomes.append(await task.carry_out(_restoring(record), ref))
    order: tuple[ObjectFate, ...] = ("changed", "nothing", "absent", "failed")
    return min(outcomes, key=lambda outcome: order.index(outcome.fate))


def _restoring(record: AdoptedObject) -> Plan:
    def plan(_: ObjectRef, live: Object) -> Relabelling | None:
        if metadata(live)["uid"] != record.uid:
            raise MoveRefused("it was deleted and created again since: the new one stays as it is")
        try:
            return restoration(live, record.before, record.after)
        except (AttributeError, TypeError):  # anybody may have edited the file
            raise MoveRefused("its record is no list of managed fields entries") from None

    return plan


async def named(cluster: Cluster, words: Iterable[str], namespace: str | None) -> FoundObjects:
    """Return the objects that KIND/NAME mean. Raises BadParameter and KubeError."""
    return FoundObjects([await located(cluster, parted(word), namespace) for word in words])


async def declared(
    cluster: Cluster, manifests: Iterable[Object], namespace: str | None
) -> FoundObjects:
    """Return the objects of manifests, each once, in their order. Raises KubeError."""
    refused: list[ObjectOutcome] = []
    kinds: dict[tuple[str, str], ApiResource | str] = {}
    refs: dict[ObjectRef, None] = {}
    for manifest in manifests:
        version, kind = key = str(manifest.get("apiVersion")), str(manifest.get("kind"))
        meta = metadata(manifest)
        name, within = (meta.get(field) for field in ("name", "namespace"))
        if key not in kinds:
            kinds[key] = await _kind(cluster, *key)
        api = kinds[key]
        if isinstance(api, str) or not isinstance(name, str) or not name:
            why = api if isinstance(api, str) else "it has no metadata.name"
            ref = ObjectRef(ApiResource(version, kind, ""), "", str(name or ""))
            refused.append(ObjectOutcome(ref, "failed", why=why))
            continue
        there = str(within or namespace or cluster.namespace)
        refs[ObjectRef(api, there if api.namespaced else "", name)] = None
    return FoundObjects([*refused, *refs])


async def _kind(cluster: Cluster, group_version: str, kind: str) -> ApiResource | str:
    """Return a kind, or why there is none."""
    try:
        return await cluster.resource(group_version, kind)
    except ITS_OWN as error:
        return error.message


async def selected(
    cluster: Cluster,
    served: ServedKinds,
    is_meant: Callable[[Object], bool],
    *,
    namespace: str = "",
    labels: str = "",
) -> FoundObjects:
    """Return the objects of a namespace, or without one of the cluster, that `is_meant`."""

    def reduce(item: Object) -> Object | None:
        meta = metadata(item)
        place = {name: meta.get(name, "") for name in ("namespace", "name")}
        return place if is_meant(item) else None

    everything = await listed(cluster, served, reduce, namespace=namespace, labels=labels)
    refs = [ObjectRef(api, made["namespace"], made["name"]) for api, made in everything.objects]
    return FoundObjects(refs, unread=everything.unread)
