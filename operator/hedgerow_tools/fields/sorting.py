"""Sorting: which fields of an entry move, are let go, or stay, by filters of a command."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.fields.paths import path_of
from hedgerow_tools.fields.transfers import are_meant, patterns

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from hedgerow.fields.sets import FieldPath
    from hedgerow_tools.fields.relabelling import FieldFate


def sorting(
    fields: Sequence[str], declared: Collection[str] | None
) -> Callable[[FieldPath], FieldFate] | None:
    """Return where each field of an entry goes; None if all of them move.

    Other fields than the named ones stay; none of them named means all. Of these, only what is at
    or below a `declared` path moves, unless that is None; the others are let go. Raises MoveRefused
    if a name is no path.
    """
    if not fields and declared is None:
        return None
    meant = patterns(fields)

    def where(field_path: FieldPath) -> FieldFate:
        if not are_meant(meant, field_path):
            return "kept"
        return "moved" if declared is None or _is_under(field_path, declared) else "let go"

    return where


def _is_under(field_path: FieldPath, paths: Collection[str]) -> bool:
    """Return whether a place is at or below one of these paths."""
    return any(path_of(field_path[: n + 1]) in paths for n in range(len(field_path)))
