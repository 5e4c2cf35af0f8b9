"""State: what is remembered about a resource besides the caches; losing it costs only requests."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from hedgerow.objects import ChildId
from hedgerow.plan.input import ChildHistory
from hedgerow.runtime.refusals import STATUS, Refusals

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

    from hedgerow.objects import ObjectRef
    from hedgerow.plan.input import SettledChild
    from hedgerow.plan.writes import Write
    from hedgerow_schemas.base import Status, View

RECHECK_NAME = timedelta(seconds=30)
MOST_REPEATS = 8
MOST_WRITES = 64
"""The most writes to one target within ten minutes, whatever they intend."""
MOST_ONCE = 64
REPEATED_WITHIN = timedelta(minutes=10)
MOST_EVENTS_SENT = 256


class PastWrite(NamedTuple):
    """One write: the digest of its intended content, and when it was made."""

    intent_digest: str
    time: datetime


class ResourceState(Struct):
    """What is known about the resource with this uid.

    - `read_before_create`: an object that no watch shows has, or had, a child's name; so names are
      read before a child is created.
    - `generation`, `field_policy`: the resource's generation, and what it yielded and claimed, at
      the last pass.
    - `namespace_terminating`: its namespace is being deleted, so nothing can be created there.
    - `created_once`: the uids of children created once, not yet recorded in status. If they are
      deleted before that, only this remembers them.
    - `created`: the children that were created since the last Event about them.
    - `history`: what earlier passes learned about each child.
    - `pruned`: the uids of children that were deleted.
    - `recent_writes`: the recent writes to each target.
    - `events_sent`: when the last Event about a field and its holder was sent.
    - `names_read`: when taken names were last read.
    - `refusals`: the requests that the server refused, and when each is sent again.
    - `status_too_large`: the full status was too large for the server, with the current generation.
    - `settled_status`: a digest of the status that was settled last, and of what it was made from.
    - `maybe_created`: children that may have been created, as the response was lost.
    - `strays`: the objects that were to be kept and are not our children, as they were read last.
    """

    uid: str
    read_before_create: bool
    generation: int = 0
    field_policy: str = ""
    namespace_terminating: bool = False
    created_once: dict[ChildId, str] = field(default_factory=dict[ChildId, str])
    created: dict[str, None] = field(default_factory=dict[str, None])
    history: dict[ChildId, ChildHistory] = field(default_factory=dict[ChildId, ChildHistory])
    pruned: dict[ChildId, str] = field(default_factory=dict[ChildId, str])
    recent_writes: dict[ChildId, tuple[PastWrite, ...]] = field(
        default_factory=dict[ChildId, tuple[PastWrite, ...]]
    )
    events_sent: dict[tuple[ChildId, str, str], datetime] = field(
        default_factory=dict[tuple[ChildId, str, str], datetime]
    )
    names_read: datetime | None = None
    refusals: Refusals = field(default_factory=Refusals)
    status_too_large: bool = False
    settled_status: str = ""
    maybe_created: dict[ChildId, ObjectRef] = field(default_factory=dict[ChildId, "ObjectRef"])
    strays: dict[ChildId, View] = field(default_factory=dict[ChildId, "View"])

    @classmethod
    def of(cls, uid: str, before: Status) -> ResourceState:
        """Return a memory that starts with what the resource says: an earlier process said it."""
        taken = any(condition.reason == "NameTaken" for condition in before.conditions)
        unlabelled = any(field.path.startswith(".metadata.labels") for field in before.contested)
        return cls(uid, read_before_create=taken or unlabelled)

    def note_created(self, child: ObjectRef) -> None:
        """Remember a child for the Event about those that were created."""
        self.created[str(child)] = None
        while len(self.created) > MOST_ONCE:
            del self.created[next(iter(self.created))]

    @property
    def taken(self) -> tuple[ChildId, ...]:
        """The children whose names other objects have."""
        return tuple(key for key, history in self.history.items() if history.taken)

    def may_read_names(self, now: datetime) -> bool:
        """Return whether taken names may be read again now; if so, remember the time."""
        due = self.names_read is None or not _is_near(self.names_read, now, RECHECK_NAME)
        if due:
            self.names_read = now
        return due

    def recheck_in(self, now: datetime) -> timedelta:
        """Return the time until taken names are to be read again: timed from the last look."""
        left = RECHECK_NAME - (now - self.names_read) if self.names_read else RECHECK_NAME
        return left if timedelta() < left < RECHECK_NAME else RECHECK_NAME

    def is_undone_too_often(self, target: ChildId, intent_digest: str, now: datetime) -> bool:
        """Return whether the same write was made and undone too often recently, or too many were.

        Some other program undoes our write each time. Without a limit, both would go on as fast as
        the server allows. Other writes in between do not matter: a fight may alternate between
        several declarations. A status also changes back and forth with the children that it
        reports. So for a status, the last eight writes must all be the same, or 64 writes must have
        been made within ten minutes. No child gets more than 64 writes within ten minutes, even if
        each of them intends something else.
        """
        recent = self._recent(target, now)
        same = sum(write.intent_digest == intent_digest for write in recent)
        if target != STATUS:
            return same >= MOST_REPEATS or len(recent) >= MOST_WRITES
        if same < MOST_REPEATS:
            return False
        in_a_row = all(write.intent_digest == intent_digest for write in recent[-MOST_REPEATS:])
        return in_a_row or len(recent) >= MOST_WRITES

    def note(self, target: ChildId, intent_digest: str, now: datetime) -> None:
        """Remember that a write was made."""
        self.recent_writes[target] = (*self._recent(target, now), PastWrite(intent_digest, now))[
            -MOST_WRITES:
        ]

    def _recent(self, target: ChildId, now: datetime) -> tuple[PastWrite, ...]:
        writes = self.recent_writes.get(target, ())
        return tuple(each for each in writes if _is_near(each.time, now, REPEATED_WITHIN))

    def may_send_event(self, child: ChildId, path: str, manager: str, now: datetime) -> bool:
        """Return whether an Event about a field and its holder is due; if so, remember it.

        It is due once in ten minutes, so that a fight with another program does not cause a stream
        of Events.
        """
        key = (child, path, manager)
        last = self.events_sent.get(key)
        if last is not None and _is_near(last, now, REPEATED_WITHIN):
            return False
        self.events_sent.pop(key, None)
        self.events_sent[key] = now
        while len(self.events_sent) > MOST_EVENTS_SENT:
            del self.events_sent[next(iter(self.events_sent))]
        return True

    def forget_event(self, child: ChildId, path: str, manager: str) -> None:
        """Forget that an Event was sent."""
        self.events_sent.pop((child, path, manager), None)

    def renew(self, generation: int, field_policy: str = "") -> None:
        """Take in the generation and the field policy; if new, try again what was given up.

        Only a user changes these, so this cannot keep a fight with another program going.
        """
        if generation != self.generation:
            self.history = {
                child: replace(history, restored={}) for child, history in self.history.items()
            }
            self.status_too_large = False
        if (generation, field_policy) != (self.generation, self.field_policy):
            self.recent_writes = {}
        self.generation, self.field_policy = generation, field_policy

    def learn(self, planned: Mapping[ChildId, ChildHistory], there: Container[ChildId]) -> None:
        """Take in what planning learned, and forget children that are gone."""
        kept = {child: history for child, history in self.history.items() if child in there}
        self.history = {**kept, **planned}
        kept_up = {STATUS, *planned}
        self.recent_writes = {
            c: writes for c, writes in self.recent_writes.items() if c in kept_up or c in there
        }
        self.pruned = {child: uid for child, uid in self.pruned.items() if child in there}

    def accept(
        self,
        write: Write,
        now: datetime,
        respelling: str = "",
        *,
        uid: str = "",
        settled: SettledChild | None = None,
        policy: str = "",
    ) -> None:
        """Remember that a write was accepted, and what it restored, created or settled.

        `respelling` is a digest of how the server respelled it, `policy` that of the field policy,
        and `uid` that of its answer.
        """
        if write.create and write.once:
            self.created_once[write.id] = uid
            while len(self.created_once) > MOST_ONCE:
                del self.created_once[next(iter(self.created_once))]
        self.refusals.clear(write.id)
        history = self.history.get(write.id, ChildHistory())
        restored = {**history.restored, **{leaf.path: now for leaf in write.restores}}
        self.history[write.id] = replace(
            history,
            restored=restored,
            respelling=respelling,
            settled=settled or history.settled,
            policy=policy if settled else history.policy,
        )


def _is_near(time: datetime, now: datetime, span: timedelta) -> bool:
    """Return whether a recorded time is less than a span away from now, before or after.

    A time further ahead was recorded by a wrong clock that has been set back since.
    """
    return abs(now - time) < span
