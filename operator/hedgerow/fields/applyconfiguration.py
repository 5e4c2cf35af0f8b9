"""Apply configurations: a manager's last apply, and the next one that declares more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hedgerow.fields.managed_fields import entry
from hedgerow.fields.paths import SELF, Positions, Tree, is_list, is_map, parse
from hedgerow.fields.sets import FieldPath, with_places
from hedgerow.objects import metadata

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from hedgerow_schemas.base import Object


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


def extract(live: Mapping[str, Any], manager: str, subresource: str = "") -> Object | None:
    """Return a manager's last applied configuration, in the live spelling; None without an entry.

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
    """Return the fields of one live list item that `tree` declares, including its keys."""
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
    elements = {index: element for element in tree for index in where.indices(element)}
    return [item(live[i], elements[i], tree[elements[i]]) for i in sorted(elements)]


def declaring(live: Object, manager: str, places: Iterable[FieldPath]) -> Object:
    """Return the apply that makes a manager hold these places too, with their live values.

    It declares again all that the manager declared before: an apply removes what it leaves out.
    The server refuses it if the object has another version than `live`.
    """
    tree = with_places(entry(live, manager) or {}, places)
    held = {"manager": manager, "operation": "Apply", "fieldsV1": tree}
    body = extract({**live, "metadata": {**metadata(live), "managedFields": [held]}}, manager)
    return versioned(body or {}, live)


def versioned(body: Object, live: Object) -> Object:
    """Return the apply with `live`'s resourceVersion: refused if the object changed since."""
    version = metadata(live)["resourceVersion"]
    return {**body, "metadata": {**body["metadata"], "resourceVersion": version}}
