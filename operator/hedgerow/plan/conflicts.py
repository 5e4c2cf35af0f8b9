"""Conflicts: contested fields as they are reported, and which of many are listed."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hedgerow_schemas.base import ContestedField

OTHER_VALUE: Final = "OtherValue"
REMOVED: Final = "Removed"
SCALED_TO_ZERO: Final = "ScaledToZero"
DECLARED_NO_MORE: Final = "DeclaredNoMore"
UNKNOWN_OWNER: Final = "UnknownOwner"

MOST_LISTED: Final = 50
"""Contested fields that a status lists; of more it says only how many there are."""
LONGEST_PATH: Final = 1024
"""Characters of a path that a status lists: a key of a list item may be of any length."""

_STATUS: Final = ".status."


class Contested(Protocol):
    """A contested field, as a status, a tree and a forecast have it; `manager` may be empty."""

    @property
    def object(self) -> str:
        """The object concerned, as kind and name."""
        ...

    @property
    def path(self) -> str:
        """The field, as managed fields and the causes of a conflict print it."""
        ...

    @property
    def reason(self) -> str | None:
        """One of the reasons above; none in a status of an earlier version."""
        ...

    @property
    def declared(self) -> str | None:
        """What hedgerow declares, as text; none if it declares nothing."""
        ...

    @property
    def live(self) -> str | None:
        """What is there, as text; none if nothing is."""
        ...

    @property
    def manager(self) -> str | None:
        """Who holds the field."""
        ...

    @property
    def operation(self) -> str | None:
        """How it got the field."""
        ...

    @property
    def subresource(self) -> str | None:
        """Through which subresource."""
        ...


def sentence(field: Contested) -> str:
    """Return what is contested and by whom: `you declare 2, it is 3; held by kubectl (Update)`."""
    return f"{values(field)}; {held(field)}" if values(field) else held(field)


def values(field: Contested) -> str:
    """Return what is declared and what is there; nothing where neither is known."""
    who = "hedgerow says" if field.path.startswith(_STATUS) else "you declare"
    there = "it is not there" if field.live is None else f"it is {field.live}"
    if field.declared is not None:
        return f"{who} {field.declared}, {there}"
    if field.reason == DECLARED_NO_MORE:
        return f"{who} it no more, {there}"
    return f"{who} none, {there}" if field.reason == UNKNOWN_OWNER else ""


def held(field: Contested) -> str:
    """Return who holds a field, or why nobody does."""
    by = holder(field)
    match field.reason:
        case "Removed":
            return "it was removed, and nobody holds it"
        case "ScaledToZero":
            return "scaled to 0, which the API server records for nobody"
        case "DeclaredNoMore":
            return f"it stays, as {by} holds fields in it"
        case "UnknownOwner":
            return f"nobody knows whose it was ({by})"
        case _:
            return f"held by {by}" + ("" if values(field) else " with another value")


def holder(field: Contested) -> str:
    """Return the name of who holds a field, and how: `kubectl (Update scale)`."""
    how = " ".join(filter(None, (field.operation, field.subresource)))
    name = field.manager or "nobody"
    return f"{name} ({how})" if how else name


def listed(
    contested: Sequence[ContestedField], before: Iterable[ContestedField]
) -> tuple[ContestedField, ...]:
    """Return those that a status lists, at most 50, in an order that stays as it is.

    What is listed already stays listed, as the list is the memory of what was told. Before that
    comes what is acted on: fields that nobody holds, which are not to be put back again, and
    metadata.
    """
    known = {(old.object, old.path): number for number, old in enumerate(before)}

    def rank(field: ContestedField) -> tuple[bool, int]:
        matters = not field.manager or field.path.startswith(".metadata.")
        return not matters, known.get((field.object, field.path), len(known))

    short = (field for field in contested if len(field.path) <= LONGEST_PATH)
    return tuple(sorted(short, key=rank)[:MOST_LISTED])


Group = tuple[str, str]
"""A child, as `Deployment/web`, and the field manager that holds fields of it, if one does."""


def group(field: ContestedField) -> Group:
    """Return the group of a field."""
    return field.object, field.manager or ""


def groups(contested: Iterable[ContestedField]) -> Counter[Group]:
    """Return how many fields each field manager holds of each child."""
    return Counter(map(group, contested))
