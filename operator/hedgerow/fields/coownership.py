"""Co-ownership: a declaration adapted to what others hold, so that it takes nothing from them."""

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
"""Defaults that the server adds inside atomic fields; no other kind of default has an owner."""


def without_yielded(
    want: Object, live: Object, manager: str, is_yielded: Callable[[Steps], bool]
) -> Object:
    """Return `want` without the yielded fields that another manager holds.

    They are left out even if we hold them too: the other manager must not get a conflict with us.
    Fields that nobody else holds stay declared, or the server would remove them. Another manager's
    entry for an empty map does not hold our fields inside that map.
    """
    mine = entry(live, manager) or {}
    left = {
        steps for steps in _foreign(live, manager) if is_yielded(steps) and not subtree(mine, steps)
    }
    leaves = [Leaf(path_of(steps), steps, "lost", None, None, (), equal=False) for steps in left]
    return ownership.leave_out(want, leaves) if leaves else want


def respelled(want: Object, verdict: Verdict) -> Object:
    """Return `want` with the live spelling where another manager holds an equal value.

    The server compares spellings to find conflicts: `1000m` conflicts with `1`.
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
    """Return `want` plus the items that are no longer declared but in which others hold fields.

    The server removes an item when its last owner gives it up, together with the fields that
    others hold inside it: an unforced apply removes their fields without a conflict (seen on 1.36).
    So we keep declaring such an item as it is. The second result reports each of these items as
    contested by the managers that hold fields in it.
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


def _edited(want: Any, edits: Mapping[Steps, _Edit]) -> Any:
    """Return a declaration with edits at some of its places; each list is read only once."""
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
    """Return whether a live value is the declared one, apart from fields added to its maps."""
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
