"""Withdrawal plan: all that a field manager holds of an object, and what giving it up changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hedgerow.fields.canonical import identical
from hedgerow.fields.managed import entry, held, managers
from hedgerow.fields.paths import path_of
from hedgerow.fields.sets import ABSENT, FieldPath, Values, is_hollow, is_key, leaves, versioned
from hedgerow.objects import metadata
from hedgerow.plan.transfers import Change, holdings, shown
from hedgerow.plan.yield_and_claim import is_controller_label

if TYPE_CHECKING:
    from hedgerow_schemas.base import Object

_FINALIZERS: Final[FieldPath] = ("f:metadata", "f:finalizers")


def endpoints(live: Object, manager: str) -> tuple[str, ...]:
    """Return the subresources (empty: the object) at which a manager's applies hold fields."""
    applied = (one for one in managers(live) if one.manager == manager and one.operation == "Apply")
    return tuple(sorted({one.subresource for one in applied}))


def count(live: Object, manager: str, endpoint: str) -> int:
    """Return how many fields a manager holds at an endpoint."""
    return sum(1 for _ in leaves(entry(live, manager, endpoint) or {}))


def nothing(live: Object) -> Object:
    """Return the apply by which a manager declares nothing any more, for exactly this version."""
    meta = metadata(live)
    named = {key: meta[key] for key in ("name", "namespace", "uid") if meta.get(key)}
    body: Object = {"apiVersion": live["apiVersion"], "kind": live["kind"], "metadata": named}
    return versioned(body, live)


def losses(before: Object, after: Object) -> dict[FieldPath, Change]:
    """Return the held fields whose value differs afterwards.

    This includes fields of others: if a list item is removed, their fields in it are lost too.
    """
    was, is_now = Values(before), Values(after)
    return {
        field_path: Change(path_of(field_path), shown(was, field_path), shown(is_now, field_path))
        for field_path in holdings(before)
        if not identical(was.at(field_path), is_now.at(field_path))
    }


def is_mark(field_path: FieldPath) -> bool:
    """Return whether only the operator that wrote a field uses it."""
    return is_controller_label(field_path) or field_path[:2] == _FINALIZERS


def co_owning_apply(live: Object, manager: str, endpoint: str) -> tuple[FieldPath, ...]:
    """Return the fields that only this manager holds, which are lost if nobody else takes them."""
    holders, known, values = holdings(live), held(live), Values(live)
    return tuple(
        field_path
        for field_path in leaves(entry(live, manager, endpoint) or {})
        if len(holders[field_path]) == 1 and values.at(field_path) is not ABSENT
        if not is_key(field_path) and not is_hollow(known, field_path) and not is_mark(field_path)
    )
