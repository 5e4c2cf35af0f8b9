"""Store: the cached objects of one watch, indexed, and never older than our own last write."""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Mapping
from itertools import count
from typing import TYPE_CHECKING

from hedgerow.contract import Key, unreduced
from hedgerow.objects import metadata, version_number
from hedgerow.plan.writes import content
from hedgerow.runtime.cache.door import AT_ONCE, OVERHEAD, CachedObject, Shelf
from hedgerow_schemas.base import Object

if TYPE_CHECKING:
    from hedgerow.kube.errors import KubeError
    from hedgerow.runtime.cache.door import Filed

ANEW_AFTER = 1.0
"""Seconds to wait before beginning anew after a RestoredError: two servers of different stores may
contradict each other on and on."""
Index = Callable[[Object], Iterable[Hashable]]
StoreChange = tuple[Object | None, Object | None]
"""The object cached before and the one cached now; None if there is none."""


def key_of(obj: Object) -> Key:
    """Return the namespace and name under which an object is cached."""
    meta = metadata(obj)
    return Key(meta.get("namespace", ""), meta["name"])


def version_of(obj: Object) -> int:
    """Return an object's resourceVersion as a number; 0 if it has none."""
    return version_number(str(metadata(obj).get("resourceVersion", "")))


class RestoredError(Exception):
    """A list is older than the cache: the API server's store was restored from a backup.

    Neither the cached objects nor their versions mean anything then.
    """


def _parts(steps: Iterable[tuple[StoreChange | None, int]]) -> Iterator[list[StoreChange]]:
    """Gather changes into parts, by the bytes of the object that each step is about."""
    part: list[StoreChange] = []
    left = AT_ONCE
    for change, size in steps:
        if change is not None:
            part.append(change)
        left -= size + OVERHEAD
        if left <= 0:
            yield part
            part, left = [], AT_ONCE
    yield part


class _Indices:
    """The keys of objects by the values that each index has for them."""

    def __init__(self, indices: Mapping[str, Index]) -> None:
        self._indices = dict(indices)
        self.keys: dict[str, dict[Hashable, set[Key]]] = {name: {} for name in indices}

    def values(self, obj: Object) -> Filed:
        """Return an object's values in each index, in the order of the indices."""
        return tuple(tuple(dict.fromkeys(index(obj))) for index in self._indices.values())

    def file(self, key: Key, before: Filed, now: Filed) -> None:
        """Move a key from its values in each index to those that it has now."""
        if before == now:
            return
        for indexed, values in zip(self.keys.values(), before, strict=False):
            for value in values:
                indexed[value].discard(key)
                if not indexed[value]:
                    del indexed[value]
        for indexed, values in zip(self.keys.values(), now, strict=False):
            for value in values:
                indexed.setdefault(value, set()).add(key)


class Store:
    """Objects by namespace and name.

    It has two sources: the watch, in order, and the responses to our own writes, which may come
    before or after the watch reports them. `version` is how far the watch has come. A response at
    or below it is old, and so is an event below the cached version. An object that is not let in is
    kept as a stub, see `Door`. `reads` reduces an object that was not read by the watch.
    """

    def __init__(
        self,
        indices: Mapping[str, Index] | None = None,
        shelf: Shelf | None = None,
        reads: Callable[[Object], Object] = unreduced,
    ) -> None:
        self.shelf = shelf or Shelf()
        self._door = self.shelf.door
        self._reads = reads
        self._entries: dict[Key, CachedObject] = {}
        self._indices = _Indices(indices or {})
        self._overtaken: dict[Key, int] = {}
        """The versions of the cached objects of which the current list has an older form."""
        self._changes = count(1)
        self.version = 0
        self.refused: KubeError | None = None
        """Why the API server has not shown the kind for a while: it is absent, or forbidden."""

    def __len__(self) -> int:
        """Return the number of cached objects."""
        return len(self._entries)

    def get(self, key: Key) -> Object | None:
        """Return the cached object, or None; it is not to be changed."""
        entry = self._entries.get(key)
        return None if entry is None else self._door.open(entry)

    def peek(self, key: Key) -> Object | None:
        """Return the cached object as `get` does, but do not keep it decoded."""
        entry = self._entries.get(key)
        return None if entry is None else self._door.peek(entry)

    def has(self, obj: Object) -> bool:
        """Return whether an object is cached in this version or a newer one."""
        entry = self._entries.get(key_of(obj))
        return entry is not None and not _is_older(entry, obj)

    def content_version(self, key: Key) -> int:
        """Return a number that changes with a cached object, but not with its status alone.

        Unlike a resourceVersion it has never belonged to another content, not even after the API
        server's store was restored from a backup. It is 0 if the object is not cached.
        """
        entry = self._entries.get(key)
        return 0 if entry is None else entry.content_version

    def keys(self) -> tuple[Key, ...]:
        """Return the keys of all cached objects."""
        return tuple(self._entries)

    def all(self) -> list[Object]:
        """Return all objects, ordered by key."""
        return [self._door.open(self._entries[key]) for key in sorted(self._entries)]

    def by(self, index: str, value: Hashable) -> list[Object]:
        """Return the objects that an index has under `value`, ordered by key."""
        keys = self._indices.keys[index].get(value)
        return [self._door.open(self._entries[key]) for key in sorted(keys)] if keys else []

    def meet(self, obj: Object) -> StoreChange | None:
        """Store an object of a list that is being read; return the change, if any.

        An object older than the cached one has one of two reasons: our own write, or a restored
        store. Only the version at the end of the list tells which.
        """
        key = key_of(obj)
        entry = self._entries.get(key)
        self._overtaken.pop(key, None)
        if entry is not None and version_of(obj) < entry.version:
            self._overtaken[key] = entry.version
        return self._store_newer(obj)

    def replacing(
        self,
        items: Iterable[Object],
        version: str,
        met: Container[Key] = (),
    ) -> Iterator[list[StoreChange]]:
        """Store a whole list in parts, so that other work can run in between; yield the changes.

        `met` are the keys of objects that `meet` has stored already.

        `version` changes only at the end; until then responses to our own writes are stored if they
        are newer than the cached objects. Raises RestoredError if the list is older than the watch
        has come, or has an object in an older version than it must have.
        """
        number, fresh = version_number(version), {key_of(item): item for item in items}
        yield from _parts((self.meet(obj), self._entries[key].size) for key, obj in fresh.items())
        overtaken, self._overtaken = self._overtaken, {}
        listed = (cached for key, cached in overtaken.items() if key in met or key in fresh)
        if 0 < number < self.version or any(cached <= number for cached in listed):
            raise RestoredError
        number = max(self.version, number)
        yield from _parts(self._parting(number, fresh, met))
        self.version = max(self.version, number)

    def _parting(
        self, number: int, *listed: Container[Key]
    ) -> Iterator[tuple[StoreChange | None, int]]:
        """Forget what is not listed, unless it is newer than the list: we wrote it after that."""
        for key in tuple(self._entries):
            entry = self._entries.get(key)
            if entry is None or entry.version > number or any(key in keys for keys in listed):
                yield None, 0
            else:
                yield self._forgotten(key, entry), entry.size

    def put(self, obj: Object, version: str = "") -> StoreChange | None:
        """Store the object of an ADDED or MODIFIED event; return the change, None if it is old.

        `version` is that of the event, if the object may be newer: it was read after the event.
        """
        self.version = max(self.version, version_number(version) or version_of(obj))
        return self._store_newer(obj)

    def remove(self, obj: Object) -> StoreChange | None:
        """Take in a DELETED event; a newer object of the same name stays."""
        key, version = key_of(obj), version_of(obj)
        self.version = max(self.version, version)
        entry = self._entries.get(key)
        return None if entry is None or entry.version > version else self._forgotten(key, entry)

    def bookmark(self, version: str) -> None:
        """Record how far the watch has come."""
        self.version = max(self.version, version_number(version))

    def absorb(self, obj: Object) -> None:
        """Store the response to our own write, unless the watch has already passed it."""
        if version_of(obj) > self.version:
            self._store_newer(self._reads(obj))

    def put_read(self, obj: Object) -> None:
        """Store an object that was read by name, reduced; unless a newer one is cached."""
        self._store_newer(self._reads(obj))

    def forget_object(self, key: Key, uid: str) -> None:
        """Remove an object that is gone according to the server, unless its uid is another now."""
        entry = self._entries.get(key)
        if entry is not None and entry.uid == uid:
            self._forgotten(key, entry)

    def _store_newer(self, obj: Object) -> StoreChange | None:
        """Store an object if it is newer than the cached one."""
        key = key_of(obj)
        before = self._entries.get(key)
        if before is not None and not _is_older(before, obj):
            return None
        old = None if before is None else self._door.peek(before)
        entry = CachedObject(self.shelf, key, version_of(obj), metadata(obj).get("uid"))
        entry.filed = self._indices.values(obj)
        self._indices.file(key, () if before is None else before.filed, entry.filed)
        self._entries[key] = entry
        self._door.enter(entry, obj, before)
        # A stub never equals the object: the parts that it leaves out may have changed.
        entry.content_version = next(self._changes)
        if before is not None and old is not None and content(old) == content(obj):
            entry.content_version = before.content_version
        return old, self._door.peek(entry)

    def _forgotten(self, key: Key, entry: CachedObject) -> StoreChange:
        """Remove an object; return the change."""
        old = self._door.peek(entry)
        self._indices.file(key, entry.filed, ())
        del self._entries[key]
        self._door.leave(entry)
        return old, None


def _is_older(entry: CachedObject, obj: Object) -> bool:
    """Return whether an object is newer than the cached one, or the whole of this stub."""
    version = version_of(obj)
    return version > entry.version or (version == entry.version and entry.limit is not None)
