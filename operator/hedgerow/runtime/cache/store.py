"""Store: the cached objects of one watch, indexed, and never older than our own last write."""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from hedgerow.objects import metadata
from hedgerow.plan.oversized import Excess, excess_of
from hedgerow_schemas.base import Object

if TYPE_CHECKING:
    from hedgerow.contract import Key
    from hedgerow.runtime.cache.budget import Scale

AT_ONCE = 100
"""Objects of a list that are taken in between two turns of the event loop: a few milliseconds."""
Index = Callable[[Object], Iterable[Hashable]]
Change = tuple[Object | None, Object | None]
"""What was cached before and what is cached now; None for what is not there."""


def key_of(obj: Object) -> Key:
    """Return the namespace and name under which an object is cached."""
    meta = metadata(obj)
    return meta.get("namespace", ""), meta["name"]


def version_of(obj: Object) -> int:
    """Return an object's resourceVersion as the number it is; 0 when it has none.

    Versions of one kind are comparable as integers (KEP-5504).
    """
    text = str(metadata(obj).get("resourceVersion", ""))
    return int(text) if text.isdecimal() else 0


def _is_news(obj: Object, cached: Object) -> bool:
    """Return whether an object is newer than the cached one, or the whole of which that is part."""
    version, before = version_of(obj), version_of(cached)
    return version > before or (version == before and excess_of(cached) is not None)


def _parts(keys: Iterable[Key]) -> Iterator[list[Key]]:
    """Part the keys that there are now."""
    whole = list(keys)
    return (whole[start : start + AT_ONCE] for start in range(0, len(whole), AT_ONCE))


class Store:
    """Objects by namespace and name.

    Two sources feed it: the watch, in order, and the answers to our own writes, which may come
    before or after the watch tells of them. `version` is how far the watch has told; an answer
    at or below it is old news, and an event below what is cached is too. `rewound` when a list has
    shown that the API server's store was restored, until somebody takes note. With a `scale`,
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
        """Of a list that is under way: what is not as it is cached, and older."""
        self.version = 0
        self.rewound = False

    def __len__(self) -> int:
        """Count the cached objects."""
        return len(self._objects)

    def get(self, key: Key) -> Object | None:
        """Return the cached object, or None."""
        return self._objects.get(key)

    def keys(self) -> tuple[Key, ...]:
        """Return the keys of all that is cached."""
        return tuple(self._objects)

    def by(self, index: str, value: Hashable) -> list[Object]:
        """Return the objects that an index files under `value`, ordered by key."""
        return [self._objects[key] for key in sorted(self._indexed[index].get(value, ()))]

    def replace(self, items: Iterable[Object], version: str) -> list[Change]:
        """Take in a whole list: give every difference, deletions that no event told of included."""
        return [change for part in self.replacing(items, version) for change in part]

    def meet(self, obj: Object) -> Change | None:
        """Take in an object of a list that is under way: give the difference, if any.

        How far the watch has told is known only when the list is at its end. Until then it cannot
        be said of one that is older than what is cached, by our own write or by a store that was
        restored, which of the two it is.
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
        """Take in a whole list part by part, so that other work comes in between.

        `met` are the keys of those that were taken in as they came.

        Until it is at its end the watch has told of nothing new: answers to our own writes are
        taken in on the way, as long as they are newer than what is cached. Where versions were
        `rewound`, those of what is cached tell nothing: the list is taken as it is, and `rewound`
        stays noted. So it is where the list shows an older form than it would have to.
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
        """Take in an ADDED or MODIFIED event: give the difference, or None for old news."""
        self.version = max(self.version, version_of(obj))
        return self._take(obj)

    def remove(self, obj: Object) -> Change | None:
        """Take in a DELETED event; an object made anew since stays."""
        key, version = key_of(obj), version_of(obj)
        self.version = max(self.version, version)
        old = self._objects.get(key)
        if old is None or version_of(old) > version:
            return None
        self._set(key, None)
        return old, None

    def bookmark(self, version: str) -> None:
        """Note how far the watch has told."""
        self.version = max(self.version, int(version) if version.isdecimal() else 0)

    def absorb(self, obj: Object) -> None:
        """Take in the answer to our own write, unless the watch is past it already."""
        if version_of(obj) > self.version:
            self._take(obj)

    def adopt(self, obj: Object) -> None:
        """Take in an object that was read by name, which the watch does not show.

        No event tells of its end: it stays until `forget`, so it has to be read again.
        """
        self._take(obj)

    def forget(self, key: Key, uid: str) -> None:
        """Drop an object that the server says is gone, unless it was made anew since."""
        old = self._objects.get(key)
        if old is not None and metadata(old).get("uid") == uid:
            self._set(key, None)

    def reduce(self, key: Key, excess: Excess) -> None:
        """Keep a part of a cached object only."""
        obj = self._objects[key]
        if self._scale is not None and excess_of(obj) is None:
            self._objects[key] = self._scale.reduce((self, key), obj, excess)

    def _outlives(self, item: Object, told: int) -> bool:
        """Return whether a newer form is cached that a list of the version `told` has to show."""
        old = self._objects.get(key_of(item))
        return old is not None and version_of(item) < version_of(old) <= told

    def _drop(self, key: Key, told: int | None) -> Change | None:
        """Drop what a list does not have; what is newer was written by us after it was made."""
        old = self._objects.get(key)
        if old is None or (told is not None and version_of(old) > told):
            return None
        self._set(key, None)
        return old, None

    def _take(self, obj: Object, *, anyway: bool = False) -> Change | None:
        """Take in what is newer than what is cached, or anything that is not the same."""
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
        else:
            self._objects[key] = obj
        if self._scale is not None:
            self._scale.settle((self, key) if obj is None else None)
