"""Door: which objects are cached whole in a process, and which of them stay decoded.

Of an object that is too large by itself (`plan.too_large`) a stub is cached. All objects together
may take so many bytes, which are counted exactly; beyond that, stubs are cached of the largest
objects of the namespace that takes the most, as far as these take less. Objects that somebody asked
for lately are decoded, all others are deflated JSON.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

import structlog

from hedgerow.encoding import encode
from hedgerow.plan.too_large import MOST_VALUES, Excess, excess, most_values, readable, stub_of
from hedgerow.runtime.cache.packing import Packing

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable

    from hedgerow.contract import Key
    from hedgerow.plan.too_large import SizeLimit
    from hedgerow_schemas.base import Object

    Filed = tuple[tuple[Hashable, ...], ...]

MIB: Final = 1024 * 1024
UNLIMITED: Final = 1024 * MIB
"""Bytes for the caches of a process without a memory limit."""
OVERHEAD: Final = 2048
"""Bytes that each object takes besides its JSON: its indices, and the memory of passes."""
DECODED_BYTES: Final = 5 * MIB
"""The most bytes of JSON of the objects that stay decoded: those of some 2,000 Deployments."""
DECODED_VALUES: Final = 180_000
"""The most values of these. Decoded, each takes some 100 bytes, however few it has in JSON."""
LOW: Final = 0.9
"""The part of the budget up to which objects that were left out are read again."""
GAIN: Final = 1024
"""The bytes that a stub must take less than its object does when it is packed."""
AT_ONCE: Final = 256 * 1024
"""The bytes of JSON, and `OVERHEAD` for each object, that are stored or forgotten with a list, or
packed or left out for one object, between two turns of the event loop: some 20 ms."""
STEP: Final = 1.05
"""The growth after which it is logged again that there is nothing more to leave out."""

log = structlog.get_logger(__name__)


class CachedObject:
    """One cached object: decoded, packed, or both; and values that need no decoding.

    `limit` says why it is a stub; it is None for a whole object. `filed` are its values in each
    index, in the order of the indices. `size` are the bytes of its JSON, `taken` those that it
    takes now.
    """

    __slots__ = (
        "content_version", "filed", "key", "limit", "obj", "packed", "shelf", "size", "taken",
        "uid", "values", "version",
    )  # fmt: skip

    def __init__(self, shelf: Shelf, key: Key, version: int, uid: Any) -> None:
        self.shelf, self.key, self.version, self.uid = shelf, key, version, uid
        self.limit: SizeLimit | None = None
        self.obj: Object | None = None
        self.packed = b""
        self.size = self.values = self.taken = self.content_version = 0
        self.filed: Filed = ()


class Shelf:
    """The rules of the door for the objects of one store.

    `concerned` returns the keys of the resources that an object concerns; without it, all objects
    are let in whole. A stub keeps the status of `manager`. Those that `give_way` may be left out to
    make room for others. Those that `stay` decoded are asked for by each pass. `controller` is
    named in the log.
    """

    def __init__(
        self,
        door: Door | None = None,
        concerned: Callable[[Object], Iterable[Key]] | None = None,
        *,
        manager: str = "",
        give_way: bool = False,
        stay: bool = False,
        controller: str = "",
    ) -> None:
        self.door = door or Door()
        self.is_bounded = concerned is not None
        self.concerned: Callable[[Object], Iterable[Key]] = concerned or (lambda _: ())
        self.manager = manager
        self.give_way, self.stay = give_way, stay
        self.controller = controller
        self.packing = Packing()
        self.on_left_out: Callable[[Object], object] = lambda _: None
        """Called with the stub of an object that was cached and is left out now."""


class _Namespace:
    """What the objects of a namespace take that may be left out, and which of them are large."""

    def __init__(self) -> None:
        self.taken = 0
        self.large: defaultdict[int, dict[CachedObject, tuple[Key, ...]]] = defaultdict(dict)
        """By the bytes that they take, in steps of `GAIN`: the objects, and whom they concern."""
        self.together: defaultdict[tuple[Key, ...], dict[CachedObject, None]] = defaultdict(dict)
        """The same objects, by whom they concern."""

    def add(self, entry: CachedObject, concerned: tuple[Key, ...]) -> None:
        """Take an object for a large one."""
        self.large[entry.taken // GAIN][entry] = concerned
        self.together[concerned][entry] = None

    def pop(self, entry: CachedObject) -> tuple[Key, ...]:
        """Take an object for a large one no more; return whom it concerns, if it was one."""
        size = entry.taken // GAIN
        alike = self.large.get(size)
        if alike is None or entry not in alike:
            return ()
        concerned = alike.pop(entry)
        together = self.together[concerned]
        del together[entry]
        if not alike:
            del self.large[size]
        if not together:
            del self.together[concerned]
        return concerned


class Door:
    """Counts the cached bytes of one process, and decides which objects are cached whole."""

    def __init__(self, most: int = UNLIMITED, decoded: int = DECODED_BYTES) -> None:
        """`most` is the bytes of all cached objects, `decoded` those of the decoded ones."""
        self.most, self._most_decoded = most, decoded
        self.taken = 0
        """The bytes that all cached objects take."""
        self.stubs: dict[str, int] = {"bytes": 0, "values": 0, "sum": 0}
        """The number of stubs, by the limit that their objects exceed."""
        self._namespaces: defaultdict[str, _Namespace] = defaultdict(_Namespace)
        self._decoded: OrderedDict[CachedObject, None] = OrderedDict()
        """The decoded objects, the one asked for last at the end, but for those that stay so."""
        self._decoded_bytes = self._decoded_values = 0
        self._told_at = most

    def has_room(self, size: int) -> bool:
        """Return whether there is room for an object of so many bytes, which was left out."""
        return self.taken + size + OVERHEAD <= LOW * self.most

    def enter(self, entry: CachedObject, obj: Object, before: CachedObject | None) -> None:
        """Let an object in, or a stub of it, in the place of the one `before`."""
        if before is not None:
            self.leave(before)
        text = encode(obj)
        too_large = self._excess(entry.shelf, obj, text, before)
        if too_large is None:
            self._put(entry, obj, text)
        else:
            stub = _stub(entry, obj, too_large)
            self._put(entry, stub, encode(stub), too_large.of)
            if before is None or before.limit != too_large.of:
                _tell(entry, too_large)
        self._make_room(entry)

    def leave(self, entry: CachedObject) -> None:
        """Note that an object is no longer cached."""
        self._count(entry, 0)
        if entry in self._decoded:
            self._undecoded(entry)
            del self._decoded[entry]
        if entry.limit is not None:
            self.stubs[entry.limit] -= 1

    def open(self, entry: CachedObject) -> Object:
        """Return an object that somebody asks for: it stays decoded for a while."""
        obj = entry.obj
        if obj is None:
            obj = entry.shelf.packing.unpack(entry.packed)
            self._decode(entry, obj)
        elif entry in self._decoded:
            self._decoded.move_to_end(entry)
        return obj

    def peek(self, entry: CachedObject) -> Object:
        """Return an object that does not stay decoded for that."""
        return entry.shelf.packing.unpack(entry.packed) if entry.obj is None else entry.obj

    def _excess(
        self, shelf: Shelf, obj: Object, text: bytes, before: CachedObject | None
    ) -> Excess | None:
        if not shelf.is_bounded:
            return None
        too_large = excess(obj, text)
        was_left_out = before is not None and before.limit == "sum" and len(text) > GAIN
        if too_large is None and was_left_out and not self.has_room(len(text)):
            return Excess(len(text), self.most, "sum")
        return too_large

    def _put(
        self, entry: CachedObject, obj: Object, text: bytes, limit: SizeLimit | None = None
    ) -> None:
        entry.size, entry.values = len(text), min(most_values(text), MOST_VALUES)
        entry.packed, entry.limit = b"", limit
        concerned: tuple[Key, ...] = ()
        if limit is not None:
            self.stubs[limit] += 1
        elif entry.shelf.give_way and entry.size > GAIN:
            concerned = tuple(entry.shelf.concerned(obj)) or (entry.key,)
        self._count(entry, entry.size + OVERHEAD, concerned)
        self._decode(entry, obj)

    def _count(self, entry: CachedObject, taken: int, concerned: tuple[Key, ...] = ()) -> None:
        more = taken - entry.taken
        self.taken += more
        if not entry.shelf.give_way:
            entry.taken = taken
            return
        namespace = self._namespaces[entry.key[0]]
        namespace.taken += more
        concerned = namespace.pop(entry) or concerned
        entry.taken = taken
        if concerned and taken > OVERHEAD + GAIN:
            namespace.add(entry, concerned)
        if not namespace.taken:
            del self._namespaces[entry.key[0]]

    def _decode(self, entry: CachedObject, obj: Object) -> None:
        """Keep an object decoded, and pack those that nobody has asked for lately."""
        entry.obj = obj
        if entry.shelf.stay:
            return
        self._decoded[entry] = None
        self._decoded_bytes += entry.size
        self._decoded_values += entry.values
        while self._decoded_bytes > self._most_decoded or self._decoded_values > DECODED_VALUES:
            if len(self._decoded) == 1:
                return
            oldest, _ = self._decoded.popitem(last=False)
            self._undecoded(oldest)
            self._pack(oldest)
            oldest.obj = None

    def _undecoded(self, entry: CachedObject) -> None:
        self._decoded_bytes -= entry.size
        self._decoded_values -= entry.values

    def _pack(self, entry: CachedObject) -> None:
        if not entry.packed and entry.obj is not None:
            entry.packed = entry.shelf.packing.pack(entry.obj)
            self._count(entry, len(entry.packed) + OVERHEAD)

    def _make_room(self, new: CachedObject) -> None:
        """Leave out the largest objects of the namespace that takes the most, until all fit in.

        They are packed first. Objects of the same resource go with them: it is not managed without
        them anyway. Of other namespaces nothing is left out: they take less.
        """
        if self.taken > self.most and new.shelf.give_way:
            self._pack(new)  # else there might always be one to pack, and none to leave out
            namespace = max(self._namespaces.values(), key=attrgetter("taken"))
            left, concerned = AT_ONCE, ()
            while self.taken > self.most and left > 0 and (large := namespace.large):
                entry = next(iter(namespace.together.get(concerned) or large[max(large)]))
                left -= entry.size + OVERHEAD
                if not entry.packed:
                    self._pack(entry)
                    continue
                whom = namespace.pop(entry)
                if self._leave_out(entry):
                    concerned = whom
        if self.taken > self._told_at:
            taken, most = readable(self.taken), readable(self.most)
            log.error("caches are over the budget of memory", taken=taken, most=most)
        self._told_at = max(self.most, self.taken * STEP)

    def _leave_out(self, entry: CachedObject) -> bool:
        """Cache a stub in the place of an object, if that takes less; return whether it does."""
        obj, too_large = self.peek(entry), Excess(entry.size, self.most, "sum")
        stub = _stub(entry, obj, too_large)
        text = encode(stub)
        if len(text) > len(entry.packed) - GAIN:
            return False
        self.leave(entry)
        self._put(entry, stub, text, "sum")
        number = self.stubs["sum"]
        if not number & (number - 1):  # the first one, the second, the fourth, and so on
            log.warning(
                "objects are left out of the caches",
                count=number,
                namespace=entry.key[0],
                most=readable(self.most),
            )
        entry.shelf.on_left_out(stub)
        return True


def _stub(entry: CachedObject, obj: Object, too_large: Excess) -> Object:
    return stub_of(obj, too_large, entry.shelf.manager, entry.shelf.concerned(obj))


def _tell(entry: CachedObject, too_large: Excess) -> None:
    log.warning(
        "object is too large",
        controller=entry.shelf.controller,
        object="/".join(filter(None, entry.key)),
        has=too_large.number,
        most=too_large.most,
        of=too_large.of,
    )
