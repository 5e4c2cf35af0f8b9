"""Notices: which Events a pass gives rise to, beyond those that compose asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.core.conditions import Problem, conclude
from hedgerow.core.contract import Desired, Notice
from hedgerow.core.status import said

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pydantic import ValidationError

    from hedgerow.core.meta import ObjectRef
    from hedgerow_schemas.base import ContestedField, Object


def due(
    desired: Desired,
    contested: Iterable[ContestedField],
    problems: Iterable[Problem],
    live: Object,
) -> Iterator[tuple[Notice, str]]:
    """Give the Events that the live status does not know of yet, each with its occurrence.

    The status is the memory: what it says already was told already, restarts included. An
    empty occurrence stands for the resource's generation.
    """
    before = said(live)
    known = {(old.object, old.path, old.manager) for old in before.contested}
    for leaf in contested:
        if (leaf.object, leaf.path, leaf.manager) not in known:
            yield conflict(leaf), leaf.since.isoformat() if leaf.since else ""
    told = {(condition.type, condition.message) for condition in before.conditions}
    composed = desired.status.conditions if desired.status else ()
    for condition in conclude(composed, (), tuple(problems)):
        if condition.type == "Stalled" and (condition.type, condition.message) not in told:
            yield Notice(condition.reason, condition.message, "Warning"), ""
    for notice in desired.events:
        yield notice, ""


def conflict(leaf: ContestedField) -> Notice:
    """Tell that a field is somebody else's, and that it was left so."""
    note = f"{leaf.object}: {leaf.path} is held by {leaf.manager} with another value; left as it is"
    return Notice("FieldConflict", note, "Warning")


def restored(ref: ObjectRef, path: str) -> Notice:
    """Tell that a field which had vanished was put back."""
    return Notice("FieldRestored", f"{ref}: {path} had been removed; it was put back", "Warning")


def first_error(error: ValidationError) -> str:
    """Put a model's complaints into one line, each with its field path."""
    return "; ".join(
        f"{'.'.join(str(step) for step in item['loc'])}: {item['msg']}" for item in error.errors()
    )
