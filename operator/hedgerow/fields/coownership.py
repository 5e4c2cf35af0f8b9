"""Co-ownership: a declaration fitted to fields that others hold, taking nothing from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from hedgerow.fields import ownership
from hedgerow.fields.applyconfiguration import item
from hedgerow.fields.canonical import builtin, canonical, identical
from hedgerow.fields.managed import Entries, Holder, entry, held
from hedgerow.fields.ownership import Leaf, is_before_first_apply
from hedgerow.fields.paths import SELF, assign, by_element, is_list, is_map, path_of
from hedgerow.fields.sets import Steps, subtree

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hedgerow.fields.ownership import Verdict
    from hedgerow.fields.paths import Tree
    from hedgerow_schemas.base import Object

_DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "f:fieldRef": {"apiVersion": "v1"},
    "f:resourceFieldRef": {"divisor": "0"},
}
"""What the server adds within atomic fields: the one kind of default that has an owner."""


def without_yielded(
    want: Object, live: Object, manager: str, is_yielded: Callable[[Steps], bool]
) -> Object:
    """Return `want` without the fields that are yielded and that somebody else holds.

    They are left out though we hold them as well: whoever is yielded to must not meet a conflict
    with us. What nobody else holds stays declared, or it would be lost: an empty map of somebody
    else over fields of ours is no hold of these.
    """
    mine = entry(live, manager) or {}
    left = {
        steps for steps in _foreign(live, manager) if is_yielded(steps) and not subtree(mine, steps)
    }
    leaves = [Leaf(path_of(steps), steps, "lost", None, None, (), equal=False) for steps in left]
    return ownership.leave_out(want, leaves) if leaves else want


def respelled(want: Object, verdict: Verdict) -> Object:
    """Return `want` with the live spelling where somebody holds the same in other words.

    To a co-owner the server compares spellings: `1000m` conflicts with `1`.
    """
    if not builtin(str(want.get("apiVersion", ""))):
        return want
    spelled: dict[Steps, _Edit] = {
        leaf.steps: partial(_replaced, leaf.live)
        for leaf in verdict.contested
        if identical(_spelled(leaf.want, leaf.steps), leaf.live)
    }
    return _edited(want, spelled) if spelled else want


def with_held_items(
    want: Object, live: Object, manager: str, verdict: Verdict
) -> tuple[Object, tuple[Leaf, ...]]:
    """Return `want` with the items that are declared no more and that others hold fields of.

    The server removes an item with its last owner, and with it what others hold inside: an
    unforced apply that takes a field without a conflict (tried on 1.36). Such an item stays
    declared as it is, and is given as contested by those who hold a part of it.
    """
    mine = entry(live, manager) or {}
    others = held(live, but=(manager, ""))
    kept: dict[Steps, Leaf] = {}
    items: dict[Steps, list[Any]] = {}
    for leaf in verdict.leaves:
        holders = _holders_within(others.at(leaf.steps)) if _is_item(leaf) else ()
        inside = any(leaf.steps[:length] in kept for length in range(len(leaf.steps)))
        if holders and not inside:
            kept[leaf.steps] = replace(leaf, holders=holders)
            part = item(leaf.live, leaf.steps[-1], subtree(mine, leaf.steps) or {})
            items.setdefault(leaf.steps[:-1], []).append(part)
    more: dict[Steps, _Edit] = {steps: partial(_extended, parts) for steps, parts in items.items()}
    return _edited(want, more) if more else want, tuple(kept.values())


def _is_item(leaf: Leaf) -> bool:
    return leaf.why == "surplus" and leaf.live is not None and leaf.steps[-1].startswith("k:")


def _holders_within(there: Entries) -> tuple[Holder, ...]:
    """Return who holds something within an item, but not the item itself.

    Of an object whose managed fields were emptied, whose the item was is not known: to let go of
    it would leave it to nobody, for ever.
    """
    return tuple(
        holder
        for holder, below in there.pairs
        if below
        if SELF not in below or is_before_first_apply(holder)
    )


_Edit = Callable[[Any], Any]
"""Makes of the value at a place the one that it becomes."""


def _edited(want: Any, edits: Mapping[Steps, _Edit]) -> Any:
    """Return a declaration with edits at some of its places, each list on the way read once."""
    if () in edits:
        return edits[()](want)
    found = by_element(edits)
    if is_list(want):
        elements = assign(want, found)
        return [
            _edited(one, found[element]) if element else one
            for one, element in zip(want, elements, strict=True)
        ]
    there: Object = want or {}
    below = {step[2:]: _edited(there.get(step[2:]), inner) for step, inner in found.items()}
    return {**there, **below}


def _replaced(value: Any, _: Any) -> Any:
    return value


def _extended(parts: list[Any], there: Any) -> list[Any]:
    return [*(there or ()), *parts]


def covers(want: Any, live: Any) -> bool:
    """Return whether a live value is the declared one, with nothing but additions within it."""
    if is_map(want):
        return is_map(live) and all(k in live and covers(v, live[k]) for k, v in want.items())
    if is_list(want):
        return is_list(live) and len(want) == len(live) and all(map(covers, want, live))
    return identical(want, live)


def _spelled(value: Any, steps: Sequence[str]) -> Any:
    filled = _DEFAULTS.get(steps[-1] if steps else "", {})
    spelled = canonical(value, steps)
    return {**filled, **spelled} if is_map(spelled) else spelled


def _foreign(live: Object, manager: str) -> Iterator[tuple[str, ...]]:
    for _, tree in held(live, but=(manager, "")).pairs:
        yield from _leaves(tree or {}, ())


def _leaves(tree: Tree, steps: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for element, below in tree.items():
        if element != SELF:
            yield from _leaves(below, (*steps, element)) if below else ((*steps, element),)
