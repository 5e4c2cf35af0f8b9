"""Merge: the result of an apply, computed here.

It is used if the server cannot be asked. Values are as declared, without defaults and admission.
Lists whose keys are unknown from managed fields are taken as atomic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hedgerow.fields import ownership
from hedgerow.fields.managed_fields import entries, held
from hedgerow.fields.paths import (
    SELF,
    Tree,
    is_list,
    is_map,
    named,
)
from hedgerow.objects import metadata
from hedgerow_tools.fields.edits import arranged, inside, put, without

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from hedgerow.fields.ownership import Leaf
    from hedgerow.fields.sets import FieldPath
    from hedgerow_schemas.base import Object
    from hedgerow_tools.fields.structure import Structure

_IDENTITY = ("apiVersion", "kind", "metadata")
_GUARDS = ("name", "namespace", "uid", "resourceVersion")


def merge(
    live: Object,
    body: Object,
    field_manager: str,
    subresource: str = "",
    *,
    taken: Iterable[Leaf] = (),
    structure: Structure | None = None,
) -> Object:
    """Return `live` after `field_manager` applied `body`; only what is `taken` may be contested.

    Fields that are no longer declared are removed, unless somebody else holds them too. For an
    object that does not exist, `live` has only its identity. `structure` is that of its kind, if
    known.
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
    entry = {
        "manager": field_manager,
        "operation": "Apply",
        "apiVersion": str(body["apiVersion"]),
        "fieldsType": "FieldsV1",
        "fieldsV1": tree_of(_declared(body), known, structure),
        **({"subresource": subresource} if subresource else {}),
    }
    return _booked(merged, left, entry)


def _without(places: Sequence[FieldPath], live: Object) -> Object:
    """Return an object whose managers do not hold these fields any more."""
    if not places:
        return live
    managed = [
        {**entry, "fieldsV1": cut(entry.get("fieldsV1") or {}, places)} for entry in _managed(live)
    ]
    return {**live, "metadata": {**metadata(live), "managedFields": managed}}


def tree_of(want: Any, known: Sequence[Tree], structure: Structure | None = None) -> Tree:
    """Return the fieldsV1 tree of a declaration; `known` are the entries' trees at its place.

    Whether a map is atomic its `structure` says; without, that nobody holds something in it.
    """
    below = inside(known)
    if is_map(want) and want and not _is_atomic(structure, known, below):
        return {
            "f:" + name: tree_of(
                inner, below.get("f:" + name, ()), structure and structure.below("f:" + name)
            )
            for name, inner in want.items()
        }
    if not is_list(want) or not below:
        return {}
    trees = {
        element: tree_of(item, below.get(element, ()), structure and structure.below(element))
        for item, element in zip(want, named(want, below), strict=True)
        if element
    }
    return {element: {SELF: {}, **tree} if tree else {} for element, tree in trees.items()}


def _is_atomic(
    structure: Structure | None, known: Sequence[Tree], below: Mapping[str, Sequence[Tree]]
) -> bool:
    said = structure.is_atomic if structure else None
    return bool(known) and not below if said is None else said


def _declared(body: Object) -> Object:
    """Return what an apply declares, without what only identifies the object."""
    meta = {k: v for k, v in body["metadata"].items() if k not in _GUARDS}
    fields = {k: v for k, v in body.items() if k not in _IDENTITY}
    return {"metadata": meta, **fields} if meta else fields


def _booked(merged: Object, live: Object, entry: Object) -> Object:
    """Return the merged object with the managed fields entry of the apply."""
    others = [other for other in _managed(live) if not _is_of_same(other, entry)]
    return {**merged, "metadata": {**metadata(merged), "managedFields": [*others, entry]}}


def _managed(live: Object) -> list[Object]:
    return list(metadata(live).get("managedFields") or ())


def _is_of_same(entry: Object, other: Object) -> bool:
    """Return whether two entries are of the same manager's applies."""
    names = ("manager", "operation", "subresource")
    return all(entry.get(name, "") == other.get(name, "") for name in names)


def cut(tree: Tree, places: Collection[FieldPath]) -> Tree:
    """Return the tree without these leaves, and without subtrees that this empties.

    An emptied subtree must not stay: a bare `{}` would own everything below that place.
    """
    return _cut(tree, frozenset(places), ())


def _cut(tree: Tree, places: Collection[FieldPath], above: FieldPath) -> Tree:
    kept: dict[str, Any] = {}
    for element, below in tree.items():
        place = (*above, element)
        if place in places:
            continue
        left = _cut(below, places, place)
        if left or not below:
            kept[element] = left
    return kept
