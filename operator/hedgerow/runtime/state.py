"""State: what is remembered about a resource besides the caches; losing it costs only requests."""

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
"""The most writes to one target that are remembered: enough to see eight alternate eight times."""
MOST_ONCE = 64
REPEATED_WITHIN = timedelta(minutes=10)
MOST_TOLD = 256


class Made(NamedTuple):
    """One write: the digest of its intended content, and when it was made."""

    gist: str
    time: datetime


class Unsent(NamedTuple):
    """An Event that could not be written yet."""

    regarding: ObjectRef
    notice: Notice
    occurrence: str


@dataclass(slots=True)
class Memory:
    """What is known about the resource with this uid.

    - `wary`: an object that no watch shows has, or had, a child's name; so names are read before
      a child is created.
    - `generation`, `terms`: the resource's generation, and what it yielded and claimed, at the
      last pass.
    - `barred`: its namespace is being deleted, so nothing can be created there.
    - `once`: children created once, not yet recorded in status. If they are deleted before that,
      only this remembers them.
    - `past`: what earlier passes learned about each child.
    - `pruned`: the uids of children that were deleted.
    - `made`: the recent writes to each target.
    - `told`: when the last Event about a field and its holder was sent.
    - `names_read`: when taken names were last read.
    - `refusals`: the requests that the server refused, and when each is sent again.
    - `unsent`: the Events that were refused, by name.
    - `brief`: the full status was too large for the server, with the current generation.
    - `unsure`: children that may have been created, as the response was lost.
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
    def of(cls, uid: str, live: Object, *, custom: bool = True) -> Memory:
        """Return a memory that starts with what the resource says, a `custom` one in its status."""
        before = said(live, custom=custom)
        taken = any(condition.reason == "NameTaken" for condition in before.conditions)
        unlabelled = any(field.path.startswith(".metadata.labels") for field in before.contested)
        return cls(uid, wary=taken or unlabelled)

    @property
    def taken(self) -> tuple[ChildId, ...]:
        """The children whose names other objects have."""
        return tuple(key for key, past in self.past.items() if past.taken)

    def may_read_names(self, now: datetime) -> bool:
        """Return whether taken names may be read again now; if so, remember the time."""
        due = self.names_read is None or not _is_near(self.names_read, now, RECHECK_NAME)
        if due:
            self.names_read = now
        return due

    def is_tired(self, target: ChildId, gist: str, now: datetime) -> bool:
        """Return whether the same write was made, and undone, too often recently.

        Some other program undoes our write each time. Without a limit, both would go on as fast as
        the server allows. Other writes in between do not matter: a fight may alternate between
        several declarations. A status also changes back and forth with the children that it
        reports. So for a status, the last eight writes must all be the same, or 64 writes must have
        been made within ten minutes.
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
        """Return whether an Event about a field and its holder is due; if so, remember it.

        It is due once in ten minutes, so that a fight with another program does not cause a stream
        of Events.
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
        """Take in the generation and terms; if they are new, try again what was given up.

        Only a user changes these, so this cannot keep a fight with another program going.
        """
        if generation != self.generation:
            self.past = {child: replace(past, restored={}) for child, past in self.past.items()}
            self.brief = False
        if (generation, terms) != (self.generation, self.terms):
            self.made = {}
        self.generation, self.terms = generation, terms

    def learn(self, planned: Mapping[ChildId, Past], there: Container[ChildId]) -> None:
        """Take in what planning learned, and forget children that are gone."""
        kept = {child: past for child, past in self.past.items() if child in there}
        self.past = {**kept, **planned}
        kept_up = {STATUS, *planned}
        self.made = {c: made for c, made in self.made.items() if c in kept_up or c in there}
        self.pruned = {child: uid for child, uid in self.pruned.items() if child in there}

    def accept(self, write: Write, now: datetime, mark: str = "") -> None:
        """Remember that a write was accepted, and what it restored or created.

        `mark` is how the server respelled a claim.
        """
        if write.create and write.once:
            self.once[write.id] = None
            while len(self.once) > MOST_ONCE:
                del self.once[next(iter(self.once))]
        self.refusals.drop(write.id)
        past = self.past.get(write.id, Past())
        restored = {**past.restored, **{leaf.path: now for leaf in write.restores}}
        self.past[write.id] = replace(past, restored=restored, mark=mark)


def _is_near(time: datetime, now: datetime, span: timedelta) -> bool:
    """Return whether a recorded time is less than a span away from now, before or after.

    A time further ahead was recorded by a wrong clock that has been set back since.
    """
    return abs(now - time) < span
