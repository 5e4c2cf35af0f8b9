"""Edits: the fields that an author holds, which of them to try, and manifests with one changed."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from hedgerow.fields.managed_fields import entry
from hedgerow.fields.sets import ABSENT, Values, is_key
from hedgerow_tools.fields import edits
from hedgerow_tools.fields.sets import leaves

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from hedgerow.fields.sets import FieldPath
    from hedgerow_schemas.base import Object


def held_fields(live: Object, manager: str) -> tuple[tuple[FieldPath, Any], ...]:
    """Return the leaves that a manager applied, with their values; keys of items are left out."""
    values = Values(live)
    places = (
        (place, values.at(place))
        for place in leaves(entry(live, manager) or {})
        if place[-1].startswith("f:") and not is_key(place)
    )
    return tuple((place, value) for place, value in places if value is not ABSENT)


def with_value(obj: Any, field_path: FieldPath, value: Any) -> Any:
    """Return a copy with another value at a place; maps and list items above it are made."""
    return edits.put(obj, {field_path: value})


def without(obj: Any, field_path: FieldPath, *, keep_empty: bool = True) -> Any:
    """Return a copy without the value at a place; what is above it stays, if it is empty too."""
    return edits.without(obj, [field_path], keep_empty=keep_empty)


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
