"""Applied configuration: what is sent, without the leaves that others hold and without nulls."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from hedgerow.core.fieldset import assign, by_element, is_list, is_map, parse

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hedgerow.core.walk import Leaf
    from hedgerow_schemas.base import Object

_Paths = Mapping[tuple[str, ...], None]


_NOTHING: _Paths = MappingProxyType({})


def leave_out(want: Object, contested: Iterable[Leaf]) -> Object:
    """Give `want` without these leaves, so that the server takes the rest; raises nothing.

    An atomic field goes whole, a leaf inside a keyed list item inside that item. A map or list that
    this empties goes too, one that was declared empty stays, and so do the keys of list items.
    """
    return _from_map(want, dict.fromkeys(leaf.steps for leaf in contested), keys=())


def without_nulls(value: Any) -> Any:
    """Give a JSON value without its nulls, which server-side apply would own."""
    if is_map(value):
        return {name: without_nulls(inner) for name, inner in value.items() if inner is not None}
    if is_list(value):
        return [without_nulls(item) for item in value if item is not None]
    return value


def _from_map(want: Object, paths: _Paths, keys: tuple[str, ...]) -> Object:
    kept: Object = {}
    left_out = by_element(paths)
    for name, value in want.items():
        below = _NOTHING if name in keys else left_out.get("f:" + name, _NOTHING)
        if () in below:
            continue
        left = _from(value, below) if below else value
        if left or not value:
            kept[name] = left
    return kept


def _from_list(want: list[Any], paths: _Paths) -> list[Any]:
    left_out = by_element(paths)
    kept: list[Any] = []
    for item, element in zip(want, assign(want, left_out), strict=True):
        below = left_out[element] if element else _NOTHING
        if () not in below:
            keys = parse(element).names if element else ()
            kept.append(_from(item, below, keys) if below else item)
    return kept


def _from(value: Any, paths: _Paths, keys: tuple[str, ...] = ()) -> Any:
    if is_map(value):
        return _from_map(value, paths, keys)
    if is_list(value):
        return _from_list(value, paths)
    return value
