"""Merge: the result of an apply, computed here without a schema.

It is used if the server cannot be asked. Values are as declared, without defaults and admission.
Lists whose keys are unknown from managed fields are taken as atomic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hedgerow.fields import ownership
from hedgerow.fields.canonical import builtin
from hedgerow.fields.managed_fields import entries, held
from hedgerow.fields.ownership import GRANULAR
from hedgerow.fields.paths import (
    SELF,
    Tree,
    by_element,
    is_list,
    is_map,
    named,
)
from hedgerow.fields.sets import FieldPath, cut, subtree
from hedgerow.objects import metadata
from hedgerow_tools.fields.edits import arranged, inside, put, without

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from hedgerow.fields.ownership import Leaf
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
    """Return `live` after `field_manager` applied `body`; nothing in it may be contested.

    Fields that are no longer declared are removed, unless somebody else holds them too. For an
    object that does not exist, `live` has only its identity. `shapes` are more trees with list
    keys.
    """
    verdict = ownership.judge(body, live, field_manager, subresource)
    others = held(live, but=(field_manager, subresource))
    wants = {
        leaf.field_path: leaf.want for leaf in verdict.leaves if leaf.why in ("lost", "changed")
    }
    gone = [
        leaf.field_path
        for leaf in verdict.leaves
        if leaf.why == "surplus" and not others.at(leaf.field_path).pairs
    ]
    known = [*(tree for _, _, tree in entries(live)), *shapes]
    merged = arranged(without(put(live, wants), gone), live, body, known)
    return _booked(merged, live, body, known, (field_manager, subresource))


def taken(
    live: Object, leaves: Iterable[Leaf], field_manager: str, *, shapes: Iterable[Tree] = ()
) -> Object:
    """Return `live` after these leaves were taken by force: with their values and new manager.

    `shapes` are more trees that show which of
    the leaves are granular maps or lists.
    """
    wants = {leaf.field_path: leaf.want for leaf in leaves}
    known = [*(tree for _, _, tree in entries(live)), *shapes]
    trees = {
        place: tree_of(want, [one for tree in known if (one := subtree(tree, place)) is not None])
        for place, want in wants.items()
    }
    managed = _managed(live)
    if not any(_is_applier(found, field_manager, "") for found in managed):
        managed.append(_entry(field_manager, str(live.get("apiVersion")), {}))
    moved = [_moved(found, trees, field_manager) for found in managed]
    live = put(live, wants)
    return {**live, "metadata": {**metadata(live), "managedFields": moved}}


def tree_of(want: Any, known: Sequence[Tree], *, granular: bool = False) -> Tree:
    """Return the fieldsV1 tree of a declaration; `known` are the entries' trees at its place."""
    below = inside(known)
    if is_map(want) and want and (granular or below or not known):
        return {
            "f:" + name: tree_of(
                inner, below.get("f:" + name, ()), granular="f:" + name in GRANULAR
            )
            for name, inner in want.items()
        }
    if not is_list(want) or not below:
        return {}
    trees = {
        element: tree_of(item, below.get(element, ()))
        for item, element in zip(want, named(want, below), strict=True)
        if element
    }
    return {element: {SELF: {}, **tree} if tree else {} for element, tree in trees.items()}


def _booked(
    merged: Object, live: Object, body: Object, known: Sequence[Tree], applier: tuple[str, str]
) -> Object:
    """Return the merged object with the managed fields entry of the apply."""
    field_manager, subresource = applier
    meta = {k: v for k, v in body["metadata"].items() if k not in _GUARDS}
    fields = {k: v for k, v in body.items() if k not in _IDENTITY}
    declared = {"metadata": meta, **fields} if meta else fields
    version = str(body["apiVersion"])
    tree = tree_of(declared, known, granular=builtin(version))
    entry = _entry(field_manager, version, tree, subresource)
    others = [
        found for found in _managed(live) if not _is_applier(found, field_manager, subresource)
    ]
    return {**merged, "metadata": {**metadata(merged), "managedFields": [*others, entry]}}


def _entry(manager: str, version: str, tree: Tree, subresource: str = "") -> Object:
    return {
        "manager": manager,
        "operation": "Apply",
        "apiVersion": version,
        "fieldsType": "FieldsV1",
        "fieldsV1": tree,
        **({"subresource": subresource} if subresource else {}),
    }


def _managed(live: Object) -> list[Object]:
    return list(metadata(live).get("managedFields") or ())


def _is_applier(entry: Object, field_manager: str, subresource: str) -> bool:
    return (entry.get("manager"), entry.get("operation"), entry.get("subresource", "")) == (
        field_manager, "Apply", subresource,
    )  # fmt: skip


def _moved(entry: Object, places: Mapping[FieldPath, Tree], field_manager: str) -> Object:
    tree: Tree = entry.get("fieldsV1") or {}
    if _is_applier(entry, field_manager, ""):
        new = {place: there for place, there in places.items() if subtree(tree, place) is None}
        return {**entry, "fieldsV1": _planted(tree, new)}
    pulled = [field_path for field_path in places if subtree(tree, field_path) is not None]
    return {**entry, "fieldsV1": cut(tree, pulled)} if pulled else entry


def _planted(tree: Tree, places: Mapping[FieldPath, Tree]) -> Tree:
    grown = dict(tree)
    for element, inner in by_element(places).items():
        below: Tree = inner[()] if () in inner else _planted(tree.get(element, {}), inner)
        grown[element] = {SELF: {}, **below} if below and element.startswith("k:") else below
    return grown
