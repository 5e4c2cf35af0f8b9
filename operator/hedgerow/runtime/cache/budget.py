"""Budget: how much memory the caches may take, and which objects are left out beyond it.

Objects are weighed as they are taken in. One that weighs more than any may is kept in part; so are
the heaviest resources, children included, when all together weigh more than the budget. Which, and
what is kept, is decided by `core.bounds`. They are taken in again once there is room: a pass over
them asks for that now and then.
"""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path, PurePosixPath
from sys import getsizeof
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeGuard, cast

import structlog
from pydantic_core import to_json

from hedgerow.plan import oversized
from hedgerow.plan.oversized import Excess, Family, readable

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from hedgerow.contract import Key
    from hedgerow_schemas.base import Object


_BEYOND_UCS2: Final = re.compile(rb"[\xf0-\xf4]")
_EMPTY, _MAP, _LIST, _ITEM = 72, 208, 72, 104
"""Bytes that CPython 3.11 takes for `{}`, for a map of up to five fields, for a list, and for what
comes after a comma."""
_COUNTED: Final = 2000
"""Maps, lists and what is in them, that are counted one by one: it takes up to half a millisecond.
"""


def weight(content: bytes) -> int:
    """Return about how many bytes JSON text takes as maps, lists and strings.

    It counts signs, which is a hundred times faster than to decode: of what objects are made of it
    tells 0.85 to 2.4 times the truth, of text that has JSON in strings more. The same number of
    bytes of JSON may take 16 times as much or hardly more than itself.
    """
    count = content.count
    empty = count(b"{}")
    return (
        _text(content)
        + _EMPTY * empty
        + _MAP * (count(b"{") - empty)
        + _LIST * count(b"[")
        + _ITEM * count(b",")
    )


def weight_of(obj: Mapping[str, Any]) -> int:
    """Return how many bytes a decoded object takes: counted for a small one, else as `weight` does.

    Keys are left out of a count: those of one kind's objects are the same strings.
    """
    size, left = getsizeof(obj), _COUNTED
    waiting: list[Any] = [obj]
    while waiting:
        value = waiting.pop()
        for inner in cast("Iterable[Any]", value.values() if _is_map(value) else value):
            size += getsizeof(inner)
            if _is_map(inner) or _is_list(inner):
                left -= 1 + len(inner)
                waiting.append(inner)
        if left < 0:
            return weight(to_json(obj))
    return size


def _is_map(value: Any) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def _is_list(value: Any) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def _text(content: bytes) -> int:
    """Return the bytes of the strings: one character that is wide makes all of a string wide."""
    if content.isascii():
        return len(content)
    return (4 if _BEYOND_UCS2.search(content) else 2) * len(content)


MIB: Final = 1024 * 1024
RESERVE: Final = 320 * MIB
"""Bytes of the process's limit that are not for caches: 80 MiB for the program, up to 190 for a
review that is judged, and what a look at a large object takes in passing."""
UNLIMITED: Final = 1024 * MIB
"""Bytes for the caches of a process without a limit."""
OBJECTS: Final = 24
"""One object may take this part of the budget: 8 MiB where the limit is 512 MiB."""
LOANS: Final = 6
"""This part of the budget may be taken besides it, for children of one resource in one pass."""
LOW: Final = 0.9
"""The part of the budget to which the caches are brought down, and up to which they fill again."""
STEP: Final = 1.05
"""Where nothing is left to reduce, the next attempt is made when this much more is taken."""
HEAVY: Final = 256 * 1024
"""Bytes of a resource and its children, from which on passes are made one at a time."""
OVERHEAD: Final = 2048
"""Bytes that are kept of any object besides itself: indices, what passes remember of it."""
STUB: Final = 4096
"""Bytes that are reckoned to be left of an object of which only a part is kept."""

log = structlog.get_logger(__name__)


def most_for_caches(limit: int | None) -> int:
    """Return the bytes for caches where the process may take `limit`; at least a quarter of it."""
    return UNLIMITED if limit is None else max(limit - RESERVE, limit // 4)


class Shelf(Protocol):
    """A store, as the budget sees it."""

    def reduce(self, key: Key, excess: Excess) -> None:
        """Keep a part of a cached object only."""
        ...


Place = tuple[Shelf, "Key"]


class Kept(NamedTuple):
    """What is kept of one object: its weight, what that is once there is room, and of the whole."""

    family: Family
    weight: int
    wanted: int
    whole: int
    reducible: bool

    @property
    def gain(self) -> int:
        """What it would weigh less if only a part was kept."""
        return max(0, self.weight - STUB) if self.reducible else 0


class Budget:
    """Weighs what all caches of one process hold."""

    def __init__(self, most: int = UNLIMITED) -> None:
        self.most = most
        self.bound = most // OBJECTS
        self.weight = 0
        self.reduced: dict[str, int] = {"object": 0, "sum": 0}
        """Objects of which only a part is kept, by why."""
        self.heard: dict[str, Callable[[Key], object]] = {}
        """By controller: who is told of a resource that was left out."""
        self._places: dict[Place, Kept] = {}
        self._excess: dict[Place, Excess] = {}
        self._families: defaultdict[Family, dict[Place, None]] = defaultdict(dict)
        self._weights: defaultdict[Family, int] = defaultdict(int)
        self._wanted: defaultdict[Family, int] = defaultdict(int)
        self._wholes: defaultdict[Family, int] = defaultdict(int)
        self._sweep_from = most
        self._lent: Family | None = None
        self._loan: tuple[Place, ...] = ()

    def of(self, family: Family) -> int:
        """Return what a resource and its children weigh when they are whole."""
        return self._wholes.get(family, 0)

    def has_room(self, family: Family) -> bool:
        """Return whether a resource that was left out can be taken in again."""
        more = self._wanted.get(family, 0) - self._weights.get(family, 0)
        return self.weight + more <= LOW * self.most

    def lend(self, family: Family) -> bool:
        """Return whether all of a resource may be kept for a pass; then it has to be given back.

        A child that is too large for the caches could not be made smaller otherwise.
        """
        if self._lent or self._wholes.get(family, 0) > self.most // LOANS:
            return False
        places = self._families.get(family, ())
        self._lent = family
        self._loan = tuple(place for place in places if place in self._excess)
        return True

    def give_back(self, family: Family) -> None:
        """Keep no more again of a resource than there is room for; nothing if nothing was lent."""
        if self._lent != family:
            return
        loan, self._lent, self._loan = self._loan, None, ()
        for place in loan:
            kept = self._places.get(place)
            if kept is not None and place not in self._excess:
                self._retake(place, kept)
        self.settle()

    def _retake(self, place: Place, kept: Kept) -> None:
        shelf, key = place
        if kept.weight > self.bound:
            shelf.reduce(key, Excess(kept.weight, self.bound, "object"))
        elif self.weight > LOW * self.most:
            shelf.reduce(key, Excess(self._wanted[kept.family], self.most, "sum"))

    def _is_left_out(self, family: Family) -> bool:
        return self._wanted.get(family, 0) > self._weights.get(family, 0)

    def excess(self, place: Place, family: Family, whole: int) -> Excess | None:
        """Return why an object is to be kept in part only, or None."""
        if family == self._lent:
            return None
        if whole > self.bound:
            return Excess(whole, self.bound, "object")
        if not self._is_left_out(family):
            return None
        before = self._places.get(place)
        weight, wanted = (before.weight, before.wanted) if before else (0, 0)
        if self.weight - weight + whole <= self.most:
            return None
        return Excess(self._wanted[family] - wanted + whole, self.most, "sum")

    def put(self, place: Place, kept: Kept, excess: Excess | None) -> None:
        """Take note of what is kept of an object now."""
        was = self._excess.get(place)
        self._forget(place)
        self._places[place] = kept
        self._families[kept.family][place] = None
        self._weights[kept.family] += kept.weight
        self._wanted[kept.family] += kept.wanted
        self._wholes[kept.family] += kept.whole
        self.weight += kept.weight
        if excess:
            self._excess[place] = excess
            self.reduced[excess.of] += 1
        if excess and excess.of == "object" and (was is None or was.of != "object"):
            log.warning(
                "object is too large",
                controller=kept.family.controller,
                object=f"{kept.family.namespace}/{place[1][1]}",
                weight=readable(excess.weight),
                most=readable(excess.most),
            )

    def drop(self, place: Place) -> None:
        """Take note that an object is cached no more."""
        self._forget(place)

    def settle(self) -> None:
        """Leave out the heaviest where all together take more than the budget."""
        if self.weight <= self.most:
            self._sweep_from = self.most
        elif self._lent is None and self.weight > self._sweep_from:
            self._sweep()
            self._sweep_from = int(max(self.most, self.weight * STEP))

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
        excess = Excess(self._wanted[family], self.most, "sum")
        for place in list(self._families[family]):
            if self._places[place].gain:
                shelf, key = place
                shelf.reduce(key, excess)
        if (heard := self.heard.get(family.controller)) is not None:
            heard((family.namespace, family.name))

    def _forget(self, place: Place) -> None:
        kept = self._places.pop(place, None)
        if kept is None:
            return
        family = kept.family
        self.weight -= kept.weight
        self._weights[family] -= kept.weight
        self._wanted[family] -= kept.wanted
        self._wholes[family] -= kept.whole
        del self._families[family][place]
        if not self._families[family]:
            del self._families[family], self._weights[family]
            del self._wanted[family], self._wholes[family]
        if (excess := self._excess.pop(place, None)) is not None:
            self.reduced[excess.of] -= 1


class Scale:
    """Weighs the objects of one store: whose they are, and what is kept of those too large.

    `reducible`: a part of an object is enough, as the look at its resource says so.
    """

    def __init__(
        self,
        budget: Budget,
        family: Callable[[Object], Family],
        *,
        manager: str,
        finalizers: Collection[str] = (),
        reducible: bool = True,
    ) -> None:
        self.budget = budget
        self._family = family
        self._manager, self._finalizers = manager, finalizers
        self._reducible = reducible

    def weigh(self, place: Place, obj: Object) -> Object:
        """Return what is to be kept of an object that is taken in."""
        family, whole = self._family(obj), weight_of(obj) + OVERHEAD
        excess = self.budget.excess(place, family, whole) if self._reducible else None
        if excess is not None:
            return self._part(place, obj, excess, family, whole)
        self.budget.put(place, Kept(family, whole, whole, whole, self._reducible), None)
        return obj

    def reduce(self, place: Place, obj: Object, excess: Excess) -> Object:
        """Return what is to be kept of an object that was whole so far."""
        family, whole = self._family(obj), weight_of(obj) + OVERHEAD
        return self._part(place, obj, excess, family, whole)

    def settle(self, gone: Place | None) -> None:
        """Take note that the store has done what it was at: something may have gone."""
        if gone is not None:
            self.budget.drop(gone)
        self.budget.settle()

    def _part(
        self, place: Place, obj: Object, excess: Excess, family: Family, whole: int
    ) -> Object:
        part = oversized.reduced(obj, excess, self._manager, self._finalizers)
        weight = weight_of(part) + OVERHEAD
        # One that is too large by itself does not come back when there is room.
        wanted = weight if excess.of == "object" else whole
        self.budget.put(place, Kept(family, weight, wanted, whole, reducible=False), excess)
        return part


ROOT: Final = Path("/")
NO_LIMIT: Final = 2**60
"""Bytes from which on a limit is none: version 1 tells of no limit as of nearly 2**63."""


def memory_limit(root: Path = ROOT) -> int | None:
    """Return the lowest limit of memory in bytes of the process's cgroups; None without one.

    In a container its own cgroup may be the root of those that it sees, whatever it is called.
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
    """Yield controllers and path of each hierarchy that the process is in (cgroups(7))."""
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
