"""Sets: the leaves and the union of fieldsV1 trees."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.fields.paths import SELF

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hedgerow.fields.paths import Tree
    from hedgerow.fields.sets import FieldPath


def leaves(tree: Tree, above: FieldPath = ()) -> Iterator[FieldPath]:
    """Yield each place of a tree that has no other place below it."""
    for element, below in tree.items():
        if element == SELF:
            continue
        place = (*above, element)
        if any(inner != SELF for inner in below):
            yield from leaves(below, place)
        else:
            yield place


def union(tree: Tree, other: Tree) -> Tree:
    """Return the union of two trees that begin at the object; an empty one holds nothing."""
    both = {
        element: _union_below(tree[element], other[element]) for element in tree if element in other
    }
    return {**tree, **other, **both}


def _union_below(below: Tree, other: Tree) -> Tree:
    whole = union(below, other)
    # An empty tree holds the place itself, which has to be written where there is more below it.
    return {SELF: {}, **whole} if whole and not (below and other) else whole
