"""Agreement: a declaration fitted to what others hold, where that takes nothing from anybody."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hedgerow.core import ownership
from hedgerow.core.canonical import builtin, canonical, identical
from hedgerow.core.extract import item
from hedgerow.core.fieldset import SELF, assign, is_list, is_map, path_of
from hedgerow.core.managed import Holder, entries, entry
from hedgerow.core.ownership import Leaf
from hedgerow.core.trees import subtree
from hedgerow.core.walk import is_before_first_apply

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from hedgerow.core.fieldset import Tree
    from hedgerow.core.ownership import Verdict
    from hedgerow.core.trees import Steps
    from hedgerow_schemas.base import Object

_DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "f:fieldRef": {"apiVersion": "v1"},
    "f:resourceFieldRef": {"divisor": "0"},
}
"""What the server adds within atomic fields: the one kind of default that has an owner."""


def without_yielded(
    want: Object, live: Object, manager: str, is_yielded: Callable[[Steps], bool]
) -> Object:
    """Give `want` without the fields that are yielded and that somebody else holds.

    They are left out though we hold them as well: whoever is yielded to must not meet a conflict
    with us. What nobody else holds stays declared, or it would be lost: an empty map of somebody
    else over fields of ours is no hold of these.
    """
    mine = entry(live, manager) or {}
    held = {
        steps for steps in _foreign(live, manager) if is_yielded(steps) and not subtree(mine, steps)
    }
    leaves = [Leaf(path_of(steps), steps, "lost", None, None, (), equal=False) for steps in held]
    return ownership.leave_out(want, leaves) if leaves else want


def respelled(want: Object, verdict: Verdict) -> Object:
    """Give `want` with the live spelling where somebody holds the same in other words.

    To a co-owner the server compares spellings: `1000m` conflicts with `1`.
    """
    if not builtin(str(want.get("apiVersion", ""))):
        return want
    for leaf in verdict.contested:
        if identical(_spelled(leaf.want, leaf.steps), leaf.live):
            want = _put(want, leaf.steps, leaf.live)
    return want


def with_held_items(
    want: Object, live: Object, manager: str, verdict: Verdict
) -> tuple[Object, tuple[Leaf, ...]]:
    """Give `want` with the items that are declared no more and that others hold fields of.

    The server removes an item with its last owner, and with it what others hold inside: an
    unforced apply that takes a field without a conflict (tried on 1.36). Such an item stays
    declared as it is, and is given as contested by those who hold a part of it.
    """
    mine = entry(live, manager) or {}
    kept: list[Leaf] = []
    for leaf in verdict.leaves:
        holders = _holders_within(live, manager, leaf.steps) if _is_item(leaf) else ()
        inside = any(leaf.steps[: len(outer.steps)] == outer.steps for outer in kept)
        if holders and not inside:
            kept.append(replace(leaf, holders=holders))
            part = item(leaf.live, leaf.steps[-1], subtree(mine, leaf.steps) or {})
            want = _with_item(want, leaf.steps[:-1], part)
    return want, tuple(kept)


def _is_item(leaf: Leaf) -> bool:
    return leaf.why == "surplus" and leaf.live is not None and leaf.steps[-1].startswith("k:")


def _holders_within(live: Object, manager: str, steps: Sequence[str]) -> tuple[Holder, ...]:
    """Give who holds something within an item, but not the item itself.

    Of an object whose managed fields were emptied, whose the item was is not known: to let go of
    it would leave it to nobody, for ever.
    """
    return tuple(
        holder
        for holder, _, tree in entries(live)
        if not holder.is_applier(manager, "")
        if (below := subtree(tree, steps))
        if SELF not in below or is_before_first_apply(holder)
    )


def _with_item(want: Any, steps: Sequence[str], part: Any) -> Any:
    if not steps:
        return [*(want or ()), part]
    step, below = steps[0], steps[1:]
    if is_list(want):
        return [
            _with_item(one, below, part) if element == step else one
            for one, element in zip(want, assign(want, [step]), strict=True)
        ]
    there: Object = want or {}
    return {**there, step[2:]: _with_item(there.get(step[2:]), below, part)}


def covers(want: Any, live: Any) -> bool:
    """Tell whether a live value is the declared one, with nothing but additions within it."""
    if is_map(want):
        return is_map(live) and all(k in live and covers(v, live[k]) for k, v in want.items())
    if is_list(want):
        return is_list(live) and len(want) == len(live) and all(map(covers, want, live))
    return identical(want, live)


def _spelled(value: Any, steps: Sequence[str]) -> Any:
    filled = _DEFAULTS.get(steps[-1] if steps else "", {})
    spelled = canonical(value, steps)
    return {**filled, **spelled} if is_map(spelled) else spelled


def _put(want: Any, steps: Sequence[str], value: Any) -> Any:
    if not steps:
        return value
    step, below = steps[0], steps[1:]
    if is_map(want):
        return {**want, step[2:]: _put(want.get(step[2:]), below, value)}
    return [
        _put(item, below, value) if element == step else item
        for item, element in zip(want, assign(want, [step]), strict=True)
    ]


def _foreign(live: Object, manager: str) -> Iterator[tuple[str, ...]]:
    for holder, _, tree in entries(live):
        if not holder.is_applier(manager, ""):
            yield from _leaves(tree, ())


def _leaves(tree: Tree, steps: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for element, below in tree.items():
        if element != SELF:
            yield from _leaves(below, (*steps, element)) if below else ((*steps, element),)
