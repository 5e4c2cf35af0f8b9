"""Input: what a plan is made from: the live children, the policy, the history of writes."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from hedgerow.fields.redaction import both
from hedgerow.plan.conflicts import OTHER_VALUE, REMOVED, SCALED_TO_ZERO
from hedgerow.plan.policy import NO_TERMS, Terms
from hedgerow.plan.writes import ChildId
from hedgerow_schemas.base import ContestedField, Object

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hedgerow.fields.ownership import Leaf
    from hedgerow.objects import Installation, ObjectRef
    from hedgerow.plan.conditions import Problem
    from hedgerow.plan.writes import Deletion, Write


@dataclass(frozen=True, slots=True)
class Settled:
    """A child that was settled: digests of its declaration and of all but its status.

    Digests, since the trees would be kept in memory besides those of the caches; and no version,
    which dry runs leave as it was. `contested` and `rewritten` are the leaves that it was settled
    without.
    """

    declared: str
    essence: str
    contested: tuple[Leaf, ...] = ()
    rewritten: tuple[Leaf, ...] = ()


@dataclass(frozen=True, slots=True)
class Past:
    """What earlier passes learned of one child; an empty one is always safe, only dearer.

    `settled` tells what it was when last settled, `restored` when each vanished field was put
    back, `taken` that the name was found to be somebody else's object, `keeper` the other
    installation of hedgerow whose object it is, if any, `terms` what the user yielded and claimed
    then.
    """

    settled: Settled | None = None
    restored: Mapping[str, datetime] = field(default_factory=dict[str, datetime])
    taken: bool = False
    keeper: Installation | None = None
    terms: Terms = NO_TERMS


@dataclass(frozen=True, slots=True)
class Plan:
    """All that one look at the cluster asks for, and what it found.

    `rewritten` tells of each declared field that mutating admission changed on its way,
    `unmatched` of each term that means no field there is, `ignored` of each that has no effect on
    a contested field, and why.
    """

    writes: tuple[Write, ...] = ()
    deletions: tuple[Deletion, ...] = ()
    contested: tuple[ContestedField, ...] = ()
    problems: tuple[Problem, ...] = ()
    rewritten: tuple[str, ...] = ()
    unmatched: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    past: Mapping[ChildId, Past] = field(default_factory=dict[ChildId, Past])

    @property
    def steps(self) -> tuple[Write | Deletion, ...]:
        """Everything to carry out, in order."""
        return (*self.writes, *self.deletions)


@dataclass(frozen=True, slots=True)
class Scene:
    """What planning looks at: the owner, what is there, and what is known of it.

    `live` holds the owner's children by kind and name; `homonyms` holds cached objects of a
    child's name that have another owner; `reported` is what the owner's status already says,
    `terms` what its annotations yield and claim, `anew` that its status is about an older spec.
    """

    owner: ObjectRef
    controller: str
    installation: Installation
    now: datetime
    live: Mapping[ChildId, Object]
    homonyms: Mapping[ChildId, Object] = field(default_factory=dict[ChildId, Object])
    past: Mapping[ChildId, Past] = field(default_factory=dict[ChildId, Past])
    reported: tuple[ContestedField, ...] = ()
    terms: Terms = NO_TERMS
    anew: bool = False
    _known: Mapping[tuple[str, str], ContestedField] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Index what is reported already."""
        known = {(old.object, old.path): old for old in self.reported}
        object.__setattr__(self, "_known", known)

    @property
    def field_manager(self) -> str:
        """The one field manager of this controller in this installation."""
        return self.installation.field_manager(self.controller)

    def report(self, target: ObjectRef, leaf: Leaf, reason: str = "") -> ContestedField:
        """Return what a status says of a contested leaf.

        `since` is kept from an earlier report of the same holder; the values are those of now.
        """
        holder = leaf.holders[0] if leaf.holders else None
        name, kind = (holder.manager if holder else None), target.api.kind
        old = self._known.get((str(target), leaf.path))
        if old is not None and old.manager == name:
            since = old.since
        else:
            since = datetime.fromisoformat(holder.time) if holder and holder.time else self.now
        declared, live = both(kind, leaf.steps, leaf.want, leaf.live)
        return ContestedField(
            object=str(target),
            path=leaf.path,
            reason=reason or _reason(leaf),
            declared=declared,
            live=live,
            manager=name,
            operation=holder.operation if holder else None,
            subresource=(holder.subresource or None) if holder else None,
            since=since,
        )

    def is_given_up(self, target: ObjectRef, path: str) -> bool:
        """Return whether a field is reported already as one that nobody holds."""
        old = self._known.get((str(target), path))
        return old is not None and is_nobodys(old)


def is_nobodys(field: ContestedField) -> bool:
    """Return whether nobody holds the field."""
    return not field.manager


def is_scaled_away(leaf: Leaf) -> bool:
    """Return whether somebody scaled to nothing: a Scale of 0 replicas is recorded for nobody."""
    return leaf.path == ".spec.replicas" and leaf.live == 0


def _reason(leaf: Leaf) -> str:
    if leaf.holders:
        return OTHER_VALUE
    return SCALED_TO_ZERO if is_scaled_away(leaf) else REMOVED
