"""Forcing: what a forced apply would take from whom, worked out from the conflicts of an unforced.

No dry run is forced: the contested fields are applied with their live values, which makes the
applier hold them as well, and then get their declared values and their only holder here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.fields.applyconfiguration import without_nulls
from hedgerow.fields.canonical import identical
from hedgerow.fields.managed_fields import Holder, entries, held
from hedgerow.fields.ownership import Leaf
from hedgerow.fields.paths import path_of
from hedgerow.fields.sets import ABSENT, FieldPath, Values, members
from hedgerow_tools.fields.edits import keyed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hedgerow.fields.paths import Tree
    from hedgerow_schemas.base import Object


def names_all_keys(manifest: Object, stored: Object) -> bool:
    """Return whether each list item has all of its keys, so that it is known which one it is.

    If one of them is left to its default, such as a port's protocol, only the server knows.
    """
    body = without_nulls(manifest)
    return identical(keyed(body, _trees(stored)), body)


def contested(
    manifest: Object, stored: Object, field_manager: str, paths: Iterable[str]
) -> dict[str, Leaf]:
    """Return the leaves at the paths that a conflict names, each with all of its holders.

    A path is left out if no other manager's entry has it, or the manifest has no value there.
    """
    holders: dict[FieldPath, list[Holder]] = {}
    for holder, tree in held(stored, but=(field_manager, "")).pairs:
        for place in members(tree or {}):
            holders.setdefault(place, []).append(holder)
    places = {path_of(place): place for place in holders}
    wants, lives = Values(keyed(manifest, _trees(stored))), Values(stored)
    found: dict[str, Leaf] = {}
    for path in paths:
        place = places.get(path, ())
        want, live = wants.at(place), lives.at(place)
        if place and want is not ABSENT:
            there = None if live is ABSENT else live
            known = tuple(holders[place])
            found[path] = Leaf(path, place, "changed", want, there, known, equal=False)
    return found


def _trees(stored: Object) -> list[Tree]:
    return [tree for _, _, tree in entries(stored)]
