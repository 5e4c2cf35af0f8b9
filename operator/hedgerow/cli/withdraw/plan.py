"""Withdrawal plan: all that a field manager holds of an object, and what giving it up changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hedgerow.fields.canonical import identical
from hedgerow.fields.managed import entry, held, managers
from hedgerow.fields.paths import path_of
from hedgerow.fields.sets import ABSENT, Steps, Values, is_hollow, is_key, leaves, versioned
from hedgerow.objects import CONTROLLER_LABEL, NORMAL_FORM_ANNOTATION, metadata
from hedgerow.plan.transfers import Change, holdings, shown

if TYPE_CHECKING:
    from hedgerow_schemas.base import Object

_MARKS: Final[tuple[Steps, ...]] = (
    ("f:metadata", "f:finalizers"),
    ("f:metadata", "f:labels", f"f:{CONTROLLER_LABEL}"),
    ("f:metadata", "f:annotations", f"f:{NORMAL_FORM_ANNOTATION}"),
)
"""What only the one who put it there has a use for."""


def endpoints(live: Object, manager: str) -> tuple[str, ...]:
    """Return the subresources, empty for none, through which a manager's applies hold something."""
    applied = (one for one in managers(live) if one.manager == manager and one.operation == "Apply")
    return tuple(sorted({one.subresource for one in applied}))


def count(live: Object, manager: str, endpoint: str) -> int:
    """Return how many fields it holds there."""
    return sum(1 for _ in leaves(entry(live, manager, endpoint) or {}))


def nothing(live: Object) -> Object:
    """Return the apply by which a manager declares nothing any more of exactly this version."""
    meta = metadata(live)
    named = {key: meta[key] for key in ("name", "namespace", "uid") if meta.get(key)}
    body: Object = {"apiVersion": live["apiVersion"], "kind": live["kind"], "metadata": named}
    return versioned(body, live)


def losses(before: Object, after: Object) -> dict[Steps, Change]:
    """Return the fields that anybody holds and that have another value afterwards.

    Those of others are among them: with a list item goes what they hold in it.
    """
    was, is_now = Values(before), Values(after)
    return {
        steps: Change(path_of(steps), shown(was, steps), shown(is_now, steps))
        for steps in holdings(before)
        if not identical(was.at(steps), is_now.at(steps))
    }


def is_mark(steps: Steps) -> bool:
    """Return whether a field is of no use but to the operator that put it there."""
    return any(steps[: len(mark)] == mark for mark in _MARKS)


def bequest(live: Object, manager: str, endpoint: str) -> tuple[Steps, ...]:
    """Return what a manager alone holds, and somebody else would have to hold, or it is lost."""
    holders, known, values = holdings(live), held(live), Values(live)
    return tuple(
        steps
        for steps in leaves(entry(live, manager, endpoint) or {})
        if len(holders[steps]) == 1 and values.at(steps) is not ABSENT
        if not is_key(steps) and not is_hollow(known, steps) and not is_mark(steps)
    )
