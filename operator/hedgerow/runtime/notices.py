"""Notices: which Events a pass gives rise to, beyond those that compose asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.core.conditions import REWRITTEN, Problem, conclude
from hedgerow.core.contract import Desired, Notice
from hedgerow.core.installations import remedy
from hedgerow.core.status import said
from hedgerow.core.terms import CLAIM, YIELD
from hedgerow.core.walk import BEFORE_FIRST_APPLY

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from hedgerow.core.meta import ObjectRef
    from hedgerow.core.ownership import Leaf
    from hedgerow_schemas.base import ContestedField, Object

TOLD = ("Stalled", REWRITTEN)


def due(
    desired: Desired,
    contested: Iterable[ContestedField],
    problems: Iterable[Problem],
    live: Object,
    rewritten: str = "",
) -> Iterator[tuple[Notice, str]]:
    """Give the Events that the live status does not know of yet, each with its occurrence.

    The status is the memory: what it says already was told already, restarts included. An
    empty occurrence stands for the resource's generation.
    """
    before = said(live)
    for _, notice, occurrence in conflicts(contested, live):
        yield notice, occurrence
    told = {(condition.type, condition.message) for condition in before.conditions}
    composed = desired.status.conditions if desired.status else ()
    for condition in conclude(composed, (), tuple(problems), rewritten):
        if condition.type in TOLD and (condition.type, condition.message) not in told:
            reason = REWRITTEN if condition.type == REWRITTEN else condition.reason
            yield Notice(reason, condition.message, "Warning"), ""
    for notice in desired.events:
        yield notice, ""


def conflicts(
    contested: Iterable[ContestedField], live: Object
) -> Iterator[tuple[ContestedField, Notice, str]]:
    """Give the Event of every contested field that the live status does not know of yet."""
    known = {(old.object, old.path, old.manager) for old in said(live).contested}
    for leaf in contested:
        if (leaf.object, leaf.path, leaf.manager) not in known:
            yield leaf, conflict(leaf), leaf.since.isoformat() if leaf.since else ""


def conflict(leaf: ContestedField) -> Notice:
    """Tell that a field is somebody else's, and that it was left so."""
    held = "with another value"
    if _is_unproven(leaf):
        held = "and not declared"
    note = f"{leaf.object}: {leaf.path} is held by {leaf.manager} {held}; left as it is"
    return Notice("FieldConflict", f"{note}. {_remedy(leaf)}", "Warning")


def _is_unproven(leaf: ContestedField) -> bool:
    """Tell whether it is a list item of which nobody knows whose it was."""
    return leaf.manager == BEFORE_FIRST_APPLY.manager and leaf.path.endswith("]")


def _remedy(leaf: ContestedField) -> str:
    if other := remedy(leaf.manager, leaf.operation):
        return other
    if leaf.manager == BEFORE_FIRST_APPLY.manager:
        adopt = f"`hedgerow adopt {leaf.object} --from {leaf.manager}`"
        if _is_unproven(leaf):
            leave = f"annotate the resource with {YIELD} to leave it"
            return f"Nobody knows whose it was: {adopt} has it removed, {leave}"
        return f"Nobody knows whose it was: {adopt} settles it"
    if leaf.path.startswith(".status."):
        return f"`hedgerow adopt {leaf.object} --from {leaf.manager}` has it written again"
    return f"Annotate the resource with {YIELD} to leave it so, or with {CLAIM} to take it back"


def claimed(ref: ObjectRef, leaf: Leaf) -> Notice:
    """Tell that a field was taken back by force, from whom, and on whose word."""
    note = f"{ref}: {leaf.path} was taken from {holders(leaf)} by force, as {CLAIM} asks"
    return Notice("FieldClaimed", note, "Warning")


def holders(leaf: Leaf) -> str:
    """Name the field managers that hold a field, each once."""
    return ", ".join(dict.fromkeys(holder.manager for holder in leaf.holders))


def restored(ref: ObjectRef, path: str) -> Notice:
    """Tell that a field which had vanished was put back."""
    return Notice("FieldRestored", f"{ref}: {path} had been removed; it was put back", "Warning")
