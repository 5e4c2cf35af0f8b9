"""Transfers: fields that change managers while their values stay."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import UNSET, Struct

from hedgerow.errors import OneLineError
from hedgerow.fields.canonical import identical
from hedgerow.fields.managed_fields import Holder, entries
from hedgerow.fields.paths import path_of
from hedgerow.fields.redaction import HIDDEN, is_private
from hedgerow.fields.sets import ABSENT, FieldPath, Values
from hedgerow.plan.yield_and_claim import FieldPolicyError, PolicyEntry, parse, parts
from hedgerow_tools.fields.sets import leaves

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hedgerow_schemas.base import Object

_OF_ANY: Final = "*/*: "
Fate = Literal["taken", "kept", "unowned", "removed"]


class MoveRefused(OneLineError):  # noqa: N818 - named for the situation
    """The request would lose something, or makes no sense; the text says why in one line."""


class Move(Struct, frozen=True):
    """One field that `source` gives up, and who holds it afterwards.

    taken: somebody who did not hold it before. kept: only those who held it before. unowned:
    nobody, and the value stays as it is. removed: nobody, as the value goes. A `source` without a
    name is nobody.
    """

    field_path: FieldPath
    value: Any
    source: Holder
    fate: Fate
    to: tuple[str, ...]

    @property
    def path(self) -> str:
        """The field as managed fields and the causes of a conflict print it."""
        return path_of(self.field_path)


class Change(Struct, frozen=True):
    """A field whose value changes; UNSET stands for no value."""

    path: str
    before: Any = UNSET
    after: Any = UNSET


def shown(values: Values, field_path: FieldPath) -> Any:
    """Return the value at a place for display, UNSET for none: values of Secrets are hidden."""
    if is_private(str(values.live.get("kind", "")), field_path):
        return HIDDEN
    value = values.at(field_path)
    return UNSET if value is ABSENT else value


def changes(before: Object, after: Object, places: Iterable[FieldPath]) -> tuple[Change, ...]:
    """Return the places whose values differ between two versions of an object."""
    was, is_now = Values(before), Values(after)
    return tuple(
        Change(path_of(field_path), shown(was, field_path), shown(is_now, field_path))
        for field_path in places
        if not identical(was.at(field_path), is_now.at(field_path))
    )


def holdings(live: Object) -> dict[FieldPath, tuple[Holder, ...]]:
    """Return each held leaf with all its holders."""
    by_leaf: dict[FieldPath, list[Holder]] = {}
    for holder, _, tree in entries(live):
        for field_path in leaves(tree):
            by_leaf.setdefault(field_path, []).append(holder)
    return {field_path: tuple(holders) for field_path, holders in by_leaf.items()}


def patterns(fields: Sequence[str]) -> tuple[PolicyEntry, ...]:
    """Return entries for the requested fields, each a path as in `yield`.

    They are about any object: names such as ClusterRole/system:node are none in `yield`. Raises
    MoveRefused if a path cannot be read, or would start an entry about another object.
    """
    several = next((field for field in fields if len(parts(field)) > 1), None)
    if several is not None:
        raise MoveRefused(f"{several!r:.80} is more than a path: a semicolon or line end is in it")
    try:
        return tuple(term for field in fields for term in parse(f"{_OF_ANY}{field}"))
    except FieldPolicyError as error:
        raise MoveRefused(str(error).replace(_OF_ANY, "", 1)) from None


def are_meant(field_policy: Sequence[PolicyEntry], field_path: FieldPath) -> bool:
    """Return whether a field is requested; without terms every field is."""
    return not field_policy or any(term.path.covers(field_path) for term in field_policy)
