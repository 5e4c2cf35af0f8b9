"""Updater: the owners of fields after a write, as in structured-merge-diff and the API server."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hedgerow_testing.memory.typed import (
    Path,
    PathSet,
    compare,
    fields_of,
    from_tree,
    merge,
    to_tree,
    with_named,
    without,
)

if TYPE_CHECKING:
    from hedgerow_testing.memory.schema import Object, TypedSchema

UNOWNED: PathSet = frozenset(
    {("f:apiVersion",), ("f:kind",), ("f:metadata",)}
    | {
        ("f:metadata", "f:" + name)
        for name in (
            "name",
            "namespace",
            "creationTimestamp",
            "selfLink",
            "uid",
            "clusterName",
            "generation",
            "managedFields",
            "resourceVersion",
        )
    }
)
MOST_UPDATERS = 10
ANCIENT = "ancient-changes"
BEFORE_FIRST_APPLY = "before-first-apply"


@dataclass(frozen=True, order=True)
class Manager:
    """The identity of a `managedFields` entry."""

    operation: str
    name: str
    version: str
    subresource: str = ""

    @property
    def identity(self) -> Identity:
        """An applier keeps its entry when it changes the version, an updater does not."""
        version = "" if self.operation == "Apply" else self.version
        return self.operation, self.name, version, self.subresource

    @property
    def shown(self) -> str:
        """The manager as a conflict's message names it."""
        with_subresource = f' with subresource "{self.subresource}"' if self.subresource else ""
        using = f" using {self.version}" if self.operation == "Update" else ""
        return f'"{self.name}"{with_subresource}{using}'


@dataclass(frozen=True)
class Entry:
    """One manager's fields and the second of its last change, None for one that changed nothing."""

    manager: Manager
    fields: PathSet
    time: int | None


Identity = tuple[str, str, str, str]
EntriesByManager = Mapping[Identity, Entry]


class Conflicts(Exception):  # noqa: N818 - upstream's word
    """Fields that an unforced apply would take from other managers."""

    def __init__(self, pairs: list[tuple[Manager, Path]]) -> None:
        super().__init__(pairs)
        self.pairs = pairs


def read_entries(
    managed: list[Object] | None, second: Callable[[str | None], int | None]
) -> dict[Identity, Entry]:
    """Read `metadata.managedFields`."""
    entries: dict[Identity, Entry] = {}
    for raw in managed or ():
        manager = Manager(
            raw["operation"], raw["manager"], raw["apiVersion"], raw.get("subresource", "")
        )
        fields = from_tree(raw["fieldsV1"])
        entries[manager.identity] = Entry(manager, fields, second(raw.get("time")))
    return entries


def written(entries: EntriesByManager, stamp: Callable[[int], str]) -> list[Object]:
    """Write `metadata.managedFields` in the server's order."""
    ordered = sorted(
        entries.values(),
        key=lambda e: (e.manager.operation, e.time or 0, e.manager),
    )
    return [_written(entry, stamp) for entry in ordered]


def apply(
    schema: TypedSchema,
    live: Any,
    config: Object,
    entries: EntriesByManager,
    manager: Manager,
    *,
    reset: PathSet = frozenset(),
    force: bool = False,
) -> tuple[Any, dict[Identity, Entry]]:
    """Lay a configuration over the live object; give the object and the entries, times unset.

    `reset` are the paths that this endpoint does not write. Raises Conflicts unless forced.
    """
    merged = merge(schema, live, config)
    last = entries.get(manager.identity)
    mine = frozenset(path for path in fields_of(schema, config) if not _below(path, reset))
    after = {**entries, manager.identity: Entry(manager, mine, None)}
    new = _pruned(schema, merged, last.fields, after) if last and last.fields else merged
    after = _taken(schema, live, new, after, manager, reset, force=force)
    return new, _owned(after)


def update(
    schema: TypedSchema,
    live: Any,
    new: Any,
    entries: EntriesByManager,
    manager: Manager,
    *,
    now: int,
    reset: PathSet = frozenset(),
) -> dict[Identity, Entry]:
    """Book what an update changed on its manager; give the entries."""
    difference = compare(schema, live, new).keep(lambda path: not _below(path, reset))
    after = _taken(schema, live, new, entries, None, reset, force=True)
    changed = frozenset(difference.modified | difference.added) - UNOWNED
    if changed:
        before = after.get(manager.identity)
        union = changed | before.fields if before else changed
        after[manager.identity] = Entry(manager, union, now)
    return _capped(_owned(after))


def _taken(
    schema: TypedSchema,
    live: Any,
    new: Any,
    entries: EntriesByManager,
    writer: Manager | None,
    reset: PathSet,
    *,
    force: bool,
) -> dict[Identity, Entry]:
    difference = compare(schema, live, new).keep(lambda path: not _below(path, reset))
    touched = frozenset(difference.modified | difference.added)
    others = [entry for key, entry in entries.items() if writer is None or key != writer.identity]
    pairs = [(entry.manager, path) for entry in others for path in entry.fields & touched]
    if pairs and not force:
        raise Conflicts(pairs)
    gone = touched | difference.removed
    after = dict(entries)
    for entry in others:
        after[entry.manager.identity] = Entry(entry.manager, entry.fields - gone, entry.time)
    return after


def _pruned(schema: TypedSchema, merged: Any, last: PathSet, entries: EntriesByManager) -> Any:
    """Remove fields that the manager no longer declares, unless somebody else owns them."""
    named_last = with_named(schema, last)
    bare = without(schema, merged, named_last)
    everything = with_named(schema, fields_of(schema, merged))
    owned = frozenset[Path]().union(*(entry.fields for entry in entries.values()))
    held = with_named(schema, fields_of(schema, bare)) | with_named(schema, owned)
    kept = without(schema, merged, everything - held)
    left = with_named(schema, fields_of(schema, kept))
    return without(schema, merged, (everything - left) & named_last)


def _owned(entries: EntriesByManager) -> dict[Identity, Entry]:
    stripped = {
        key: Entry(entry.manager, entry.fields - UNOWNED, entry.time)
        for key, entry in entries.items()
    }
    return {key: entry for key, entry in stripped.items() if entry.fields}


def _capped(entries: dict[Identity, Entry]) -> dict[Identity, Entry]:
    """Merge the oldest updaters when there are more than ten."""
    updaters = [entry for entry in entries.values() if entry.manager.operation == "Update"]
    surplus = len(updaters) - MOST_UPDATERS
    if surplus <= 0:
        return entries
    oldest = sorted(updaters, key=lambda entry: (entry.time or 0, entry.manager))[: surplus + 1]
    bucket = Manager("Update", ANCIENT, oldest[0].manager.version)
    fields = frozenset[Path]().union(*(entry.fields for entry in oldest))
    kept = {key: entry for key, entry in entries.items() if entry not in oldest}
    return {
        **kept,
        bucket.identity: Entry(bucket, fields, max(entry.time or 0 for entry in oldest)),
    }


def _below(path: Path, reset: PathSet) -> bool:
    return any(path[:depth] in reset for depth in range(1, len(path) + 1))


def _written(entry: Entry, stamp: Callable[[int], str]) -> Object:
    manager = entry.manager
    shown = {
        "manager": manager.name,
        "operation": manager.operation,
        "apiVersion": manager.version,
        "fieldsType": "FieldsV1",
        "fieldsV1": to_tree(entry.fields),
    }
    if entry.time is not None:
        shown["time"] = stamp(entry.time)
    return shown | ({"subresource": manager.subresource} if manager.subresource else {})
