"""Walk: the leaves of a declaration that the live object does not show as ours and equal.

No schema is needed: the fieldsV1 trees themselves tell list keys and atomic fields. A place is
walked with our own tree there (None: we hold nothing) and those of the others. `{}` is a leaf.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from hedgerow.core.canonical import identical, same
from hedgerow.core.fieldset import (
    SELF,
    Positions,
    Tree,
    assign,
    coin,
    is_list,
    is_map,
    path_of,
    shapes,
)
from hedgerow.core.managed import Entries, Holder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hedgerow_schemas.base import Object

BEFORE_FIRST_APPLY: Final = Holder("before-first-apply", "Update")
"""To whom the next apply books everything of an object that has no managed fields at all."""


def is_before_first_apply(holder: Holder) -> bool:
    """Tell whether an entry is that which the server makes of all that nobody was known to hold."""
    named = (BEFORE_FIRST_APPLY.manager, BEFORE_FIRST_APPLY.operation)
    return (holder.manager, holder.operation) == named


_SCALARS: Final = frozenset({str, int, bool, float})
GRANULAR: Final = frozenset(
    "f:" + name
    for name in (
        "affinity", "annotations", "emptyDir", "labels", "limits", "requests", "resources",
        "rollingUpdate", "securityContext", "strategy", "updateStrategy",
    )
)  # fmt: skip
"""Maps that are often written as `{}`, which a fieldsV1 tree shows as it shows an atomic one.

In the OpenAPI of Kubernetes's own kinds no field of these names is atomic.
"""
_Place = tuple[Any, str] | None
"""A linked path (parent, element): cheap at every step, spelled out only for what is reported."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """A place where the live object is not what we declare.

    lost: not in our entry (any more); changed: in our entry, with another value; surplus: in our
    entry, not declared any more; order: list items of ours, out of our order. `steps` are fieldsV1
    elements, `path` prints them as a 409's cause does. `equal`: the value itself is as declared.
    """

    path: str
    steps: tuple[str, ...]
    why: Literal["lost", "changed", "surplus", "order"]
    want: Any
    live: Any
    holders: tuple[Holder, ...]
    equal: bool


class Walk:
    """One walk over one declaration, collecting the leaves that differ."""

    __slots__ = ("_builtin", "leaves")

    def __init__(self, *, builtin: bool) -> None:
        """`builtin`: one of Kubernetes's own kinds, whose spelling and shapes are known."""
        self._builtin = builtin
        self.leaves: list[Leaf] = []

    def map(
        self,
        place: _Place,
        want: Object,
        live: Object,
        mine: Tree | None,
        others: Entries,
    ) -> None:
        """Walk a granular map: what is declared, then what is ours beyond that."""
        for name, value in want.items():
            element = "f:" + name
            own = None if mine is None else mine.get(element)
            there = live.get(name)
            if (
                own == {}
                and type(there) in _SCALARS
                and value == there
                and type(value) is type(there)
            ):
                continue  # the usual case, kept short
            self._at((place, element), value, there, own, others.below(element))
        for element, tree in (mine or {}).items():
            if element[2:] not in want and element != SELF:
                self._surplus((place, element), tree, live.get(element[2:]))

    def _at(
        self, place: tuple[Any, str], want: Any, live: Any, mine: Tree | None, others: Entries
    ) -> None:
        pairs = others.pairs
        shape = mine or next((tree for _, tree in pairs if tree), None)
        if shape is None and (mine is not None or any(tree is not None for _, tree in pairs)):
            shape = {}
        if shape == {} and self._is_granular(place):
            shape = None
        if want and is_map(want) and (shape or (shape is None and live is not None)):
            self.map(place, want, live if is_map(live) else {}, mine, others)
        elif shape and is_list(want):
            self._list(place, want, live if is_list(live) else [], mine, others)
        else:
            self._leaf(place, want, live, mine, others)

    def _is_granular(self, place: tuple[Any, str]) -> bool:
        return self._builtin and place[1] in GRANULAR

    def _list(
        self, place: _Place, want: list[Any], live: list[Any], mine: Tree | None, others: Entries
    ) -> None:
        groups = _grouped(want, mine, others)
        where = Positions(live)
        order: dict[str, int] = {}
        for element, items in groups.items():
            here = (place, element)
            own = None if mine is None else mine.get(element)
            at = where.of(element)
            found = [live[index] for index in at]
            if len(items) > 1:  # duplicates are one atomic value to the server
                self._leaf(here, items, found or None, own, others.below(element))
            else:
                there = found[0] if found else None
                self._at(here, items[0], there, own, others.below(element))
            if found:
                order[element] = at[0]
        self._ordered(place, order)
        for element, tree in (mine or {}).items():
            if element not in groups and element != SELF:
                at = where.of(element)
                self._surplus((place, element), tree, live[at[0]] if at else None)

    def _ordered(self, place: _Place, order: dict[str, int]) -> None:
        """Our items must stand in our relative order; foreign ones may stand between them."""
        live = sorted(order, key=order.__getitem__)
        if live != list(order):
            self._report(place, "order", want=list(order), live=live)

    def _leaf(
        self, place: tuple[Any, str], want: Any, live: Any, mine: Tree | None, others: Entries
    ) -> None:
        # An empty map lies over a granular one without changing it.
        covers = want == {} and bool(
            mine
            or any(tree for _, tree in others.pairs)
            or (live is not None and self._is_granular(place))
        )
        holders = tuple(
            holder
            for holder, _ in others.pairs
            if live is not None or holder is not BEFORE_FIRST_APPLY
        )
        equal = (
            covers
            or identical(want, live)
            or (live is None and want in (None, []))
            # To a co-owner the server compares spellings: equal in meaning is a conflict.
            or (self._builtin and not holders and same(want, live, _steps(place)))
        )
        if mine is None:
            self._report(place, "lost", want=want, live=live, holders=holders, equal=equal)
        elif not equal:
            self._report(place, "changed", want=want, live=live, holders=holders)
        self._surpluses(place, mine or {}, live)

    def _surplus(self, place: tuple[Any, str], tree: Tree, live: Any) -> None:
        if not tree or SELF in tree:
            self._report(place, "surplus", live=live)
        self._surpluses(place, tree, live)

    def _surpluses(self, place: tuple[Any, str], tree: Tree, live: Any) -> None:
        for element, below, there in _members(tree, live):
            self._surplus((place, element), below, there)

    def _report(
        self,
        place: _Place,
        why: Literal["lost", "changed", "surplus", "order"],
        *,
        want: Any = None,
        live: Any = None,
        holders: tuple[Holder, ...] = (),
        equal: bool = False,
    ) -> None:
        steps = _steps(place)
        self.leaves.append(Leaf(path_of(steps), steps, why, want, live, holders, equal))


def _grouped(want: list[Any], mine: Tree | None, others: Entries) -> dict[str, list[Any]]:
    """Group declared items by element; one that nobody holds gets an element coined for it."""
    known = dict.fromkeys((*(mine or ()), *others.elements()))
    known.pop(SELF, None)
    groups: dict[str, list[Any]] = {}
    coined = shapes(known)
    for index, (item, element) in enumerate(zip(want, assign(want, known), strict=True)):
        groups.setdefault(element or coin(item, coined) or f"i:{index}", []).append(item)
    return groups


def _members(tree: Tree, live: Any) -> Iterator[tuple[str, Tree, Any]]:
    """Give each element of a tree with what is below it, and the value that is there."""
    items: list[Any] = live if is_list(live) else []
    fields: Object = live if is_map(live) else {}
    where = Positions(items)
    for element, below in tree.items():
        if element == SELF:
            continue
        at = where.of(element) if items else ()
        yield element, below, items[at[0]] if at else fields.get(element[2:])


def _steps(place: _Place) -> tuple[str, ...]:
    steps: list[str] = []
    while place is not None:
        place, element = place
        steps.append(element)
    return tuple(reversed(steps))
