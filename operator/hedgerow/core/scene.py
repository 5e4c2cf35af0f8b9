"""Scene: what one look at the cluster has to plan with, and what comes of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from hedgerow.core.steps import ChildId
from hedgerow.core.terms import NO_TERMS, Terms
from hedgerow_schemas.base import ContestedField, Object

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hedgerow.core.conditions import Problem
    from hedgerow.core.meta import Installation, ObjectRef
    from hedgerow.core.ownership import Leaf, Verdict
    from hedgerow.core.steps import Deletion, Write

UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Past:
    """What earlier passes learned of one child; an empty one is always safe, only dearer.

    `settled` is the declaration, the live object and the verdict when last settled, `restored`
    when each vanished field was put back, `taken` that the name was found to be somebody else's
    object, `keeper` the other installation of hedgerow whose object it is, if any, `terms` what the
    user yielded and claimed then.
    """

    settled: tuple[Object, Object, Verdict] | None = None
    restored: Mapping[str, datetime] = field(default_factory=dict[str, datetime])
    taken: bool = False
    keeper: Installation | None = None
    terms: Terms = NO_TERMS


@dataclass(frozen=True, slots=True)
class Plan:
    """All that one look at the cluster asks for, and what it found.

    `rewritten` tells of each declared field that mutating admission changed on its way,
    `unmatched` of each term that means no field there is.
    """

    writes: tuple[Write, ...] = ()
    deletions: tuple[Deletion, ...] = ()
    contested: tuple[ContestedField, ...] = ()
    problems: tuple[Problem, ...] = ()
    rewritten: tuple[str, ...] = ()
    unmatched: tuple[str, ...] = ()
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

    @property
    def field_manager(self) -> str:
        """The one field manager of this controller in this installation."""
        return self.installation.field_manager(self.controller)

    def report(self, target: str, leaf: Leaf) -> ContestedField:
        """Describe a contested leaf; `since` is kept from an earlier report of the same."""
        holder = leaf.holders[0] if leaf.holders else None
        name = holder.manager if holder else UNKNOWN
        for old in self.reported:
            if (old.object, old.path, old.manager) == (target, leaf.path, name):
                return old
        since = datetime.fromisoformat(holder.time) if holder and holder.time else self.now
        return ContestedField(
            object=target,
            path=leaf.path,
            manager=name,
            operation=holder.operation if holder else None,
            subresource=(holder.subresource or None) if holder else None,
            since=since,
        )


def is_unknown(field: ContestedField) -> bool:
    """Tell whether nobody holds the field; a field manager may be named `unknown` all the same."""
    return field.manager == UNKNOWN and not field.operation
