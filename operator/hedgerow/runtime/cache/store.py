"""Store: the cached objects of one watch, indexed, and never older than our own last write."""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Mapping
from itertools import count
from typing import TYPE_CHECKING

from hedgerow.objects import metadata
from hedgerow.plan.oversized import Oversize, oversize_of
from hedgerow.plan.writes import content
from hedgerow_schemas.base import Object

if TYPE_CHECKING:
    from hedgerow.contract import Key
    from hedgerow.runtime.cache.budget import Scale

AT_ONCE = 100
"""Objects of a list to store between two turns of the event loop: a few milliseconds."""
Index = Callable[[Object], Iterable[Hashable]]
Change = tuple[Object | None, Object | None]
"""The object cached before and the one cached now; None if there is none."""


def key_of(obj: Object) -> Key:
    """Return the namespace and name under which an object is cached."""
    meta = metadata(obj)
    return meta.get("namespace", ""), meta["name"]


def version_of(obj: Object) -> int:
    """Return an object's resourceVersion as a number; 0 if it has none.

    Versions of one kind are comparable as integers (KEP-5504).
    """
    text = str(metadata(obj).get("resourceVersion", ""))
    return int(text) if text.isdecimal() else 0


def _is_news(obj: Object, cached: Object) -> bool:
    """Return whether an object is newer than the cached one, or the whole of a reduced one."""
    version, before = version_of(obj), version_of(cached)
    return version > before or (version == before and oversize_of(cached) is not None)


def _parts(keys: Iterable[Key]) -> Iterator[list[Key]]:
    """Split the current keys into parts."""
    whole = list(keys)
    return (whole[start : start + AT_ONCE] for start in range(0, len(whole), AT_ONCE))


class Store:
    """Objects by namespace and name.

    It has two sources: the watch, in order, and the responses to our own writes, which may come
    before or after the watch reports them. `version` is how far the watch has come. A response at
    or below it is old, and so is an event below the cached version. `rewound`: a list has shown
    that the API server's store was restored from a backup; the reader resets it. With a `scale`,
    objects are weighed, and only a part is kept of those that are too large.
    """

    def __init__(
        self, indices: Mapping[str, Index] | None = None, scale: Scale | None = None
    ) -> None:
        self._scale = scale
        self._objects: dict[Key, Object] = {}
        self._indices = dict(indices or {})
        self._indexed: dict[str, dict[Hashable, set[Key]]] = {name: {} for name in self._indices}
        self._older: dict[Key, Object] = {}
        """Objects of the current list that differ from the cached ones and are older."""
        self._contents: dict[Key, int] = {}
        self._changes = count(1)
        self.version = 0
        self.rewound = False

    def __len__(self) -> int:
        """Return the number of cached objects."""
        return len(self._objects)

    def get(self, key: Key) -> Object | None:
        """Return the cached object, or None."""
        return self._objects.get(key)

    def content_version(self, key: Key) -> int:
        """Return a number that changes with a cached object, but not with its status alone.

        Unlike a resourceVersion it has never belonged to another content, not even after the API
        server's store was restored from a backup. It is 0 if the object is not cached.
        """
        return self._contents.get(key, 0)

    def keys(self) -> tuple[Key, ...]:
        """Return the keys of all cached objects."""
        return tuple(self._objects)

    def all(self) -> list[Object]:
        """Return all objects, ordered by key."""
        return [self._objects[key] for key in sorted(self._objects)]

    def by(self, index: str, value: Hashable) -> list[Object]:
        """Return the objects that an index has under `value`, ordered by key."""
        return [self._objects[key] for key in sorted(self._indexed[index].get(value, ()))]

    def replace(self, items: Iterable[Object], version: str) -> list[Change]:
        """Store a whole list; return all changes, including deletions that no event reported."""
        return [change for part in self.replacing(items, version) for change in part]

    def meet(self, obj: Object) -> Change | None:
        """Store an object of a list that is being read; return the change, if any.

        An object older than the cached one has one of two reasons: our own write, or a restored
        store. Only the version at the end of the list tells which, so it is kept until then.
        """
        key = key_of(obj)
        self._older.pop(key, None)
        change = self._take(obj)
        if change is None and obj != self._objects[key]:
            self._older[key] = obj
        return change

    def replacing(
        self,
        items: Iterable[Object],
        version: str,
        met: Container[Key] = (),
        *,
        rewound: bool = False,
    ) -> Iterator[list[Change]]:
        """Store a whole list in parts, so that other work can run in between; yield the changes.

        `met` are the keys of objects that `meet` has stored already.

        `version` changes only at the end; until then responses to our own writes are stored if they
        are newer than the cached objects. If versions were `rewound`, cached versions mean nothing:
        the list replaces everything, and `rewound` is set. The same happens if the list has an
        object in an older version than it must have.
        """
        told = int(version) if version.isdecimal() else 0
        fresh = {key: item for key, item in self._older.items() if key in met}
        fresh |= {key_of(item): item for item in items}
        self._older = {}
        rewound = rewound or any(self._outlives(item, told) for item in fresh.values())
        if rewound:
            self.rewound, self.version = True, 0
        told = max(self.version, told)
        for keys in _parts(fresh):
            taken = (self._take(fresh[key], anyway=rewound) for key in keys)
            yield [change for change in taken if change]
        for keys in _parts(self._objects):
            gone = (key for key in keys if key not in fresh and key not in met)
            dropped = (self._drop(key, None if rewound else told) for key in gone)
            yield [change for change in dropped if change]
        self.version = max(self.version, told)

    def put(self, obj: Object) -> Change | None:
        """Store the object of an ADDED or MODIFIED event; return the change, None if it is old."""
        self.version = max(self.version, version_of(obj))
        return self._take(obj)

    def remove(self, obj: Object) -> Change | None:
        """Take in a DELETED event; a newer object of the same name stays."""
        key, version = key_of(obj), version_of(obj)
        self.version = max(self.version, version)
        old = self._objects.get(key)
        if old is None or version_of(old) > version:
            return None
        self._set(key, None)
        return old, None

    def bookmark(self, version: str) -> None:
        """Record how far the watch has come."""
        self.version = max(self.version, int(version) if version.isdecimal() else 0)

    def absorb(self, obj: Object) -> None:
        """Store the response to our own write, unless the watch has already passed it."""
        if version_of(obj) > self.version:
            self._take(obj)

    def adopt(self, obj: Object) -> None:
        """Store an object that was read by name, which the watch does not show.

        No event reports its deletion: it stays until `forget`, so it must be read again.
        """
        self._take(obj)

    def forget(self, key: Key, uid: str) -> None:
        """Remove an object that is gone according to the server, unless its uid is another now."""
        old = self._objects.get(key)
        if old is not None and metadata(old).get("uid") == uid:
            self._set(key, None)

    def reduce(self, key: Key, oversize: Oversize) -> None:
        """Keep only a part of a cached object."""
        obj = self._objects[key]
        if self._scale is not None and oversize_of(obj) is None:
            self._objects[key] = self._scale.reduce((self, key), obj, oversize)

    def _outlives(self, item: Object, told: int) -> bool:
        """Return whether the cached object is newer, and a list of version `told` must have it."""
        old = self._objects.get(key_of(item))
        return old is not None and version_of(item) < version_of(old) <= told

    def _drop(self, key: Key, told: int | None) -> Change | None:
        """Remove an object that a list lacks, unless it is newer: we wrote it after the list."""
        old = self._objects.get(key)
        if old is None or (told is not None and version_of(old) > told):
            return None
        self._set(key, None)
        return old, None

    def _take(self, obj: Object, *, anyway: bool = False) -> Change | None:
        """Store an object if it is newer than the cached one; `anyway`: if it differs at all."""
        key = key_of(obj)
        old = self._objects.get(key)
        if old is not None and (old == obj if anyway else not _is_news(obj, old)):
            return None
        self._set(key, obj)
        return old, self._objects[key]

    def _set(self, key: Key, obj: Object | None) -> None:
        old = self._objects.get(key)
        if self._scale is not None and obj is not None:
            obj = self._scale.weigh((self, key), obj)
        for name, index in self._indices.items():
            filed = self._indexed[name]
            for value in set(index(old)) if old is not None else ():
                filed[value].discard(key)
                if not filed[value]:
                    del filed[value]
            for value in index(obj) if obj is not None else ():
                filed.setdefault(value, set()).add(key)
        if obj is None:
            del self._objects[key]
            self._contents.pop(key, None)
        else:
            self._objects[key] = obj
            if old is None or content(old) != content(obj):
                self._contents[key] = next(self._changes)
        if self._scale is not None:
            self._scale.settle((self, key) if obj is None else None)
