"""Sharding: what of one controller's work a replica has, if the namespaces are divided.

A key is in the slice of its namespace if its controller is divided. All other controllers, such as
those of cluster-scoped resources, belong to the slice of no namespace as a whole.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import anyio
from msgspec import Struct

from hedgerow.runtime.workqueue import Priority, WorkQueue
from hedgerow.shards.slices import ALL, NONE, Slices, point_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from hedgerow.contract import Controller, Key
    from hedgerow.runtime.cache.caches import Source

HOME: Final = point_of("")
"""The slice of what is in no namespace."""


def is_divided(controller: Controller[Any], controllers: Iterable[Controller[Any]] = ()) -> bool:
    """Return whether replicas divide a controller's resources by their namespaces.

    All that a pass of a divided one reads and writes is in the resource's namespace, but for
    relations. That is not so if children are `copies`: neither of the controller that makes them,
    nor of the one among `controllers` that has the sources.
    """
    informed = [one.copies.sources.name for one in controllers if one.copies is not None]
    return (
        controller.resource.api.namespaced
        and controller.copies is None
        and controller.name not in informed
    )


def once_for_each(judge: Callable[[Key], bool]) -> Callable[[Key], bool]:
    """Return the same judgement of keys, made once for each namespace: a hash takes its time."""
    judged: dict[str, bool] = {}

    def judgement(key: Key) -> bool:
        found = judged.get(key[0])
        if found is None:
            found = judged[key[0]] = judge(key)
        return found

    return judgement


class Division(Struct, frozen=True):
    """How one controller's work is divided, and whether the API server selects its objects."""

    is_divided: bool
    by_server: bool = False

    def point_of(self, key: Key) -> int:
        """Return the slice of a key."""
        return point_of(key[0]) if self.is_divided else HOME

    def read(self, source: Source, slices: Slices) -> Slices:
        """Return the slices of which a source is read, so that `slices` can be served.

        Objects that resources of other namespaces may read are all read.
        """
        if not self.is_divided:
            return ALL if HOME in slices else NONE
        relation = source.relation
        if relation is not None and not (relation.same_namespace and source.api.namespaced):
            return ALL if slices else NONE
        if source.namespace:
            return ALL if point_of(source.namespace) in slices else NONE
        return slices


class ShardedQueue(WorkQueue):
    """A work queue that hands out keys of slices that are begun, and holds back the other ones.

    Keys of slices that are not selected are dropped.
    """

    def __init__(self, division: Division, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._point_of = division.point_of
        self._selected = self._begun = NONE
        self._held: dict[Key, Priority] = {}
        self._ended = anyio.Event()
        self._made = Counter[int]()

    def add(self, key: Key, priority: Priority = Priority.CHANGED) -> None:
        """Request a pass now, or once the slice is begun."""
        point = self._point_of(key)
        if point in self._begun:
            super().add(key, priority)
        elif point in self._selected:
            self._held[key] = min(priority, self._held.get(key, priority))

    @property
    def selected(self) -> Slices:
        """The slices that are selected."""
        return self._selected

    @property
    def begun(self) -> Slices:
        """The slices whose keys are handed out."""
        return self._begun

    def select(self, slices: Slices) -> Callable[[Key], bool]:
        """Select slices, forget the keys of all others, and return whether a key is one of those.

        The answer does not change with later selections.
        """
        self._selected, self._begun = slices, self._begun & slices
        is_lost = self._are_in(ALL - slices)
        self._ready.take(is_lost)
        self._held = {key: each for key, each in self._held.items() if not is_lost(key)}
        self.forget_all(is_lost)
        return is_lost

    def _are_in(self, slices: Slices) -> Callable[[Key], bool]:
        """Return what tells whether keys are in slices."""
        return once_for_each(lambda key: self._point_of(key) in slices)

    def begin(self, slices: Slices) -> None:
        """Hand out the keys of selected slices from now on."""
        self._begun |= slices & self._selected
        is_begun, held, self._held = self._are_in(self._begun), self._held, {}
        begun: dict[Priority, list[Key]] = {}
        for key, priority in held.items():
            if is_begun(key):
                begun.setdefault(priority, []).append(key)
            else:
                self._held[key] = priority
        for priority, keys in begun.items():
            self.add_all(keys, priority)

    async def drain(self, slices: Slices) -> None:
        """Hand out no key of these slices any more; return once none of them has a pass."""
        self._begun -= slices
        is_selected = self._are_in(self._selected)
        for key, priority in self._ready.take(self._are_in(slices)):
            if is_selected(key):
                self._held[key] = min(priority, self._held.get(key, priority))
        while any(self._point_of(key) in slices for key in self._passes):
            await self._ended.wait()

    def resources(self) -> Counter[int]:
        """Return how many resources there are in which slices."""
        keys, found = self._everyone(), Counter[int]()
        one_of = {key[0]: key for key in keys}
        for namespace, number in Counter(key[0] for key in keys).items():
            found[self._point_of(one_of[namespace])] += number
        return found

    def passes(self) -> Counter[int]:
        """Return how many passes were made in which slices since the last call."""
        made, self._made = self._made, Counter[int]()
        return made

    def done(self, key: Key) -> None:
        """End the key's pass."""
        super().done(key)
        self._made[self._point_of(key)] += 1
        ended, self._ended = self._ended, anyio.Event()
        ended.set()
