"""Edits: a JSON value with other values at some places, without some, or with its list keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from hedgerow.fields.sets import FieldPath
    from hedgerow_schemas.base import Object


def put(value: Any, wants: Mapping[FieldPath, Any]) -> Any:
    """Return a JSON value with new values at some places; missing parents are created.

    No place may be below another one.
    """
    if () in wants:
        return wants[()]
    parts = by_element(wants)
    if not parts:
        return value
    if next(iter(parts)).startswith("f:"):
        fields: Object = value if is_map(value) else {}
        return fields | {e[2:]: put(fields.get(e[2:]), below) for e, below in parts.items()}
    items: list[Any] = list(value) if is_list(value) else []
    where = Positions(tuple(items))
    for element, below in parts.items():
        at = where.indices(element)
        if at:
            items[at[0]] = put(items[at[0]], below)
        else:
            items.append(put(_keys(element), below))
    return items


def without(value: Any, places: Iterable[FieldPath], *, keep_empty: bool = False) -> Any:
    """Return a JSON value without some places, and without maps and lists that this empties.

    The value itself stays, even if it is empty; with `keep_empty` all do.
    """
    return _without(value, dict.fromkeys(places), keep_empty=keep_empty)


def _without(value: Any, places: Mapping[FieldPath, None], *, keep_empty: bool) -> Any:
    parts = by_element(places)
    if is_map(value):
        left = {
            name: _without(inner, parts["f:" + name], keep_empty=keep_empty)
            for name, inner in value.items()
            if "f:" + name in parts and () not in parts["f:" + name]
        }
        return {
            name: left.get(name, inner)
            for name, inner in value.items()
            if "f:" + name not in parts or left.get(name) or (keep_empty and name in left)
        }
    if not is_list(value):
        return value
    where = Positions(value)
    below: dict[int, dict[FieldPath, None]] = {}
    for element, inner in parts.items():
        for index in where.indices(element):
            below.setdefault(index, {}).update(inner)
    return [
        _without(item, below[index], keep_empty=keep_empty) if index in below else item
        for index, item in enumerate(value)
        if () not in below.get(index, ())
    ]


def arranged(merged: Any, live: Any, want: Any, known: Sequence[Tree]) -> Any:
    """Return a live value with a declaration merged into it, with each list in the server's order.

    `live` is the value before. `known` are the trees at its place, with those of what is declared.
    """
    below = inside(known)
    if is_map(merged) and is_map(want):
        was: Object = live if is_map(live) else {}
        return {
            name: arranged(inner, was.get(name), want[name], below.get("f:" + name, ()))
            if name in want
            else inner
            for name, inner in merged.items()
        }
    if not (below and is_list(merged) and is_list(want)):
        return merged
    items, lives, wants = (_by_element(value, below) for value in (merged, live, want))
    if len(items) < len(merged):
        return merged
    order = interleaved(list(lives), list(wants))
    return [
        arranged(items[element], lives.get(element), wants.get(element), below.get(element, ()))
        for element in dict.fromkeys((*order, *items))
        if element in items
    ]


def _by_element(items: Any, known: Mapping[str, Any]) -> dict[str, Any]:
    """Return the items of a list that have an element, each by it."""
    values = items if is_list(items) else []
    return {e: item for e, item in zip(named(values, known), values, strict=True) if e}


def keyed(want: Any, known: Sequence[Tree]) -> Any:
    """Return a declaration with the list keys that it left to a default, taken from `known`."""
    below = inside(known)
    if is_map(want):
        return {name: keyed(inner, below.get("f:" + name, ())) for name, inner in want.items()}
    if not is_list(want) or not below:
        return want
    return [
        keyed({**_keys(element), **item}, below[element]) if element and is_map(item) else item
        for item, element in zip(want, assign(want, below), strict=True)
    ]


def inside(trees: Iterable[Tree]) -> dict[str, list[Tree]]:
    """Return the subtrees of these trees, grouped by element."""
    groups: dict[str, list[Tree]] = {}
    for tree in trees:
        for element, below in tree.items():
            if element != SELF:
                groups.setdefault(element, []).append(below)
    return groups


def _keys(step: str) -> Any:
    """Return a list item with only its keys."""
    read = parse(step)
    return dict(zip(read.names, read.values, strict=True)) if read.kind == "k" else {}
