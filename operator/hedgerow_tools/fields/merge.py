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
    is_list,
    is_map,
    named,
)
from hedgerow.fields.sets import FieldPath, cut
from hedgerow.objects import metadata
from hedgerow_tools.fields.edits import arranged, inside, put, without

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

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
    taken: Iterable[Leaf] = (),
) -> Object:
    """Return `live` after `field_manager` applied `body`; only what is `taken` may be contested.

    Fields that are no longer declared are removed, unless somebody else holds them too. For an
    object that does not exist, `live` has only its identity.
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
    known = [tree for _, _, tree in entries(live)]
    merged = arranged(without(put(live, wants), gone), live, body, known)
    left = _without([leaf.field_path for leaf in taken], live)
    return _booked(merged, left, body, known, (field_manager, subresource))


def _without(places: Sequence[FieldPath], live: Object) -> Object:
    """Return an object whose managers do not hold these fields any more."""
    if not places:
        return live
    managed = [
        {**one, "fieldsV1": cut(one.get("fieldsV1") or {}, places)} for one in _managed(live)
    ]
    return {**live, "metadata": {**metadata(live), "managedFields": managed}}


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
