"""Transfers: fields that change managers while their values stay."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from hedgerow.fields.canonical import identical
from hedgerow.fields.managed import Holder, entries
from hedgerow.fields.paths import path_of
from hedgerow.fields.redaction import HIDDEN, is_private
from hedgerow.fields.sets import Steps, Values, leaves
from hedgerow.plan.policy import Term, TermsError, parse, parts

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hedgerow_schemas.base import Object

Fate = Literal["taken", "shared", "kept", "unowned"]


class Refusal(Exception):  # noqa: N818 - named for the situation
    """What is asked cannot be done without a loss, or means nothing; one line says why."""


@dataclass(frozen=True, slots=True)
class Move:
    """One field that `source` lets go of, and who holds it then.

    taken: by the one it moves to, which did not hold it; shared: by that one, which held it too;
    kept: by others only; unowned: by nobody, and the value stays as it is.
    """

    steps: Steps
    value: Any
    source: Holder
    fate: Fate
    to: tuple[str, ...]

    @property
    def path(self) -> str:
        """The field as managed fields and the causes of a conflict print it."""
        return path_of(self.steps)


@dataclass(frozen=True, slots=True)
class Change:
    """A field that has another value than before; ABSENT where there is none."""

    path: str
    before: Any
    after: Any


def shown(values: Values, steps: Steps) -> Any:
    """Return the value at a place as it may be shown: those of Secrets are hidden."""
    return HIDDEN if is_private(str(values.live.get("kind", "")), steps) else values.at(steps)


def changes(before: Object, after: Object, places: Iterable[Steps]) -> tuple[Change, ...]:
    """Give the places whose values differ between two looks at an object."""
    was, is_now = Values(before), Values(after)
    return tuple(
        Change(path_of(steps), shown(was, steps), shown(is_now, steps))
        for steps in places
        if not identical(was.at(steps), is_now.at(steps))
    )


def holdings(live: Object) -> dict[Steps, tuple[Holder, ...]]:
    """Give each leaf that anyone holds, with all who do."""
    found: dict[Steps, list[Holder]] = {}
    for holder, _, tree in entries(live):
        for steps in leaves(tree):
            found.setdefault(steps, []).append(holder)
    return {steps: tuple(holders) for steps, holders in found.items()}


def patterns(kind: str, name: str, fields: Sequence[str]) -> tuple[Term, ...]:
    """Read the fields that are asked for, each a path as `yield` takes it; raises Refusal.

    They are of this object: what would begin an entry about another one is no path.
    """
    several = next((field for field in fields if len(parts(field)) > 1), None)
    if several is not None:
        raise Refusal(f"{several!r:.80} is more than a path: a semicolon or line end is in it")
    try:
        return tuple(term for field in fields for term in parse(f"{kind}/{name}: {field}"))
    except TermsError as error:
        raise Refusal(str(error)) from None


def are_meant(terms: Sequence[Term], kind: str, name: str, steps: Steps) -> bool:
    """Tell whether a field is asked for; without terms each is."""
    return not terms or any(term.covers(kind, name, steps) for term in terms)
