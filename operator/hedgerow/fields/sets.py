"""Sets: the trees of fieldsV1: their leaves, union and difference, and the values they select."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from hedgerow.fields.applyconfiguration import extract
from hedgerow.fields.managed import Entries, entry
from hedgerow.fields.paths import SELF, Positions, Tree, is_list, is_map, parse
from hedgerow.objects import metadata

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from hedgerow_schemas.base import Object

Steps = tuple[str, ...]
"""A place: fieldsV1 elements from the top of the object."""

ABSENT: Final = object()
"""What stands where nothing does; null is a value."""


def leaves(tree: Tree, above: Steps = ()) -> Iterator[Steps]:
    """Yield each place that a tree holds and that has no other place in the tree below it."""
    for element, below in tree.items():
        if element == SELF:
            continue
        place = (*above, element)
        if any(inner != SELF for inner in below):
            yield from leaves(below, place)
        else:
            yield place


def subtree(tree: Tree, steps: Iterable[str]) -> Tree | None:
    """Return what a tree holds at a place and below it; None where it holds nothing."""
    found: Tree | None = tree
    for step in steps:
        found = None if found is None else found.get(step)
    return found


def is_key(steps: Steps) -> bool:
    """Return whether a place is a key of its list item, which stays as long as the item does."""
    if len(steps) < 2:  # noqa: PLR2004 - the item and its field
        return False
    item, field = parse(steps[-2]), parse(steps[-1])
    return item.kind == "k" and field.kind == "f" and field.names[0] in item.names


def is_hollow(held: Entries, steps: Steps) -> bool:
    """Return whether a leaf holds just a map or list as such: other entries hold what is in it.

    It looks like an atomic one, and to declare it with its value would be to hold it all.
    """
    return any(inner != SELF for inner in held.at(steps).elements())


def united(tree: Tree, places: Iterable[Steps]) -> Tree:
    """Return the tree that holds these places as well."""
    whole = {element: united(below, ()) for element, below in tree.items()}
    for steps in places:
        here: dict[str, Any] = whole
        for element in steps:
            here = here.setdefault(element, {})
    return whole


def cut(tree: Tree, places: Collection[Steps]) -> Tree:
    """Return the tree without these leaves; what that leaves without content goes as well.

    It must: a bare `{}` would hold the whole of what is there.
    """
    return _cut(tree, frozenset(places), ())


def _cut(tree: Tree, places: Collection[Steps], above: Steps) -> Tree:
    kept: dict[str, Any] = {}
    for element, below in tree.items():
        place = (*above, element)
        if place in places:
            continue
        left = _cut(below, places, place)
        if left or not below:
            kept[element] = left
    return kept


class Values:
    """Reads the values at places of one object; each list on the way is indexed once."""

    __slots__ = ("_indexed", "live")

    def __init__(self, live: Object) -> None:
        self.live = live
        self._indexed: dict[int, Positions] = {}

    def at(self, steps: Steps) -> Any:
        """Return the value at a place, or ABSENT; several items of one key are given as a list."""
        value: Any = self.live
        for element in steps:
            if is_map(value) and parse(element).kind == "f":
                value = value.get(parse(element).names[0], ABSENT)
            elif is_list(value) and (found := self._positions(value).of(element)):
                several = len(found) > 1
                value = [value[index] for index in found] if several else value[found[0]]
            else:
                return ABSENT
        return value

    def _positions(self, items: list[Any]) -> Positions:
        # What is indexed holds its list, so that no other one can come by its id.
        return self._indexed.setdefault(id(items), Positions(items))


def declaring(live: Object, manager: str, places: Iterable[Steps], subresource: str = "") -> Object:
    """Return the apply by which a manager holds these places too, with the values that are there.

    All that it declared before is declared again: what an apply leaves out, it removes. It goes to
    exactly the version that was looked at.
    """
    tree = united(entry(live, manager, subresource) or {}, places)
    meta = metadata(live)
    held = {
        "manager": manager,
        "operation": "Apply",
        "subresource": subresource,
        "fieldsV1": tree,
    }
    body = extract({**live, "metadata": {**meta, "managedFields": [held]}}, manager, subresource)
    return versioned(body or {}, live)


def versioned(body: Object, live: Object) -> Object:
    """Return an apply that is refused unless the object is still of the version looked at."""
    version = metadata(live)["resourceVersion"]
    return {**body, "metadata": {**body["metadata"], "resourceVersion": version}}
