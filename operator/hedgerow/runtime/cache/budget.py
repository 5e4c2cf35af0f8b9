"""Budget: how much memory the caches may take, and which objects are left out beyond it.

Objects are weighed when they are cached. An object over the limit for one object is kept only in
part. If all together weigh more than the budget, the heaviest resources with their children are
kept in part. `plan.oversized` decides which ones, and which part. Passes over them check now and
then whether there is room again; then the whole objects are cached.
"""

from __future__ import annotations

import re
from collections import OrderedDict, defaultdict
from pathlib import Path, PurePosixPath
from sys import getsizeof
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, cast

import structlog

from hedgerow.contract import Key
from hedgerow.encoding import encode
from hedgerow.fields.paths import is_map
from hedgerow.objects import Salvaged
from hedgerow.plan import oversized
from hedgerow.plan.oversized import Family, Oversize, readable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from hedgerow_schemas.base import Object


_BEYOND_UCS2: Final = re.compile(rb"[\xf0-\xf4]")
_EMPTY, _MAP, _LIST, _ITEM, _FEW = 72, 208, 72, 104, 56
"""Bytes that CPython 3.11 takes for `{}`, for a map of up to five fields, for a list, for each
further field or item, and for a value of these five fields."""
_SMALL, _USUAL = 8 * 1024, 10
"""Bytes of JSON, and the most bytes that each of them may be estimated to take once decoded."""
_CONTAINERS: Final[frozenset[type]] = frozenset({dict, list})
_MANY: Final = 16
"""A map with more fields than this is one whose keys somebody gave, such as a ConfigMap's data."""
_COUNTED: Final = 2000
"""The most maps, lists and values that are counted one by one, in up to half a millisecond."""


def weight(content: bytes) -> int:
    """Return about how many bytes a JSON text takes once it is decoded.

    It counts characters, which is a hundred times faster than decoding. The result is 0.8 to 2.8
    times the true size, 1.3 times for most objects, and more for text with JSON inside strings. The
    size of the text alone tells little: decoded JSON may take up to 16 times its bytes.
    """
    count = content.count
    empty, commas = count(b"{}"), count(b",")
    maps = count(b"{") - empty
    few = min(commas, 4 * maps)
    return (
        _text(content)
        + _EMPTY * empty
        + _MAP * maps
        + _LIST * count(b"[")
        + _FEW * few
        + _ITEM * (commas - few)
    )


def weight_of(obj: Mapping[str, Any]) -> int:
    """Return about how many bytes a decoded object takes.

    To encode a small one and to count characters takes a third of the time of asking each of its
    values. These are asked where strings may have the characters that are counted, so that the
    estimate is forty times too high: in a larger object, or in one that weighs too much for its
    bytes. If it has too many values as well, the estimate is good enough.
    """
    content = encode(obj)
    estimate = weight(content)
    if len(content) <= _SMALL and estimate <= _USUAL * len(content):
        return estimate
    counted = _counted(obj)
    return estimate if counted is None else counted


def _counted(obj: Mapping[str, Any]) -> int | None:
    """Return the bytes of an object, value by value; None if it has too many.

    Keys count in maps of many fields only, where they are names that somebody gave: objects of one
    kind share the names of their fields.
    """
    size, left = getsizeof(obj), _COUNTED
    waiting: list[Any] = [obj]
    while waiting:
        value = waiting.pop()
        if is_map(value):
            if len(value) > _MANY:
                size += sum(map(getsizeof, value))
            value = value.values()
        for inner in cast("Iterable[Any]", value):
            size += getsizeof(inner)
            if type(inner) in _CONTAINERS:
                left -= 1 + len(inner)
                waiting.append(inner)
        if left < 0:
            return None
    return size


def _text(content: bytes) -> int:
    """Return the bytes of the strings: one wide character makes the whole string wide."""
    if content.isascii():
        return len(content)
    return (4 if _BEYOND_UCS2.search(content) else 2) * len(content)


MIB: Final = 1024 * 1024
RESERVE: Final = 320 * MIB
"""Bytes of the process's limit that are not for caches: 80 MiB for the program, up to 190 MiB for
an admission review, and the temporary memory of a pass over a large object."""
UNLIMITED: Final = 1024 * MIB
"""Bytes for the caches of a process without a limit."""
OBJECTS: Final = 24
"""One object may take the budget divided by this: 8 MiB if the limit is 512 MiB."""
BESIDE: Final = 6
"""What is decoded and may be packed, and children that a large pass reads in whole, may each take
the budget divided by this."""
LOW: Final = 0.9
"""The part of the budget to which the caches are reduced, and up to which they fill again."""
STEP: Final = 1.05
"""If a sweep leaves the caches over the budget, sweep again at this factor of their weight."""
LARGE_FROM: Final = 256 * 1024
"""Bytes of a resource and its children from which its passes run one at a time, and beside the
loop. A pass over this many takes about 8 ms of CPU; one over a usual BlueGreen, of 45 KiB, 2.
Their objects are never packed: decoding them would hold the loop."""
DECODED: Final = 26 * MIB
"""Bytes of the objects that stay decoded because somebody asked for them lately: those of about
420 BlueGreens. A sixth of the budget, if that is less. The others are packed."""
OVERHEAD: Final = 2048
"""Bytes that each object takes besides itself: indices, and what passes remember about it."""
STUB: Final = 4096
"""Assumed bytes of an object of which only a part is kept."""

log = structlog.get_logger(__name__)


def most_for_caches(limit: int | None) -> int:
    """Return the bytes for caches if the process may take `limit`; at least a quarter of it."""
    return UNLIMITED if limit is None else max(limit - RESERVE, limit // 4)


class Shelf(Protocol):
    """The part of a store that the budget uses."""

    def pack(self, key: Key) -> int:
        """Keep a cached object packed until somebody asks for it; return its bytes."""
        ...

    def reduce(self, key: Key, oversize: Oversize) -> None:
        """Keep only a part of a cached object."""
        ...


ShelfPlace = tuple[Shelf, "Key"]


class Kept(NamedTuple):
    """The weights of one cached object: now, once there is room, and of the whole object."""

    family: Family
    weight: int
    wanted: int
    whole: int
    reducible: bool
    packable: bool = True

    @property
    def is_packed(self) -> bool:
        """Whether the object, of which all is kept, is packed."""
        return self.weight < self.whole

    @property
    def decoded(self) -> Kept:
        """The weights of the object once it is decoded."""
        return self._replace(weight=self.whole, wanted=self.whole)

    def packed(self, size: int) -> Kept:
        """Return the weights of the object once it is packed into so many bytes."""
        weight = min(size + OVERHEAD, self.whole)
        return self._replace(weight=weight, wanted=weight)

    @property
    def gain(self) -> int:
        """The bytes that keeping only a part would free, at least.

        What is kept of an object is not packed, so a small packed object is left as it is.
        """
        stub = STUB if self.weight == self.whole else 2 * STUB
        return max(0, self.weight - stub) if self.reducible else 0


class Budget:
    """Weighs the objects in all caches of one process, and has those packed that nobody needs."""

    def __init__(self, most: int = UNLIMITED) -> None:
        self.most = most
        self.bound = most // OBJECTS
        self.weight = 0
        self.reduced: dict[str, int] = {"object": 0, "sum": 0, "undecodable": 0}
        """The number of objects of which only a part is kept, by reason."""
        self.on_room: dict[str, Callable[[Key], object]] = {}
        """By controller: a function that is called with the key of a resource that was left out."""
        self._places: dict[ShelfPlace, Kept] = {}
        self._decoded: OrderedDict[ShelfPlace, None] = OrderedDict()
        """The objects that are decoded and may be packed, the one asked for last at the end. Those
        that a list brought, and that nobody has asked for yet, are at the beginning."""
        self._decoded_weight = 0
        self.most_decoded = min(DECODED, most // BESIDE)
        self.most_read = most // BESIDE
        """The most bytes of a resource and its children that a pass may read in whole."""
        self._excess: dict[ShelfPlace, Oversize] = {}
        self._families: defaultdict[Family, dict[ShelfPlace, None]] = defaultdict(dict)
        self._weights: defaultdict[Family, int] = defaultdict(int)
        self._wanted: defaultdict[Family, int] = defaultdict(int)
        self._wholes: defaultdict[Family, int] = defaultdict(int)
        self._sweep_from = most

    def of(self, family: Family) -> int:
        """Return what a resource and its children weigh in whole."""
        return self._wholes.get(family, 0)

    def has_room(self, family: Family) -> bool:
        """Return whether a resource that was left out fits in again."""
        more = self._wanted.get(family, 0) - self._weights.get(family, 0)
        return self.weight + more <= LOW * self.most

    def _is_left_out(self, family: Family) -> bool:
        return self._wanted.get(family, 0) > self._weights.get(family, 0)

    def oversize(self, place: ShelfPlace, family: Family, whole: int) -> Oversize | None:
        """Return why only a part of an object is to be kept, or None."""
        if whole > self.bound:
            return Oversize(whole, self.bound, "object")
        if not self._is_left_out(family):
            return None
        before = self._places.get(place)
        weight, wanted = (before.weight, before.wanted) if before else (0, 0)
        if self.weight - weight + whole <= self.most:
            return None
        return Oversize(self._wanted[family] - wanted + whole, self.most, "sum")

    def put(
        self, place: ShelfPlace, kept: Kept, oversize: Oversize | None, *, listed: bool = False
    ) -> None:
        """Record what is kept of an object now; `settle` must follow.

        While a list comes in, passes begin with its first objects. If there is no room for all, the
        last ones are packed: the first ones would be unpacked again at once.
        """
        was = self._excess.get(place)
        self._put(place, kept)
        if not oversize and self._may_pack(kept):
            self._decoded[place] = None
            self._decoded_weight += kept.weight
            if listed:
                self._decoded.move_to_end(place, last=False)
        if oversize:
            self._excess[place] = oversize
            self.reduced[oversize.of] += 1
        if oversize and oversize.of != "sum" and (was is None or was.of != oversize.of):
            named = f"{kept.family.namespace}/{place[1][1]}"
            bound = log.bind(controller=kept.family.controller, object=named)
            if oversize.of == "undecodable":
                bound.warning("object cannot be decoded")
            else:
                weight, most = readable(oversize.weight), readable(oversize.most)
                bound.warning("object is too large", weight=weight, most=most)

    def _may_pack(self, kept: Kept) -> bool:
        return kept.packable and self.of(kept.family) < LARGE_FROM

    def opened(self, place: ShelfPlace) -> None:
        """Record that somebody asks for an object, which is decoded from now on."""
        if place in self._decoded:
            self._decoded.move_to_end(place)
            return
        kept = self._places[place]
        # If its family was too large, and is not any more, it may be packed from now on.
        if place not in self._excess and (kept.is_packed or self._may_pack(kept)):
            self.put(place, kept.decoded, None)
            self._pack_the_oldest()

    def _pack_the_oldest(self) -> None:
        """Have the objects packed that nobody has asked for lately, until there is room."""
        while len(self._decoded) > 1 and (
            self._decoded_weight > self.most_decoded or self.weight > self.most
        ):
            place, _ = self._decoded.popitem(last=False)
            kept = self._places[place]
            self._decoded_weight -= kept.weight
            if self._may_pack(kept):
                shelf, key = place
                self._put(place, kept.packed(shelf.pack(key)))

    def drop(self, place: ShelfPlace) -> None:
        """Record that an object is no longer cached."""
        self._forget(place)

    def settle(self) -> None:
        """Leave out the heaviest resources if all together take more than the budget."""
        self._pack_the_oldest()
        if self.weight <= self.most:
            self._sweep_from = self.most
        elif self.weight > self._sweep_from:
            self._sweep()
            self._sweep_from = int(max(self.most, self.weight * STEP))

    def _put(self, place: ShelfPlace, kept: Kept) -> None:
        self._forget(place)
        self._places[place] = kept
        self._families[kept.family][place] = None
        self._weights[kept.family] += kept.weight
        self._wanted[kept.family] += kept.wanted
        self._wholes[kept.family] += kept.whole
        self.weight += kept.weight

    def _sweep(self) -> None:
        before = self.weight
        gain = {
            family: sum(self._places[place].gain for place in places)
            for family, places in self._families.items()
        }
        need = self.weight - int(LOW * self.most)
        families = oversized.surplus(self._weights, gain, need)
        for family in families:
            self._leave_out(family)
        most, weight = readable(self.most), readable(self.weight)
        if families:
            log.warning(
                "resources are left out of the caches",
                count=len(families),
                weight=readable(before),
                most=most,
            )
        if self.weight > self.most:
            log.error("caches are over the budget of memory", weight=weight, most=most)

    def _leave_out(self, family: Family) -> None:
        oversize = Oversize(self._wanted[family], self.most, "sum")
        for place in list(self._families[family]):
            if self._places[place].gain:
                shelf, key = place
                shelf.reduce(key, oversize)
        if (heard := self.on_room.get(family.controller)) is not None:
            heard(Key(family.namespace, family.name))

    def _forget(self, place: ShelfPlace) -> None:
        kept = self._places.pop(place, None)
        if kept is None:
            return
        if place in self._decoded:
            del self._decoded[place]
            self._decoded_weight -= kept.weight
        family = kept.family
        self.weight -= kept.weight
        self._weights[family] -= kept.weight
        self._wanted[family] -= kept.wanted
        self._wholes[family] -= kept.whole
        del self._families[family][place]
        if not self._families[family]:
            del self._families[family], self._weights[family]
            del self._wanted[family], self._wholes[family]
        if (oversize := self._excess.pop(place, None)) is not None:
            self.reduced[oversize.of] -= 1


class Weigher:
    """Weighs the objects of one store, and reduces those that are too large.

    `reducible`: objects of this store may be kept in part, as passes over their resource notice it.
    `packable`: not every pass asks for all of them.
    `keeps` returns more top-level fields that a reduced object has.
    """

    def __init__(
        self,
        budget: Budget,
        family: Callable[[Object], Family],
        *,
        manager: str,
        reducible: bool = True,
        packable: bool = True,
        keeps: Callable[[Object], Object] = lambda _: {},
    ) -> None:
        self.budget = budget
        self._keeps = keeps
        self._family = family
        self._manager = manager
        self._reducible, self._packable = reducible, packable

    def weigh(self, place: ShelfPlace, obj: Object, *, listed: bool = False) -> Object:
        """Return what to keep of an object that is being cached; `settle` must follow."""
        family, whole = self._family(obj), weight_of(obj) + OVERHEAD
        oversize = None
        if self._reducible and isinstance(obj, Salvaged):
            oversize = Oversize(whole, self.budget.bound, "undecodable")
        elif self._reducible:
            oversize = self.budget.oversize(place, family, whole)
        if oversize is not None:
            return self._part(place, obj, oversize, family, whole)
        kept = Kept(family, whole, whole, whole, self._reducible, self._packable)
        self.budget.put(place, kept, None, listed=listed)
        return obj

    def reduce(self, place: ShelfPlace, obj: Object, oversize: Oversize) -> Object:
        """Return what to keep of an object that was cached in whole."""
        family, whole = self._family(obj), weight_of(obj) + OVERHEAD
        return self._part(place, obj, oversize, family, whole)

    def opened(self, place: ShelfPlace) -> None:
        """Record that somebody asks for an object of the store."""
        self.budget.opened(place)

    def settle(self, gone: ShelfPlace | None) -> None:
        """Finish a change of the store; `gone` is the object that was removed, if any."""
        if gone is not None:
            self.budget.drop(gone)
        self.budget.settle()

    def _part(
        self, place: ShelfPlace, obj: Object, oversize: Oversize, family: Family, whole: int
    ) -> Object:
        part = oversized.reduced(obj, oversize, self._manager) | self._keeps(obj)
        weight = weight_of(part) + OVERHEAD
        # Room does not help an object that is too large by itself, or undecodable.
        wanted = whole if oversize.of == "sum" else weight
        self.budget.put(place, Kept(family, weight, wanted, whole, reducible=False), oversize)
        return part


ROOT: Final = Path("/")
NO_LIMIT: Final = 2**60
"""Limits from this size on mean no limit: cgroups version 1 writes nearly 2**63 for none."""


def memory_limit(root: Path = ROOT) -> int | None:
    """Return the lowest memory limit of the process's cgroups, in bytes; None without one.

    In a container, its own cgroup may be the root that it sees, whatever the path is.
    """
    limits = [limit for file in _files(root) if (limit := _limit(file)) is not None]
    return min(limits, default=None)


def _files(root: Path) -> Iterator[Path]:
    mounted = root / "sys/fs/cgroup"
    for controllers, path in _memberships(root):
        at, name = mounted, "memory.max"
        if "memory" in controllers.split(","):
            at, name = mounted / "memory", "memory.limit_in_bytes"
        elif controllers:
            continue
        own = PurePosixPath(path.lstrip("/"))
        for part in (own, *own.parents):
            yield at / part / name


def _memberships(root: Path) -> Iterator[tuple[str, str]]:
    """Yield the controllers and path of each hierarchy that the process is in (cgroups(7))."""
    try:
        lines = (root / "proc/self/cgroup").read_text("utf-8").splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        yield controllers, path


def _limit(file: Path) -> int | None:
    try:
        text = file.read_text("ascii").strip()
    except OSError:
        return None
    return int(text) if text.isdecimal() and int(text) < NO_LIMIT else None
