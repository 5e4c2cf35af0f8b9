"""Edits: the fields that an author holds, which of them to try, and manifests with one changed."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from hedgerow.fields.managed_fields import entry
from hedgerow.fields.paths import Positions, assign, is_list, is_map, parse
from hedgerow.fields.sets import ABSENT, Values, is_key, leaves

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from hedgerow.fields.paths import Tree
    from hedgerow.fields.sets import FieldPath
    from hedgerow_schemas.base import Object


def held_fields(live: Object, manager: str) -> tuple[tuple[FieldPath, Any], ...]:
    """Return the leaves that a manager applied, with their values; keys of items are left out."""
    values = Values(live)
    found = (
        (place, values.at(place))
        for place in leaves(entry(live, manager) or {})
        if place[-1].startswith("f:") and not is_key(place)
    )
    return tuple((place, value) for place, value in found if value is not ABSENT)


def with_keys(obj: Any, tree: Tree) -> Any:
    """Return a copy whose list items spell out the keys that the API server filled in.

    `tree` is what the author holds. An author may leave out `protocol`, which is part of the key.
    """
    if is_map(obj):
        return {name: with_keys(value, tree.get(f"f:{name}") or {}) for name, value in obj.items()}
    if not is_list(obj):
        return obj
    elements = assign(obj, tree)
    return [
        item if element is None else with_keys(_keyed(item, element), tree[element] or {})
        for item, element in zip(obj, elements, strict=True)
    ]


def _keyed(item: Any, element: str) -> Any:
    parsed = parse(element)
    return {**dict(zip(parsed.names, parsed.values, strict=True)), **item} if parsed.names else item


def with_value(obj: Any, field_path: FieldPath, value: Any) -> Any:
    """Return a copy with another value at a place; maps above it are made if there are none."""
    if not field_path:
        return value
    element, rest = field_path[0], field_path[1:]
    if parse(element).kind == "f":
        above: Object = obj if is_map(obj) else {}
        name = parse(element).names[0]
        return {**above, name: with_value(above.get(name), rest, value)}
    items, found = _items(obj, element)
    return [with_value(item, rest, value) if n in found else item for n, item in enumerate(items)]


def without(obj: Any, field_path: FieldPath) -> Any:
    """Return a copy without the value at a place; what is above it stays, if it is empty too."""
    element, rest = field_path[0], field_path[1:]
    if parse(element).kind == "f":
        name = parse(element).names[0]
        if not is_map(obj) or name not in obj:
            return obj
        if not rest:
            return {key: value for key, value in obj.items() if key != name}
        return {**obj, name: without(obj[name], rest)}
    items, found = _items(obj, element)
    return [without(item, rest) if rest and n in found else item for n, item in enumerate(items)]


def _items(obj: Any, element: str) -> tuple[list[Any], frozenset[int]]:
    items: list[Any] = obj if is_list(obj) else []
    return items, frozenset(Positions(items).of(element))


def spread(places: Iterable[FieldPath], most: int) -> tuple[FieldPath, ...]:
    """Return at most so many of the places, taken in turn from each part and depth of the object.

    What is in the spec comes first, labels and annotations last.
    """
    groups: dict[tuple[bool, FieldPath, int], list[FieldPath]] = defaultdict(list)
    for place in places:
        in_metadata = place[0] == "f:metadata"
        groups[in_metadata, place[: 2 if in_metadata else 1], len(place)].append(place)
    return tuple(_in_turn([groups[key] for key in sorted(groups)]))[:most]


def _in_turn(groups: list[list[FieldPath]]) -> Iterator[FieldPath]:
    longest = max(map(len, groups), default=0)
    for index in range(longest):
        yield from (group[index] for group in groups if index < len(group))
