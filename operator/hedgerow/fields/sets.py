"""Sets: the places of fieldsV1 trees, and the values that they select."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from hedgerow.fields.paths import SELF, Positions, Tree, is_list, is_map, parse

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from hedgerow_schemas.base import Object

FieldPath = tuple[str, ...]
"""A place: fieldsV1 elements from the top of the object."""

ABSENT: Final = object()
"""Stands for a missing value; null is a value."""


def members(tree: Tree, above: FieldPath = ()) -> Iterator[FieldPath]:
    """Yield each place that a tree holds: fields, and the maps, lists and items held as such."""
    for element, below in tree.items():
        if element == SELF:
            continue
        place = (*above, element)
        if not below or SELF in below:
            yield place
        yield from members(below, place)


def subtree(tree: Tree, field_path: Iterable[str]) -> Tree | None:
    """Return the part of a tree at a place and below it; None if it holds nothing there."""
    below: Tree | None = tree
    for step in field_path:
        below = None if below is None else below.get(step)
    return below


def is_key(field_path: FieldPath) -> bool:
    """Return whether a place is a key field of its list item; it exists as long as the item."""
    if len(field_path) < 2:  # noqa: PLR2004 - the item and its field
        return False
    item, field = parse(field_path[-2]), parse(field_path[-1])
    return item.kind == "k" and field.kind == "f" and field.names[0] in item.names


def with_places(tree: Tree, places: Iterable[FieldPath]) -> Tree:
    """Return the tree with these places added."""
    whole = {element: with_places(below, ()) for element, below in tree.items()}
    for field_path in places:
        here: dict[str, Any] = whole
        for element in field_path:
            here = here.setdefault(element, {})
    return whole


class Values:
    """Reads the values at places of one object; each list is indexed only once."""

    __slots__ = ("_indexed", "live")

    def __init__(self, live: Object) -> None:
        self.live = live
        self._indexed: dict[int, Positions] = {}

    def at(self, field_path: FieldPath) -> Any:
        """Return the value at a place, or ABSENT; several items with one key come as a list."""
        value: Any = self.live
        for element in field_path:
            if is_map(value) and parse(element).kind == "f":
                value = value.get(parse(element).names[0], ABSENT)
            elif is_list(value) and (positions := self._positions(value).indices(element)):
                several = len(positions) > 1
                value = [value[index] for index in positions] if several else value[positions[0]]
            else:
                return ABSENT
        return value

    def _positions(self, items: list[Any]) -> Positions:
        # The index keeps its list alive, so no other list can get the same id.
        return self._indexed.setdefault(id(items), Positions(items))
