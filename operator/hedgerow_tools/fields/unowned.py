"""Unowned: the fields of an object that nobody holds, and how one of them is removed by applies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hedgerow.fields.applyconfiguration import extract, versioned
from hedgerow.fields.managed_fields import Holder, all_holders, held
from hedgerow.fields.paths import SELF, parse, path_of
from hedgerow.fields.sets import FieldPath, Values
from hedgerow.objects import metadata
from hedgerow.texts import printable
from hedgerow_tools.fields.field_tree import owners
from hedgerow_tools.fields.giving_up import nothing
from hedgerow_tools.fields.transfers import Move, MoveRefused, are_meant, patterns, shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hedgerow.fields.managed_fields import Entries
    from hedgerow_schemas.base import Object

NOBODY = Holder("", "")
"""The source of a move of a field that nobody holds."""


def unowned(live: Object, fields: Sequence[str], to: str = "") -> tuple[Move, ...]:
    """Return the requested fields that nobody holds, the highest of them; raises MoveRefused.

    They get the holder `to`, or are removed.
    """
    kind, name = str(live["kind"]), str(metadata(live)["name"])
    if not all_holders(live):
        raise MoveRefused(
            f"no manager of {kind}/{name} is recorded, and the next apply books all its fields to"
            " before-first-apply: adopt them from that one"
        )
    asked, there, values = patterns(fields), held(live), Values(live)
    places: list[FieldPath] = []
    holders: dict[str, str] = {}
    for node in owners(live).places():
        at = node.field_path
        is_known = bool(places) and at[: len(places[-1])] == places[-1]
        if is_known or node.kind == "identity" or not are_meant(asked, at):
            continue
        inside = next((inner for inner in node.walk() if inner.holders), None)
        if inside is not None:
            holders.setdefault(inside.path, inside.holders[0].manager)
        elif _is_addressed(at):
            places.append(at)
    if not places:
        raise MoveRefused(_nothing(f"{kind}/{name}", fields, holders))
    if not to:
        for at in places:
            _refuse_more(there, at)
    fate: Any = "taken" if to else "removed"
    return tuple(Move(at, shown(values, at), NOBODY, fate, (to,) if to else ()) for at in places)


def let_go(before: Object, manager: str, live: Object) -> Object:
    """Return the apply of a manager's fields of `before`, to exactly the version `live`."""
    return versioned(extract(before, manager) or nothing(before), live)


def _is_addressed(field_path: FieldPath) -> bool:
    """Return whether an apply to the object itself can name a field."""
    return field_path[0] != "f:status" and all(parse(step).kind != "?" for step in field_path)


def _refuse_more(there: Entries, field_path: FieldPath) -> None:
    """Raise MoveRefused if more than this field would go with it.

    Who gives up the last field that anybody holds of a map or item gives up all of it (seen on
    1.36).
    """
    for depth, step in enumerate(field_path[:-1], 1):
        there = there.below(step)
        if step.startswith("f:"):
            stays = bool(there.pairs)
        else:
            stays = any(not tree or SELF in tree for _, tree in there.pairs)
        if not stays:
            above = path_of(field_path[:depth])
            raise MoveRefused(
                f"nobody holds {above} either, and the server would remove all of it together with"
                f" {path_of(field_path)}: name {above[1:]} with --field, or a new holder with --to"
            )


def _nothing(target: str, fields: Sequence[str], holders: dict[str, str]) -> str:
    if holders:
        path, manager = next(iter(holders.items()))
        return f"{target}: {path} is held by {printable(manager)}"
    return f"{target} has no field called {', '.join(fields)} that nobody holds"
