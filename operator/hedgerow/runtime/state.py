"""State: what is remembered of one resource besides the caches; losing it costs only requests."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from hedgerow.plan.input import Past
from hedgerow.plan.status import said
from hedgerow.plan.writes import ChildId, Write
from hedgerow.runtime.refusals import STATUS, Refusals

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

    from hedgerow.contract import Notice
    from hedgerow.objects import ObjectRef
    from hedgerow_schemas.base import Object

RECHECK_NAME = timedelta(seconds=30)
MOST_REPEATS = 8
MOST_MADE = 64
"""Writes to one target that are remembered: what alternates among more than eight is no quarrel."""
MOST_ONCE = 64
REPEATED_WITHIN = timedelta(minutes=10)
MOST_TOLD = 256


class Made(NamedTuple):
    """One write: what it was to bring about, and when it was made."""

    gist: str
    time: datetime


class Unsent(NamedTuple):
    """An Event that could not be written yet."""

    regarding: ObjectRef
    notice: Notice
    occurrence: str


@dataclass(slots=True)
class Memory:
    """Learned of the resource with this uid.

    `wary`: there is or was a child's name that no watch shows, so names are read before they are
    written. `barred`: its namespace is going, nothing can be made there. `generation`: that of
    the resource when last looked at. `once`: the children made once since the status was last
    true; should they be gone before it is, nothing else tells of them. `terms`: what was yielded
    and claimed then. `made`: what was written of late to each target, and when. `told`: when Events
    last told of a field and of who had it. `refusals`: the requests that the server refused, and
    when each is sent again. `unsent`: the Events among them, by name. `brief`: the status with all
    that it is to list was too large for the server, under this declaration. `unsure`: children of
    which nobody knows whether they were created, as the answer was lost.
    """

    uid: str
    wary: bool
    generation: int = 0
    terms: str = ""
    barred: bool = False
    once: dict[ChildId, None] = field(default_factory=dict[ChildId, None])
    past: dict[ChildId, Past] = field(default_factory=dict[ChildId, Past])
    pruned: dict[ChildId, str] = field(default_factory=dict[ChildId, str])
    made: dict[ChildId, tuple[Made, ...]] = field(default_factory=dict[ChildId, tuple[Made, ...]])
    told: dict[tuple[ChildId, str, str], datetime] = field(
        default_factory=dict[tuple[ChildId, str, str], datetime]
    )
    names_read: datetime | None = None
    refusals: Refusals = field(default_factory=Refusals)
    unsent: dict[str, Unsent] = field(default_factory=dict[str, "Unsent"])
    brief: bool = False
    unsure: dict[ChildId, ObjectRef] = field(default_factory=dict[ChildId, "ObjectRef"])

    @classmethod
    def of(cls, uid: str, live: Object) -> Memory:
        """Begin with what the resource's own status remembers."""
        before = said(live)
        taken = any(condition.reason == "NameTaken" for condition in before.conditions)
        unlabelled = any(field.path.startswith(".metadata.labels") for field in before.contested)
        return cls(uid, wary=taken or unlabelled)

    @property
    def taken(self) -> tuple[ChildId, ...]:
        """The children whose names are somebody else's."""
        return tuple(key for key, past in self.past.items() if past.taken)

    def may_read_names(self, now: datetime) -> bool:
        """Return whether taken names are due for another look; note that it is taken."""
        due = self.names_read is None or not _is_near(self.names_read, now, RECHECK_NAME)
        if due:
            self.names_read = now
        return due

    def is_tired(self, target: ChildId, gist: str, now: datetime) -> bool:
        """Return whether one and the same write was made, and undone, too often of late.

        Some other program undoes what is written, at once and each time anew: without an end to
        it, both would go on as fast as the server lets them. What was written in between does not
        count: a quarrel may go through several declarations by turns. A status goes back and
        forth with the children that it tells of, so it is a quarrel only when nothing else was
        written for long, or when all that is remembered was written within the time.
        """
        recent = self._recent(target, now)
        same = sum(made.gist == gist for made in recent)
        if same < MOST_REPEATS or target != STATUS:
            return same >= MOST_REPEATS
        in_a_row = all(made.gist == gist for made in recent[-MOST_REPEATS:])
        return in_a_row or len(recent) >= MOST_MADE

    def note(self, target: ChildId, gist: str, now: datetime) -> None:
        """Remember that a write was made."""
        self.made[target] = (*self._recent(target, now), Made(gist, now))[-MOST_MADE:]

    def _recent(self, target: ChildId, now: datetime) -> tuple[Made, ...]:
        made = self.made.get(target, ())
        return tuple(each for each in made if _is_near(each.time, now, REPEATED_WITHIN))

    def may_tell(self, child: ChildId, path: str, manager: str, now: datetime) -> bool:
        """Return whether an Event about a field and its holder is due; note that it is told.

        What a quarrel does again and again is told once in the time within which it is counted.
        """
        key = (child, path, manager)
        last = self.told.get(key)
        if last is not None and _is_near(last, now, REPEATED_WITHIN):
            return False
        self.told.pop(key, None)
        self.told[key] = now
        while len(self.told) > MOST_TOLD:
            del self.told[next(iter(self.told))]
        return True

    def renew(self, generation: int, terms: str = "") -> None:
        """Take note of a new declaration: what was given up under the old one is tried again.

        Whoever changes it writes as well: it cannot be what makes a quarrel go on by itself.
        """
        if generation != self.generation:
            self.past = {child: replace(past, restored={}) for child, past in self.past.items()}
            self.brief = False
        if (generation, terms) != (self.generation, self.terms):
            self.made = {}
        self.generation, self.terms = generation, terms

    def learn(self, planned: Mapping[ChildId, Past], there: Container[ChildId]) -> None:
        """Take over what planning learned, and drop what is known of children that are gone."""
        kept = {child: past for child, past in self.past.items() if child in there}
        self.past = {**kept, **planned}
        kept_up = {STATUS, *planned}
        self.made = {c: made for c, made in self.made.items() if c in kept_up or c in there}
        self.pruned = {child: uid for child, uid in self.pruned.items() if child in there}

    def accept(self, write: Write, now: datetime) -> None:
        """Remember that a write was taken, and what it restored or made."""
        if write.create and write.once:
            self.once[write.id] = None
            while len(self.once) > MOST_ONCE:
                del self.once[next(iter(self.once))]
        self.refusals.drop(write.id)
        past = self.past.get(write.id, Past())
        restored = {**past.restored, **{leaf.path: now for leaf in write.restores}}
        self.past[write.id] = replace(past, restored=restored)


def _is_near(time: datetime, now: datetime, span: timedelta) -> bool:
    """Return whether a time that was noted is less than a span away from now.

    One that lies further ahead was noted by a clock that was wrong, and has been set back since.
    """
    return abs(now - time) < span
