"""Apply configurations: what to send without what others hold, and what a manager sent before."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from hedgerow.fields.managed_fields import entry
from hedgerow.fields.paths import SELF, Positions, Tree, assign, by_element, is_list, is_map, parse
from hedgerow.objects import metadata

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hedgerow.fields.ownership import Leaf
    from hedgerow_schemas.base import Object


_Paths = Mapping[tuple[str, ...], None]


_NOTHING: _Paths = MappingProxyType({})


def leave_out(want: Object, contested: Iterable[Leaf]) -> Object:
    """Return `want` without these leaves, so that the server accepts the rest.

    An atomic field is left out as a whole; a leaf in a keyed list item is left out of that item.
    A map or list that this empties is left out too. One that was declared empty stays, and so do
    the keys of list items. Raises nothing.
    """
    return _from_map(want, dict.fromkeys(leaf.field_path for leaf in contested), keys=())


def without_nulls(value: Any) -> Any:
    """Return a JSON value without its nulls, which server-side apply would own."""
    if is_map(value):
        return {
            name: inner if type(inner) is str else without_nulls(inner)  # most of them are
            for name, inner in value.items()
            if inner is not None
        }
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


def extract(live: Mapping[str, Any], manager: str, subresource: str = "") -> Object | None:
    """Return what a manager's last apply declared, in the live spelling; None without an entry.

    Applying it again changes no value. Applying it without a part gives up that part. Fields that
    were declared empty or zero, and that the server omits, are not in it: they are given up too.
    It carries the object's identity and uid. Unlike client-go's `ExtractInto` it needs no schema:
    the managed fields tell the structure. A leaf is taken whole, a list item with all its keys.
    """
    tree = entry(live, manager, subresource)
    if tree is None:
        return None
    meta = metadata(live)
    kept = _map(live, tree)
    named = {key: meta[key] for key in ("name", "namespace", "uid") if meta.get(key)}
    identity = {"apiVersion": live["apiVersion"], "kind": live["kind"]}
    return {**kept, **identity, "metadata": {**kept.get("metadata", {}), **named}}


def item(live: Any, element: str, tree: Tree) -> Any:
    """Return what `tree` declares of one live list item, including its keys."""
    parsed = parse(element)
    if parsed.kind != "k":
        return live
    keys = dict(zip(parsed.names, parsed.values, strict=True))
    return {**keys, **_value(live, tree)}


def _map(live: Mapping[str, Any], tree: Tree) -> Object:
    kept: Object = {}
    for element, below in tree.items():
        parsed = parse(element)
        if parsed.kind == "f" and parsed.names[0] in live:
            kept[parsed.names[0]] = _value(live[parsed.names[0]], below)
    return kept


def _value(live: Any, tree: Tree) -> Any:
    below = {element: inner for element, inner in tree.items() if element != SELF}
    if is_map(live):
        # We own the map itself and nothing in it: it was declared empty.
        return _map(live, below) if below or SELF in tree else live
    if is_list(live) and (below or SELF in tree):
        return _list(live, below)
    return live


def _list(live: list[Any], tree: Tree) -> list[Any]:
    where = Positions(live)
    found = {index: element for element in tree for index in where.of(element)}
    return [item(live[i], found[i], tree[found[i]]) for i in sorted(found)]
