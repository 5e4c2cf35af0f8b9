"""Ownership: whether the live object is as declared, and who holds the fields that are not.

When another manager changes a field's value, the server removes the field from our `managedFields`
entry. So our entry and the live values together show drift, without a request.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from hedgerow.encoding import to_ascii
from hedgerow.fields.applyconfiguration import item
from hedgerow.fields.canonical import builtin, canonical_value, identical, same
from hedgerow.fields.managed_fields import Entries, Holder, entries, entry, held
from hedgerow.fields.paths import (
    SELF,
    Positions,
    Tree,
    assign,
    by_element,
    interleaved,
    is_list,
    is_map,
    named,
    parse,
    path_of,
)
from hedgerow.fields.sets import ABSENT, FieldPath, Values, subtree

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from hedgerow.fields.paths import Tree
    from hedgerow_schemas.base import Object


BEFORE_FIRST_APPLY: Final = Holder("before-first-apply", "Update")
"""The server's name for the owner of all fields of an object that had no managed fields.

It adds this entry at the next apply.
"""


def is_before_first_apply(holder: Holder) -> bool:
    """Return whether an entry is the server's `before-first-apply`, for fields of unknown owner."""
    named = (BEFORE_FIRST_APPLY.manager, BEFORE_FIRST_APPLY.operation)
    return (holder.manager, holder.operation) == named


_SCALARS: Final = frozenset({str, int, bool, float})
_GRANULAR: Final = frozenset(
    "f:" + name
    for name in (
        "affinity", "annotations", "emptyDir", "labels", "limits", "requests", "resources",
        "rollingUpdate", "securityContext", "strategy", "updateStrategy",
    )
)  # fmt: skip
"""Granular maps that are often written as `{}`; fieldsV1 shows such a map like an atomic one.

In the OpenAPI of Kubernetes's own kinds no field with one of these names is atomic.
"""
_Place = tuple[Any, str] | None
"""A linked path (parent, element): cheap to extend, written out only for reported fields."""


class Leaf(Struct, frozen=True):
    """A place where the live object differs from our declaration.

    lost: not in our entry, or no longer. changed: in our entry, with another value. surplus: in our
    entry, but no longer declared. order: our list items are not in our order. `field_path` are
    fieldsV1 elements; `path` prints them as a 409's cause does. `equal`: the value itself is as
    declared.
    """

    path: str
    field_path: tuple[str, ...]
    why: Literal["lost", "changed", "surplus", "order"]
    want: Any
    live: Any
    holders: tuple[Holder, ...]
    equal: bool


class Walk:
    """One walk over one declaration, collecting the leaves that differ."""

    __slots__ = ("_builtin", "leaves")

    def __init__(self, *, builtin: bool) -> None:
        """`builtin`: it is one of Kubernetes's own kinds, whose spelling and shapes are known."""
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
        """Walk a granular map: first the declared fields, then the others of our entry."""
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
        shape = mine
        if pairs and not shape:  # seldom: nobody else has most of what we declare
            shape = next((tree for _, tree in pairs if tree), mine)
            if shape is None and any(tree is not None for _, tree in pairs):
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
        return self._builtin and place[1] in _GRANULAR

    def _list(
        self, place: _Place, want: list[Any], live: list[Any], mine: Tree | None, others: Entries
    ) -> None:
        groups = _grouped(want, mine, others)
        where = Positions(live)
        order: dict[str, int] = {}
        for element, items in groups.items():
            here = (place, element)
            own = None if mine is None else mine.get(element)
            at = where.indices(element)
            chosen = [live[index] for index in at]
            if len(items) > 1:  # the server treats duplicates as one atomic value
                self._leaf(here, items, chosen or None, own, others.below(element))
            else:
                there = chosen[0] if chosen else None
                self._at(here, items[0], there, own, others.below(element))
            if chosen:
                order[element] = at[0]
        self._ordered(place, order)
        for element, tree in (mine or {}).items():
            if element not in groups and element != SELF:
                at = where.indices(element)
                self._surplus((place, element), tree, live[at[0]] if at else None)

    def _ordered(self, place: _Place, order: dict[str, int]) -> None:
        """Our items must be in our relative order; items of others may be between them."""
        live = sorted(order, key=order.__getitem__)
        if live != list(order):
            self._report(place, "order", want=list(order), live=live)

    def _leaf(
        self, place: tuple[Any, str], want: Any, live: Any, mine: Tree | None, others: Entries
    ) -> None:
        # Applying an empty map to a granular one changes nothing.
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
        if not others.pairs:  # with a co-owner, an apply of what is not there is a conflict
            if not want and live is None and mine == {}:
                return  # the server leaves out the empty value of an optional field
            if want == [] and not live and mine is None:
                return  # the server records no owner of an empty granular list
        equal = (
            covers
            or identical(want, live)
            or (live is None and want in (None, []))
            # The server compares spellings: with a co-owner, another spelling is a conflict.
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
        field_path = _steps(place)
        self.leaves.append(Leaf(path_of(field_path), field_path, why, want, live, holders, equal))


def _grouped(want: list[Any], mine: Tree | None, others: Entries) -> dict[str, list[Any]]:
    """Group declared items by element; an item that no entry holds gets a new element."""
    known = dict.fromkeys((*(mine or ()), *others.elements()))
    known.pop(SELF, None)
    groups: dict[str, list[Any]] = {}
    for index, (wanted, element) in enumerate(zip(want, named(want, known), strict=True)):
        groups.setdefault(element or f"i:{index}", []).append(wanted)
    return groups


def _members(tree: Tree, live: Any) -> Iterator[tuple[str, Tree, Any]]:
    """Yield each element of a tree with the subtree below it, and the live value."""
    items: list[Any] = live if is_list(live) else []
    fields: Object = live if is_map(live) else {}
    where = Positions(items)
    for element, below in tree.items():
        if element == SELF:
            continue
        at = where.indices(element) if items else ()
        yield element, below, items[at[0]] if at else fields.get(element[2:])


def _steps(place: _Place) -> tuple[str, ...]:
    field_path: list[str] = []
    while place is not None:
        place, element = place
        field_path.append(element)
    return tuple(reversed(field_path))


_IDENTITY: Final = frozenset({"apiVersion", "kind", "metadata"})
_METADATA_IDENTITY: Final = frozenset({
    "creationTimestamp", "generation", "managedFields", "name", "namespace", "resourceVersion",
    "selfLink", "uid",
})  # fmt: skip


class Verdict(Struct, frozen=True):
    """The result of judging an object, before an unforced apply.

    `tracked`: some manager has an entry. `version_ok`: entry, declaration and live object have the
    same apiVersion (an apply in another one rewrites the entry). `rewritten`: leaves that mutating
    admission is known to change whenever we apply them. `is_admitted`: it differs just as the
    server is known to respell it.
    """

    leaves: tuple[Leaf, ...]
    tracked: bool
    version_ok: bool
    rewritten: tuple[Leaf, ...] = ()
    is_admitted: bool = False

    @property
    def settled(self) -> bool:
        """Whether an apply would change nothing; then none is sent."""
        return self.tracked and self.version_ok and not self.leaves

    @property
    def contested(self) -> tuple[Leaf, ...]:
        """The leaves for which an unforced apply is refused with 409."""
        return tuple(leaf for leaf in self.leaves if leaf.holders and not leaf.equal)


def judge(
    want: Object,
    live: Object,
    manager: str,
    subresource: str = "",
) -> Verdict:
    """Return how the live object differs from an applied configuration; raises nothing.

    `want` is what would be sent: without nulls, with its identity (which is not compared).
    """
    mine: Tree | None = None
    others: list[tuple[Holder, Tree | None]] = []
    version = want.get("apiVersion")
    version_ok = live.get("apiVersion") == version
    for holder, entry_version, tree in entries(live):
        if holder.is_applier(manager, subresource):
            mine = tree
            version_ok = version_ok and entry_version == version
        else:
            others.append((holder, tree))
    tracked = mine is not None or bool(others)
    if not tracked:
        others.append((BEFORE_FIRST_APPLY, None))
    walk = Walk(builtin=builtin(str(version)))
    foreign = Entries(others, everywhere=not tracked)
    walk.map(None, _body(want), live, mine or {}, foreign)
    return Verdict(tuple(walk.leaves), tracked, version_ok)


def residual(verdict: Verdict) -> str:
    """Return a digest (16 hex digits) of a verdict's differences; empty only if it is settled.

    For the response to our own apply, these differences come from the server's normal form, its
    defaults in atomic fields, or admission. As long as later verdicts on the same declaration have
    the same residual, another apply would change nothing. Other managers' times do not count.
    """
    if verdict.settled:
        return ""
    rows = sorted(
        to_ascii([leaf.path, leaf.why, leaf.want, leaf.live, _names(leaf.holders)], ordered=True)
        for leaf in verdict.leaves
    )
    text = to_ascii([verdict.tracked, verdict.version_ok, *rows])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _names(holders: Iterable[Holder]) -> list[tuple[str, str, str]]:
    return sorted((holder.manager, holder.operation, holder.subresource) for holder in holders)


def _body(want: Object) -> Object:
    """Return `want` without its identity and the server's own fields: nobody ever owns these."""
    metadata: Any = want.get("metadata") or {}
    kept = {name: value for name, value in metadata.items() if name not in _METADATA_IDENTITY}
    body = {name: value for name, value in want.items() if name not in _IDENTITY}
    return {"metadata": kept, **body} if kept else body


_NOT_OURS = ("f:metadata", "f:status")
"""Not searched: our owner references and finalizers are known by content, status has no items."""


def items_of_unknown_owner(want: Object, live: Object) -> tuple[Leaf, ...]:
    """Return the undeclared list items that only `before-first-apply` holds: of unknown owner.

    Only lists that are declared, or that are in a declared map, are searched.
    """
    pairs = held(live).pairs
    before = next((pair for pair in pairs if is_before_first_apply(pair[0])), None)
    if before is None:
        return ()
    holder, fields = before
    tree = {element: below for element, below in (fields or {}).items() if element not in _NOT_OURS}
    others = Entries(other for other in pairs if other is not before)
    values = Values(live)
    return tuple(
        Leaf(path_of(field_path), field_path, "surplus", None, there, (holder,), equal=False)
        for field_path in _items((), want, tree, others)
        if (there := values.at(field_path)) is not ABSENT
    )


def _items(
    above: tuple[str, ...], want: Any, tree: Tree, others: Entries
) -> Iterator[tuple[str, ...]]:
    """Yield the places of such items; `want` is the declaration at the place `above`."""
    declared = _declared(want, tree)
    for element, below in tree.items():
        field_path = (*above, element)
        if element == SELF:
            continue
        if element[:2] != "f:" and element not in declared:
            if not others.below(element).pairs:
                yield field_path
        elif element in declared or _is_list(below):
            yield from _items(field_path, declared.get(element), below, others.below(element))


def _declared(want: Any, tree: Tree) -> dict[str, Any]:
    """Return the declared values at a place, by element."""
    if is_map(want):
        return {"f:" + name: value for name, value in want.items()}
    if is_list(want):
        elements = assign(want, [element for element in tree if element != SELF])
        return {element: item for element, item in zip(elements, want, strict=True) if element}
    return {}


def _is_list(tree: Tree) -> bool:
    return any(element[:2] in ("k:", "v:") for element in tree)


def without_yielded(
    want: Object, live: Object, manager: str, is_yielded: Callable[[FieldPath], bool]
) -> Object:
    """Return `want` without the yielded fields that another manager holds.

    They are left out even if we hold them too: the other manager must not get a conflict with us.
    Fields that nobody else holds stay declared, or the server would remove them. Another manager's
    entry for an empty map does not hold our fields inside that map.
    """
    mine = entry(live, manager) or {}
    left = {
        field_path
        for _, tree in held(live, but=(manager, "")).pairs
        for field_path in _leaves(tree or {}, ())
        if is_yielded(field_path) and not subtree(mine, field_path)
    }
    leaves = [
        Leaf(path_of(field_path), field_path, "lost", None, None, (), equal=False)
        for field_path in left
    ]
    return leave_out(want, leaves) if leaves else want


def respelled(want: Object, verdict: Verdict) -> Object:
    """Return `want` with the live spelling where another manager holds an equal value.

    The server compares spellings to find conflicts: `1000m` conflicts with `1`.
    """
    if not builtin(str(want.get("apiVersion", ""))):
        return want
    spelled: dict[FieldPath, _Edit] = {
        leaf.field_path: lambda _, live=leaf.live: live
        for leaf in verdict.contested
        if identical(canonical_value(leaf.want, leaf.field_path), leaf.live)
    }
    return _edited(want, spelled) if spelled else want


def with_held_items(
    want: Object, live: Object, manager: str, verdict: Verdict
) -> tuple[Object, tuple[Leaf, ...]]:
    """Return `want` plus the items that are no longer declared but in which others hold fields.

    The server removes an item when its last owner gives it up, together with the fields that
    others hold inside it: an unforced apply removes their fields without a conflict (seen on 1.36).
    So we keep declaring such an item as it is. The second result reports each of these items as
    contested by the managers that hold fields in it.
    """
    if not verdict.leaves:
        return want, ()
    mine = entry(live, manager) or {}
    others = held(live, but=(manager, ""))
    kept: dict[FieldPath, Leaf] = {}
    items: dict[FieldPath, dict[str, Any]] = {}
    for leaf in verdict.leaves:
        holders = _holders_within(others.at(leaf.field_path)) if _is_item(leaf) else ()
        inside = any(leaf.field_path[:length] in kept for length in range(len(leaf.field_path)))
        if holders and not inside:
            kept[leaf.field_path] = replace(leaf, holders=holders)
            part = item(leaf.live, leaf.field_path[-1], subtree(mine, leaf.field_path) or {})
            items.setdefault(leaf.field_path[:-1], {})[leaf.field_path[-1]] = part
    values = Values(live)
    more: dict[FieldPath, _Edit] = {
        place: partial(_extended, parts, values.at(place), _elements(mine, others, place))
        for place, parts in items.items()
    }
    return _edited(want, more) if more else want, tuple(kept.values())


def _is_item(leaf: Leaf) -> bool:
    return leaf.why == "surplus" and leaf.live is not None and leaf.field_path[-1].startswith("k:")


def _holders_within(there: Entries) -> tuple[Holder, ...]:
    """Return the managers that hold fields within an item, but not the item itself.

    `before-first-apply` counts even if it holds the item: managed fields were emptied, and the
    item's owner is unknown. If we gave the item up, nobody would ever remove it.
    """
    return tuple(
        holder
        for holder, below in there.pairs
        if below
        if SELF not in below or is_before_first_apply(holder)
    )


_Edit = Callable[[Any], Any]
"""A function from the old value at a place to the new one."""


def _edited(want: Any, edits: Mapping[FieldPath, _Edit]) -> Any:
    """Return a declaration with edits at some of its places; each list is read only once."""
    if () in edits:
        return edits[()](want)
    edit_of = by_element(edits)
    if is_list(want):
        elements = assign(want, edit_of)
        return [
            _edited(wanted, edit_of[element]) if element else wanted
            for wanted, element in zip(want, elements, strict=True)
        ]
    there: Object = want or {}
    below = {step[2:]: _edited(there.get(step[2:]), inner) for step, inner in edit_of.items()}
    return {**there, **below}


def _elements(mine: Tree, others: Entries, place: FieldPath) -> list[str]:
    known = dict.fromkeys((*(subtree(mine, place) or ()), *others.at(place).elements()))
    return [element for element in known if element != SELF]


def _extended(parts: Mapping[str, Any], live: list[Any], known: Iterable[str], there: Any) -> Any:
    """Return a declared list with more of the live items, which stay where they are.

    Appended, they would change places, and pods roll out with another order of containers.
    """
    wants: dict[str, Any] = {}
    for index, (wanted, element) in enumerate(
        zip(there or (), named(there or (), known), strict=True)
    ):
        wants[f"i:{index}" if element is None or element in wants else element] = wanted
    items = {**parts, **wants}
    lives = [element for element in named(live, known) if element]
    return [items[element] for element in interleaved(lives, list(wants)) if element in items]


def covers(want: Any, live: Any) -> bool:
    """Return whether a live value is the declared one, apart from fields added to its maps."""
    if is_map(want):
        return is_map(live) and all(k in live and covers(v, live[k]) for k, v in want.items())
    if is_list(want):
        return is_list(live) and len(want) == len(live) and all(map(covers, want, live))
    return identical(want, live)


def _leaves(tree: Tree, field_path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for element, below in tree.items():
        if element != SELF:
            yield from (
                _leaves(below, (*field_path, element)) if below else ((*field_path, element),)
            )


_Paths = Mapping[tuple[str, ...], None]
_NOTHING: _Paths = MappingProxyType({})


def leave_out(want: Object, contested: Iterable[Leaf]) -> Object:
    """Return `want` without these leaves, so that the server accepts the rest.

    An atomic field is left out as a whole; a leaf in a keyed list item is left out of that item.
    A map or list that this empties is left out too. One that was declared empty stays, and so do
    the keys of list items. Raises nothing.
    """
    return _from_map(want, dict.fromkeys(leaf.field_path for leaf in contested), keys=())


def _from_map(want: Object, paths: _Paths, keys: tuple[str, ...]) -> Object:
    kept: Object = {}
    left_out = by_element(paths)
    for name, value in want.items():
        below = _NOTHING if name in keys else left_out.get("f:" + name, _NOTHING)
        if () in below:
            continue
        left = _from(value, below) if below else value
        if left or not value:
            kept[name] = left
    return kept


def _from_list(want: list[Any], paths: _Paths) -> list[Any]:
    left_out = by_element(paths)
    kept: list[Any] = []
    for member, element in zip(want, assign(want, left_out), strict=True):
        below = left_out[element] if element else _NOTHING
        if () not in below:
            keys = parse(element).names if element else ()
            kept.append(_from(member, below, keys) if below else member)
    return kept


def _from(value: Any, paths: _Paths, keys: tuple[str, ...] = ()) -> Any:
    if is_map(value):
        return _from_map(value, paths, keys)
    if is_list(value):
        return _from_list(value, paths)
    return value
