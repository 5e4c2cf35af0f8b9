"""Merge: what an apply would make of an object, worked out here, without a schema.

It stands in where no server can be asked: values come out as declared, so neither defaults nor
admission are in them. Lists whose keys no managed fields tell are taken for atomic ones.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from hedgerow.core import ownership
from hedgerow.core.canonical import builtin
from hedgerow.core.fieldset import SELF, Tree, assign, coin, is_list, is_map, positions
from hedgerow.core.managed import entries
from hedgerow.core.meta import metadata
from hedgerow.core.trees import subtree
from hedgerow.core.walk import GRANULAR

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hedgerow.core.ownership import Leaf
    from hedgerow_schemas.base import Object

_IDENTITY = ("apiVersion", "kind", "metadata")
_GUARDS = ("name", "namespace", "uid", "resourceVersion")


def merge(
    live: Object,
    body: Object,
    field_manager: str,
    subresource: str = "",
    *,
    shapes: Iterable[Tree] = (),
) -> Object:
    """Give `live` as it is after `field_manager` applied `body`, nothing of which is contested.

    What is not declared any more goes, unless somebody else holds it too. `live` of an object that
    does not exist holds its identity alone. `shapes` are further trees that tell list keys.
    """
    verdict = ownership.judge(body, live, field_manager, subresource)
    merged = live
    for leaf in verdict.leaves:
        if leaf.why in ("lost", "changed"):
            merged = put(merged, leaf.steps, leaf.want)
        elif leaf.why == "surplus" and not _is_held(live, leaf.steps, field_manager, subresource):
            merged = without(merged, leaf.steps)
    known = [*(tree for _, _, tree in entries(live)), *shapes]
    return _booked(merged, live, body, known, (field_manager, subresource))


def taken(live: Object, leaves: Iterable[Leaf], field_manager: str) -> Object:
    """Give `live` as it is once these leaves were taken by force: the values, and whose they are.

    `field_manager` has an entry in `live` already.
    """
    for leaf in leaves:
        live = put(live, leaf.steps, leaf.want)
        moved = [_moved(found, leaf.steps, field_manager) for found in _managed(live)]
        live = {**live, "metadata": {**metadata(live), "managedFields": moved}}
    return live


def put(value: Any, steps: Sequence[str], want: Any) -> Any:
    """Give a JSON value with `want` at a place; what is missing on the way is made."""
    if not steps:
        return want
    step, below = steps[0], steps[1:]
    if step.startswith("f:"):
        fields = value if is_map(value) else {}
        return {**fields, step[2:]: put(fields.get(step[2:]), below, want)}
    items = value if is_list(value) else []
    found = positions(items, [step])[step]
    if not found:
        return [*items, put(_keys(step), below, want)]
    return [put(item, below, want) if i == found[0] else item for i, item in enumerate(items)]


def without(value: Any, steps: Sequence[str]) -> Any:
    """Give a JSON value without what is at a place; a map or list that this empties goes too."""
    step, below = steps[0], steps[1:]
    if is_map(value):
        left = without(value[step[2:]], below) if below and step[2:] in value else None
        kept = {name: inner for name, inner in value.items() if name != step[2:]}
        return {name: left if name == step[2:] else value[name] for name in value} if left else kept
    if not is_list(value):
        return value
    found = positions(value, [step])[step]
    return [
        without(item, below) if index in found else item
        for index, item in enumerate(value)
        if below or index not in found
    ]


def tree_of(want: Any, known: Sequence[Tree], *, granular: bool = False) -> Tree:
    """Give the fieldsV1 tree of a declaration; `known` are the entries' trees at its place."""
    shapes = [element for tree in known for element in tree if element != SELF]
    if is_map(want) and want and (granular or shapes or not known):
        return {
            "f:" + name: tree_of(
                inner, [tree["f:" + name] for tree in known if "f:" + name in tree],
                granular="f:" + name in GRANULAR,
            )
            for name, inner in want.items()
        }  # fmt: skip
    if not is_list(want) or not shapes:
        return {}
    named = zip(want, assign(want, dict.fromkeys(shapes)), strict=True)
    items = [(element or coin(item, shapes), item) for item, element in named]
    trees = {
        element: tree_of(item, [tree[element] for tree in known if element in tree])
        for element, item in items
        if element
    }
    return {element: {SELF: {}, **below} if below else {} for element, below in trees.items()}


def keyed(want: Any, known: Sequence[Tree]) -> Any:
    """Give a declaration with the list keys that it leaves to a default, as `known` tells them."""
    if is_map(want):
        return {
            name: keyed(inner, [tree["f:" + name] for tree in known if "f:" + name in tree])
            for name, inner in want.items()
        }
    elements = dict.fromkeys(element for tree in known for element in tree if element != SELF)
    if not is_list(want) or not elements:
        return want
    return [
        keyed({**_keys(element), **item}, [tree[element] for tree in known if element in tree])
        if element and is_map(item)
        else item
        for item, element in zip(want, assign(want, elements), strict=True)
    ]


def _booked(
    merged: Object, live: Object, body: Object, known: Sequence[Tree], applier: tuple[str, str]
) -> Object:
    """Give the merged object with the entry that the apply leaves there."""
    field_manager, subresource = applier
    meta = {k: v for k, v in body["metadata"].items() if k not in _GUARDS}
    fields = {k: v for k, v in body.items() if k not in _IDENTITY}
    declared = {"metadata": meta, **fields} if meta else fields
    entry: Object = {
        "manager": field_manager,
        "operation": "Apply",
        "apiVersion": body["apiVersion"],
        "fieldsType": "FieldsV1",
        "fieldsV1": tree_of(declared, known, granular=builtin(str(body["apiVersion"]))),
        **({"subresource": subresource} if subresource else {}),
    }
    others = [
        found for found in _managed(live) if not _is_applier(found, field_manager, subresource)
    ]
    return {**merged, "metadata": {**metadata(merged), "managedFields": [*others, entry]}}


def _managed(live: Object) -> list[Object]:
    return list(metadata(live).get("managedFields") or ())


def _is_applier(entry: Object, field_manager: str, subresource: str) -> bool:
    return (entry.get("manager"), entry.get("operation"), entry.get("subresource", "")) == (
        field_manager, "Apply", subresource,
    )  # fmt: skip


def _is_held(live: Object, steps: Sequence[str], field_manager: str, subresource: str) -> bool:
    """Tell whether another entry holds a place, or something within it."""
    for holder, _, tree in entries(live):
        if not holder.is_applier(field_manager, subresource) and subtree(tree, steps) is not None:
            return True
    return False


def _moved(entry: Object, steps: Sequence[str], field_manager: str) -> Object:
    tree: Tree = entry.get("fieldsV1") or {}
    if _is_applier(entry, field_manager, ""):
        return {**entry, "fieldsV1": _planted(tree, steps)}
    return (
        {**entry, "fieldsV1": _pulled(tree, steps)} if subtree(tree, steps) is not None else entry
    )


def _planted(tree: Tree, steps: Sequence[str]) -> Tree:
    below: Tree = _planted(tree.get(steps[0], {}), steps[1:]) if steps[1:] else {}
    if below and steps[0].startswith("k:"):
        below = {SELF: {}, **below}
    return {**tree, steps[0]: below}


def _pulled(tree: Tree, steps: Sequence[str]) -> Tree:
    kept = {element: below for element, below in tree.items() if element != steps[0]}
    left: Tree = _pulled(tree[steps[0]], steps[1:]) if steps[1:] else {}
    return {**kept, steps[0]: left} if left else kept


def _keys(step: str) -> Any:
    """Give the list item that has nothing but its keys."""
    return json.loads(step[2:]) if step.startswith("k:") else {}
