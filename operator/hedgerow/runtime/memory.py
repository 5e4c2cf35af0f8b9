"""Memory: what is known of one resource besides the caches; losing it costs requests, no more."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from hedgerow.core.plan import Past
from hedgerow.core.status import said
from hedgerow.core.steps import ChildId, Write

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

    from hedgerow.core.conditions import Problem
    from hedgerow_schemas.base import Object

RECHECK_NAME = timedelta(seconds=30)
STATUS: ChildId = ("", "status")
MOST_REPEATS = 8
MOST_ONCE = 64
REPEATED_WITHIN = timedelta(minutes=10)


@dataclass(slots=True)
class Memory:
    """Learned of the resource with this uid.

    `wary`: there is or was a child's name that no watch shows, so names are read before they are
    written. `barred`: its namespace is going, nothing can be made there. `generation`: that of
    the resource when last looked at. `once`: the children made once since the status was last
    true; should they be gone before it is, nothing else tells of them.
    """

    uid: str
    wary: bool
    generation: int = 0
    barred: bool = False
    once: dict[ChildId, None] = field(default_factory=dict[ChildId, None])
    past: dict[ChildId, Past] = field(default_factory=dict[ChildId, Past])
    pruned: dict[ChildId, str] = field(default_factory=dict[ChildId, str])
    made: dict[ChildId, tuple[str, tuple[datetime, ...]]] = field(
        default_factory=dict[ChildId, tuple[str, tuple[datetime, ...]]]
    )
    names_read: datetime | None = None
    status_refused: str = ""

    @classmethod
    def of(cls, uid: str, live: Object) -> Memory:
        """Begin with what the resource's own status remembers."""
        before = said(live)
        taken = any(condition.reason == "NameTaken" for condition in before.conditions)
        unlabelled = any(field.path.startswith(".metadata.labels") for field in before.contested)
        return cls(uid, wary=taken or unlabelled)

    @property
    def refused(self) -> frozenset[ChildId]:
        """The children whose last declaration the server refused."""
        return frozenset(key for key, past in self.past.items() if past.refused)

    @property
    def taken(self) -> tuple[ChildId, ...]:
        """The children whose names are somebody else's."""
        return tuple(key for key, past in self.past.items() if past.taken)

    def may_read_names(self, now: datetime) -> bool:
        """Tell whether taken names are due for another look; note that it is taken."""
        due = self.names_read is None or now - self.names_read >= RECHECK_NAME
        if due:
            self.names_read = now
        return due

    def is_tired(self, target: ChildId, gist: str, now: datetime) -> bool:
        """Tell whether one and the same write was made, and undone, too often of late.

        Some other program undoes what is written, at once and each time anew: without an end to
        it, both would go on as fast as the server lets them.
        """
        return len(self._recent(target, gist, now)) >= MOST_REPEATS

    def note(self, target: ChildId, gist: str, now: datetime) -> None:
        """Remember that a write was made."""
        self.made[target] = (gist, (*self._recent(target, gist, now), now))

    def _recent(self, target: ChildId, gist: str, now: datetime) -> tuple[datetime, ...]:
        last, times = self.made.get(target, ("", ()))
        return tuple(t for t in times if now - t < REPEATED_WITHIN) if last == gist else ()

    def renew(self, generation: int) -> None:
        """Take note of a new declaration: what was given up under the old one is tried again."""
        if generation != self.generation:
            self.generation = generation
            self.past = {child: replace(past, restored={}) for child, past in self.past.items()}

    def learn(self, planned: Mapping[ChildId, Past], there: Container[ChildId]) -> None:
        """Take over what planning learned, and drop what is known of children that are gone.

        Of a child that is not declared any more no refusal is remembered.
        """
        kept = {child: replace(p, refused=None) for child, p in self.past.items() if child in there}
        self.past = {**kept, **planned}
        kept_up = {STATUS, *planned}
        self.made = {c: made for c, made in self.made.items() if c in kept_up or c in there}
        self.pruned = {child: uid for child, uid in self.pruned.items() if child in there}

    def refuse(self, write: Write, problem: Problem) -> Problem:
        """Remember that the server would not take this very write."""
        past = self.past.get(write.id, Past())
        self.past[write.id] = replace(past, refused=(write.mark, problem))
        return problem

    def accept(self, write: Write, now: datetime) -> None:
        """Remember that a write was taken, and what it restored or made."""
        if write.create and write.once:
            self.once[write.id] = None
            while len(self.once) > MOST_ONCE:
                del self.once[next(iter(self.once))]
        past = self.past.get(write.id, Past())
        restored = {**past.restored, **{leaf.path: now for leaf in write.restores}}
        self.past[write.id] = replace(past, refused=None, restored=restored)
