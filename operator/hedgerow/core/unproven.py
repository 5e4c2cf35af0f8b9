"""Unproven: list items that may have been ours, of an object whose managed fields were emptied.

The first apply to such an object books everything that is there on `before-first-apply`. An item
that is not declared may then be one that we declared once, a sidecar of somebody else, or a
default: nothing tells them apart any more, so none of them is pruned.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hedgerow.core.fieldset import SELF, Tree, assign, is_list, is_map, path_of
from hedgerow.core.managed import Entries, held
from hedgerow.core.trees import ABSENT, Values
from hedgerow.core.walk import Leaf, is_before_first_apply

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hedgerow_schemas.base import Object

_NOT_OURS = ("f:metadata", "f:status")
"""Owner references and finalizers of ours are known by what is in them; a status has no items."""


def unproven(want: Object, live: Object) -> tuple[Leaf, ...]:
    """Give the list items that nobody holds but `before-first-apply` and that are not declared.

    Only lists are looked at that are declared, or that stand in a map that is.
    """
    found = held(live).pairs
    before = next((one for one in found if is_before_first_apply(one[0])), None)
    if before is None:
        return ()
    holder, fields = before
    tree = {element: below for element, below in (fields or {}).items() if element not in _NOT_OURS}
    others = Entries(other for other in found if other is not before)
    values = Values(live)
    return tuple(
        Leaf(path_of(steps), steps, "surplus", None, there, (holder,), equal=False)
        for steps in _items((), want, tree, others)
        if (there := values.at(steps)) is not ABSENT
    )


def _items(
    above: tuple[str, ...], want: Any, tree: Tree, others: Entries
) -> Iterator[tuple[str, ...]]:
    """Give the places of such items; `want` is what is declared at the place of these trees."""
    declared = _declared(want, tree)
    for element, below in tree.items():
        steps = (*above, element)
        if element == SELF:
            continue
        if element[:2] != "f:" and element not in declared:
            if not others.below(element).pairs:
                yield steps
        elif element in declared or _is_list(below):
            yield from _items(steps, declared.get(element), below, others.below(element))


def _declared(want: Any, tree: Tree) -> dict[str, Any]:
    """Give what is declared at a place, by element."""
    if is_map(want):
        return {"f:" + name: value for name, value in want.items()}
    if is_list(want):
        elements = assign(want, [element for element in tree if element != SELF])
        return {element: item for element, item in zip(elements, want, strict=True) if element}
    return {}


def _is_list(tree: Tree) -> bool:
    return any(element[:2] in ("k:", "v:") for element in tree)
