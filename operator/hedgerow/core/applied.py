"""Applied configuration: what is sent, without the leaves that others hold and without nulls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hedgerow.core.fieldset import assign, is_list, is_map, parse

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hedgerow.core.walk import Leaf
    from hedgerow_schemas.base import Object

_Paths = Sequence[tuple[str, ...]]


def leave_out(want: Object, contested: Iterable[Leaf]) -> Object:
    """Give `want` without these leaves, so that the server takes the rest; raises nothing.

    An atomic field goes whole, a leaf inside a keyed list item inside that item. A map or list that
    this empties goes too, one that was declared empty stays, and so do the keys of list items.
    """
    return _from_map(want, [leaf.steps for leaf in contested], keys=())


def without_nulls(value: Any) -> Any:
    """Give a JSON value without its nulls, which server-side apply would own."""
    if is_map(value):
        return {name: without_nulls(inner) for name, inner in value.items() if inner is not None}
    if is_list(value):
        return [without_nulls(item) for item in value if item is not None]
    return value


def _from_map(want: Object, paths: _Paths, keys: tuple[str, ...]) -> Object:
    kept: Object = {}
    for name, value in want.items():
        below = [] if name in keys else _below(paths, "f:" + name)
        if () in below:
            continue
        left = _from(value, below) if below else value
        if left or not value:
            kept[name] = left
    return kept


def _from_list(want: list[Any], paths: _Paths) -> list[Any]:
    known = dict.fromkeys(path[0] for path in paths)
    kept: list[Any] = []
    for item, element in zip(want, assign(want, known), strict=True):
        below = _below(paths, element) if element else []
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


def _below(paths: _Paths, element: str) -> list[tuple[str, ...]]:
    return [path[1:] for path in paths if path and path[0] == element]
