"""Conflict messages: contested fields as they are reported, and which ones a status lists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hedgerow.objects import PROGRAM

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hedgerow_schemas.base import ContestedField

OTHER_VALUE: Final = "OtherValue"
REMOVED: Final = "Removed"
SCALED_TO_ZERO: Final = "ScaledToZero"
DECLARED_NO_MORE: Final = "DeclaredNoMore"
UNKNOWN_OWNER: Final = "UnknownOwner"

MOST_LISTED: Final = 50
"""The most contested fields that a status lists; it only counts the others."""
LONGEST_PATH: Final = 1024
"""The most characters of a path that a status lists: list keys may have any length."""

_STATUS: Final = ".status."


def sentence(field: ContestedField, program: str = PROGRAM) -> str:
    """Return one contested field in words: `you declare 2, it is 3; held by kubectl (Update)`."""
    text = values(field, program)
    return f"{text}; {held(field)}" if text else held(field)


def values(field: ContestedField, program: str = PROGRAM) -> str:
    """Return the declared and the live value as text; empty if they are unknown."""
    who = f"{program} says" if field.path.startswith(_STATUS) else "you declare"
    there = "it is not there" if field.live is None else f"it is {field.live}"
    if field.declared is not None:
        return f"{who} {field.declared}, {there}"
    if field.reason == DECLARED_NO_MORE:
        return f"it is no longer declared, {there}"
    return f"{who} none, {there}" if field.reason == UNKNOWN_OWNER else ""


def held(field: ContestedField) -> str:
    """Return who holds a field, or why nobody does."""
    by = holder(field)
    match field.reason:
        case "Removed":
            # The annotation of a built-in resource has no values. A scale is not always recorded.
            is_gone = field.live is None and field.declared is not None
            is_scaled = field.path == ".spec.replicas" and not is_gone
            how = "removed or scaled" if is_scaled else "removed"
            return f"it was {how}, and nobody holds it"
        case "ScaledToZero":
            return "it was scaled to 0, and the server does not record by whom"
        case "DeclaredNoMore":
            return f"it stays, because {by} holds fields in it"
        case "UnknownOwner":
            return f"its owner is unknown ({by})"
        case _ if not field.manager:
            return "nobody holds it"
        case _:
            return f"held by {by}" + ("" if values(field) else " with another value")


def holder(field: ContestedField) -> str:
    """Return the name of a field's manager, and how it wrote: `kubectl (Update scale)`."""
    how = " ".join(filter(None, (field.operation, field.subresource)))
    name = field.manager or "nobody"
    return f"{name} ({how})" if how else name


def listed(
    contested: Sequence[ContestedField], before: Iterable[ContestedField]
) -> tuple[ContestedField, ...]:
    """Return the contested fields that a status lists, at most 50, in a stable order.

    Fields that nobody holds come first, since they must not be restored again, and then metadata,
    because later passes act on them. Then come the fields that are already listed, because the
    list also records what was reported.
    """
    known = {(old.object, old.path): number for number, old in enumerate(before)}

    def rank(field: ContestedField) -> tuple[bool, bool, int]:
        matters = not field.manager or field.path.startswith(".metadata.")
        place = known.get((field.object, field.path), len(known))
        return bool(field.manager), not matters, place

    short = (field for field in contested if len(field.path) <= LONGEST_PATH)
    return tuple(sorted(short, key=rank)[:MOST_LISTED])
