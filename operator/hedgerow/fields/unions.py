"""Unions: fields that exclude each other, and who is in the way of whom.

A field that nobody holds, such as a default or what is left of a manager that is gone, cannot be
removed by leaving it out of an apply. If the API server refuses a declaration beside it, the field
is taken over first: it is applied with its value, unforced, and then left out. The causes of the
refusal say which field that is.
"""

from __future__ import annotations

import re
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from hedgerow.encoding import to_ascii
from hedgerow.fields.canonical import builtin
from hedgerow.fields.managed_fields import Entries, held
from hedgerow.fields.paths import assign, coin, interleaved, is_list, is_map, parse, shapes
from hedgerow.fields.refused import LONGEST_CAUSE, followed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from hedgerow.fields.sets import FieldPath
    from hedgerow_schemas.base import Object

EXCLUSIVE: Final = (
    frozenset({"exec", "grpc", "httpGet", "sleep", "tcpSocket"}),
    frozenset({"maxUnavailable", "minAvailable"}),
    frozenset({"resource", "service"}),
    frozenset({"service", "url"}),
    frozenset({"subPath", "subPathExpr"}),
    frozenset({"value", "valueFrom"}),
)
"""Names of fields of which a map may have only one.

For these the causes do not suffice. They often name the declared one, such as `tcpSocket` of a
probe beside an `httpGet`, or the map, such as `spec` of a PodDisruptionBudget. What else is there
may be in nobody's way, such as the default of `periodSeconds`; and it is there as well if a
declared field is refused for itself.
"""
_VALUE, _VOLUMES = "valueFrom", "volumes"
"""A map, and a list of maps with a key, that have only one field, whatever its name."""
KEYS: Final = {
    "containers": "name",
    "env": "name",
    "initContainers": "name",
    "volumeMounts": "mountPath",
    "volumes": "name",
    "webhooks": "name",
}
"""The key of lists in Kubernetes's own kinds, if nobody holds an item that would show it."""
_CAUSE: Final = re.compile(r"[A-Za-z][\w-]*(?:\.[A-Za-z][\w-]*|\[[0-9]{1,6}\])*+")
_STEP: Final = re.compile(r"[\w-]+")
_NOT_DECLARED: Final = ("metadata", "status")
"""The label and owner reference of our children are in the metadata; others write the status."""


def in_the_way(
    causes: Iterable[str], want: Object, live: Object, manager: str
) -> tuple[FieldPath, ...]:
    """Return the fields that nobody holds and for which the server refused a declaration.

    `causes` are the fields that the refusal names, such as `spec.volumes[0].configMap`. A live
    field is in the way if it is not declared, and a cause names it, or it excludes a declared field
    beside or within the one that a cause names.

    What `manager` holds and no longer declares goes by the apply itself. If another manager holds
    something of a field that is in the way, the result is empty: taking over the rest would not
    help. So it is if no managed fields are recorded: the next apply books all fields to a manager.
    """
    places = obstacles(causes, want, live, manager)
    holders = chain.from_iterable(entries.pairs for entries in places.values())
    if not all(holder.is_applier(manager, "") for holder, _ in holders):
        return ()
    return tuple(field_path for field_path, entries in places.items() if not entries.pairs)


def obstacles(
    causes: Iterable[str], want: Object, live: Object, manager: str
) -> dict[FieldPath, Entries]:
    """Return the fields of `in_the_way`, whoever holds them, each with the entries that do.

    There are none if no managed fields are recorded.
    """
    there = held(live)
    if not there.pairs:
        return {}
    refusal = _Refusal(manager, is_builtin=builtin(str(live.get("apiVersion", ""))))
    top = _Place("", (), want, live, there)
    asked = followed(causes)
    places = chain.from_iterable(refusal.excluded(top, cause) for cause in asked)
    return {place.field_path: place.there for place in places}


class _Place(Struct, frozen=True):
    """What is declared and live at a place, and the entries that contain it.

    `name` is that of the field; an item of a list has the list's.
    """

    name: str
    field_path: FieldPath
    want: Any
    live: Any
    there: Entries

    @property
    def is_map(self) -> bool:
        return is_map(self.want) and is_map(self.live)

    def field(self, name: str) -> _Place:
        return self.below(f"f:{name}", name, self.want.get(name), self.live.get(name))

    def below(self, element: str, name: str, want: Any, live: Any) -> _Place:
        return _Place(name, (*self.field_path, element), want, live, self.there.below(element))

    def has_undeclared(self, name: str) -> bool:
        return name in self.live and name not in self.want

    def excluded(self) -> Iterator[_Place]:
        """Yield the fields that are live and not declared, and exclude one that is declared."""
        if not self.is_map:
            return
        for name in self.live:
            if self.has_undeclared(name) and any(
                self._exclude(name, wanted) for wanted in self.want
            ):
                yield self.field(name)

    def _exclude(self, name: str, other: str) -> bool:
        keys = () if not self.field_path else parse(self.field_path[-1]).names
        has_one = self.name == _VALUE or (self.name == _VOLUMES and bool(keys))
        one_of = has_one and other not in keys
        return one_of or any({name, other} <= names for names in EXCLUSIVE)


class _Refusal:
    """The refusal of one apply; each list that its causes go through is read once."""

    def __init__(self, manager: str, *, is_builtin: bool) -> None:
        self._manager = manager
        self._is_builtin = is_builtin
        self._items: dict[FieldPath, Sequence[_Place]] = {}

    def excluded(self, top: _Place, cause: str) -> Iterator[_Place]:
        """Yield the places of fields that a cause says are in the way, whoever holds them."""
        if len(cause) > LONGEST_CAUSE or not _CAUSE.fullmatch(cause):
            return
        steps = _STEP.findall(cause)
        if steps[0] in _NOT_DECLARED:
            return
        above, place = top, top
        for step in steps:
            above = place
            if place.is_map:
                place = place.field(step)
                if above.has_undeclared(step):
                    yield place
                    return
            elif is_list(place.want) and is_list(place.live) and step.isdecimal():
                items = self._merged(place)
                if int(step) >= len(items):
                    return
                place = items[int(step)]
            else:
                return
        yield from above.excluded()
        yield from place.excluded()

    def _merged(self, place: _Place) -> Sequence[_Place]:
        if place.field_path not in self._items:
            self._items[place.field_path] = self._validated_items(place)
        return self._items[place.field_path]

    def _validated_items(self, place: _Place) -> Sequence[_Place]:
        """Return a list's items as the server validated them; none if their keys are not known.

        It merges the declared ones into the live ones, without those that only we hold and no
        longer declare.
        """
        known = dict.fromkeys(key for key in place.there.elements() if key.startswith("k:"))
        shape = shapes(known) or self._shape(place.name)
        lives, wants = (_by_element(items, known, shape) for items in (place.live, place.want))
        kept = [key for key in lives if key in wants or not self._is_ours(place.there.below(key))]
        return [
            place.below(element, place.name, wants.get(element), lives.get(element))
            for element in interleaved(kept, list(wants))
        ]

    def _shape(self, name: str) -> tuple[str, ...]:
        key = KEYS.get(name) if self._is_builtin else None
        return (f"k:{to_ascii({key: ''})}",) if key else ()

    def _is_ours(self, there: Entries) -> bool:
        holders = [holder for holder, _ in there.pairs]
        return bool(holders) and all(holder.is_applier(self._manager, "") for holder in holders)


def _by_element(items: Sequence[Any], known: Iterable[str], shape: Sequence[str]) -> dict[str, Any]:
    """Return the items of a list by element; none if one has no element, or two have the same."""
    elements = [
        element or coin(item, shape)
        for item, element in zip(items, assign(items, known), strict=True)
    ]
    items_by_element = {
        element: item for element, item in zip(elements, items, strict=True) if element
    }
    return items_by_element if len(items_by_element) == len(items) else {}
