"""Extract: what a field manager declares of a live object, as the applied configuration it was."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hedgerow.core.fieldset import SELF, Positions, Tree, is_list, is_map, parse
from hedgerow.core.managed import entry
from hedgerow.core.meta import metadata

if TYPE_CHECKING:
    from hedgerow_schemas.base import Object


def extract(live: Object, manager: str, subresource: str = "") -> Object | None:
    """Give what a manager's last apply declared, in the live spelling; None without an entry.

    To apply it again changes no value; to apply it with a part taken out gives up that part, and
    with it what was declared as empty or zero and is left out by the server. It carries the
    object's identity and uid. The managed fields alone tell the structure, without a schema as
    client-go's `ExtractInto` has it: a leaf is taken whole, a list item with all its keys.
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
    """Give what `tree` declares of one live list item, its keys included."""
    parsed = parse(element)
    if parsed.kind != "k":
        return live
    keys = dict(zip(parsed.names, parsed.values, strict=True))
    return {**keys, **_value(live, tree)}


def _map(live: Object, tree: Tree) -> Object:
    kept: Object = {}
    for element, below in tree.items():
        parsed = parse(element)
        if parsed.kind == "f" and parsed.names[0] in live:
            kept[parsed.names[0]] = _value(live[parsed.names[0]], below)
    return kept


def _value(live: Any, tree: Tree) -> Any:
    below = {element: inner for element, inner in tree.items() if element != SELF}
    if is_map(live):
        # A map that is ours as such, and of which nothing else is, was declared empty.
        return _map(live, below) if below or SELF in tree else live
    if is_list(live) and (below or SELF in tree):
        return _list(live, below)
    return live


def _list(live: list[Any], tree: Tree) -> list[Any]:
    where = Positions(live)
    found = {index: element for element in tree for index in where.of(element)}
    return [item(live[i], found[i], tree[found[i]]) for i in sorted(found)]
