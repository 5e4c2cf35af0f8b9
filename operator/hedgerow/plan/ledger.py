"""Ledger: the last attempt at each target of one resource, and how it ended.

A target is a child, an object that fields are set of, the resource's status, or an Event. Of each
there is one entry. It says for which *pair* an outcome holds: a digest of what is intended, and the
content of what is there. Four rules follow:

- The same pair is not tried again before its time. After a second refusal, no other intent is
  either, while the content is the same.
- A pair that succeeded is settled, however the server spells it.
- The same intent once more after a success has been undone: the first time it is mended at once,
  then the wait doubles.
- What got no answer is read by name first.

Losing the ledger costs requests, and nothing else.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from hedgerow.backoff import backoff
from hedgerow.plan.conditions import Problem
from hedgerow.plan.writes import STATUS

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Iterable, Mapping

    from hedgerow.fields.ownership import Leaf
    from hedgerow.fields.refused import Place
    from hedgerow.objects import ChildId
    from hedgerow.plan.writes import Deletion, Write

FIRST_WAIT = 1.0
"""Seconds before a refused write, or one undone twice, is tried again; they double each time."""
LONGEST_WAIT = 300.0
"""Seconds: the longest wait, and the longest Retry-After that is respected."""
RECHECK_NAME = timedelta(seconds=30)
"""The time until a name that another object has is read again."""
LONGEST: Final = timedelta(seconds=LONGEST_WAIT)
WINDOW = timedelta(minutes=10)
"""How long it is remembered that something was undone or told."""
MOST_UNDONE = 8
MOST_WRITES = 64
"""So many writes to one target within ten minutes are too many, whatever they say."""
PACE = WINDOW / MOST_WRITES
"""The time between two writes from then on. A status may have as many for a good reason."""
MOST_TOLD = 256
MOST_UNTOLD = 64
WITHOUT: Final = " without "
"""In the name of the target that the rest of a child is, while fields of it are refused."""
NOT_SETTLING: Final = "NotSettling"
"""The reason of a condition: each write is undone by somebody."""


_NOTHING: Final[Mapping[str, datetime]] = MappingProxyType({})


class EntryState(Enum):
    """How the last attempt to reach the intended state ended."""

    NEW = "nothing was tried"
    SETTLED = "the server took it"
    REFUSED = "the server refused it"
    TAKEN = "an object that is not ours has the name"
    DELETED = "it was deleted"


class LedgerEntry(Struct, frozen=True):
    """The last attempt at one target.

    The `state` is about one pair: `intent`, a digest of what was to be reached, and `content`,
    which stands for the live object then; an empty content means that the object is to be judged
    again. `again`: the time before which nothing is tried, see `Ledger.waits`. `blocked`: the
    fields for which this pair was refused. `attempts`: refusals of it in a row. `is_unanswered`:
    the last request got no answer. `settled`: the intent that succeeded last, but for the fields
    that were `left_out`. `undone`: how often this intent had to be written again. `written`: the
    times of the last writes. `contested` and `rewritten` are the leaves that differ in what is
    settled, `admitted` is a digest of how the server respelled it, and `restored` says when a
    vanished field was put back.
    """

    state: EntryState = EntryState.NEW
    intent: str = ""
    content: str = ""
    again: datetime | None = None
    problem: Problem | None = None
    blocked: tuple[Place, ...] = ()
    attempts: int = 0
    is_unanswered: bool = False
    settled: str = ""
    left_out: tuple[str, ...] = ()
    undone: int = 0
    written: tuple[datetime, ...] = ()
    contested: tuple[Leaf, ...] = ()
    rewritten: tuple[Leaf, ...] = ()
    admitted: str = ""
    restored: Mapping[str, datetime] = _NOTHING

    def is_settled(self, intent: str, content: str) -> bool:
        """Return whether nothing that matters has changed since this was found settled."""
        return (
            self.state is EntryState.SETTLED and bool(content) and self._is_about(intent, content)
        )

    def is_deleted(self, intent: str, content: str) -> bool:
        """Return whether this very deletion was made: the object may be shown for a while."""
        return self.state is EntryState.DELETED and self._is_about(intent, content)

    def waits(self, step: Write | Deletion, now: datetime) -> bool:
        """Return whether a write or deletion is not to be made now."""
        intent, content = step.intent_digest, step.content
        if self.is_deleted(intent, content):
            return True
        if self.is_due(now):
            return False
        if self.state is EntryState.REFUSED:
            # Each look may intend another status, and a missing right refuses all of them.
            return content == self.content and (intent == self.intent or self.attempts > 1)
        is_again = intent == self.settled and not self.goes_on(step)
        return is_again or self._is_full

    def goes_on(self, step: Write | Deletion) -> bool:
        """Return whether a write leaves out fewer fields than the last one: it repeats nothing."""
        return set(step.left_out) < set(self.left_out)

    def is_due(self, now: datetime) -> bool:
        """Return whether its time has come, also after the clock was set back."""
        longest = RECHECK_NAME if self.state is EntryState.TAKEN else LONGEST
        return self.again is None or now >= self.again or self.again - now > longest

    def judged(
        self,
        intent: str,
        content: str,
        contested: tuple[Leaf, ...] = (),
        rewritten: tuple[Leaf, ...] = (),
        admitted: str = "",
    ) -> LedgerEntry:
        """Return the entry after the target was found settled; without `content`, for this time."""
        again = self.again if self.state is EntryState.SETTLED else None
        return replace(
            self,
            state=EntryState.SETTLED,
            intent=intent,
            content=content,
            again=again,
            problem=None,
            blocked=(),
            attempts=0,
            is_unanswered=False,
            settled=intent if content else self.settled,
            contested=contested,
            rewritten=rewritten,
            admitted=admitted,
        )

    def hindrance(self, step: Write | Deletion) -> Problem | None:
        """Return the problem of a request that was refused or has to wait; else None."""
        if self.state is EntryState.REFUSED:
            return self.problem
        if self._is_full:
            message = f"{step.ref}: written {MOST_WRITES} times in ten minutes"
        elif self.undone >= MOST_UNDONE:
            message = f"{step.ref}: written {MOST_UNDONE} times, and undone each time"
        else:
            message = f"{step.ref}: what was written has been undone; it is written again"
            return Problem(NOT_SETTLING, message, stalled=False, about=step.id)
        return Problem(NOT_SETTLING, message, about=step.id)

    @property
    def _is_full(self) -> bool:
        return len(self.written) >= MOST_WRITES

    def _is_about(self, intent: str, content: str) -> bool:
        return (self.intent, self.content) == (intent, content)


NO_ENTRY: Final = LedgerEntry()


class Ledger:
    """The entries of one resource, by target.

    `reads_names`: what is missing may be there under its name, where no watch shows it.
    `untold`: the children that were created since the last Event about them. `unknown`: those of
    which a creation got no answer, and which were not read since.
    """

    def __init__(self, *, reads_names: bool = False) -> None:
        self.reads_names = reads_names
        self.entries: dict[ChildId, LedgerEntry] = {}
        self.untold: dict[str, None] = {}
        self.unknown: set[ChildId] = set()
        self._told: dict[Hashable, datetime] = {}

    def __len__(self) -> int:
        """Return the number of entries, with those of Events."""
        return len(self.entries) + len(self._told)

    def entry(self, target: ChildId) -> LedgerEntry:
        """Return the entry of a target."""
        return self.entries.get(target, NO_ENTRY)

    def in_state(self, state: EntryState) -> tuple[ChildId, ...]:
        """Return the targets in this state."""
        return tuple(target for target, entry in self.entries.items() if entry.state is state)

    @property
    def refused(self) -> frozenset[ChildId]:
        """The children whose last write or deletion was refused."""
        return frozenset(self.in_state(EntryState.REFUSED)) - {STATUS}

    def waits(self, step: Write | Deletion, now: datetime) -> bool:
        """Return whether a write or deletion is not to be made now, by the entry of its target."""
        return self.entry(step.id).waits(step, now)

    def problem(self, step: Write | Deletion, now: datetime) -> Problem | None:
        """Return the problem of a planned request that is not made; None if there is none."""
        entry = self.entry(step.id)
        if entry.is_deleted(step.intent_digest, step.content):
            return None
        is_known = entry.state is EntryState.REFUSED or self.waits(step, now)
        return entry.hindrance(step) if is_known else None

    def due_in(self, targets: Collection[ChildId], now: datetime) -> timedelta | None:
        """Return the time until the first of these targets, or of the taken names, is due."""
        least = timedelta(seconds=FIRST_WAIT / 2)
        waits = (
            entry.again - now
            for target, entry in self.entries.items()
            if entry.again is not None
            if target in targets or entry.state is EntryState.TAKEN
        )
        return min((max(wait, least) for wait in waits), default=None)

    def learn(self, judged: Mapping[ChildId, LedgerEntry], there: Collection[ChildId]) -> None:
        """Store the verdicts of a plan, and forget targets that neither exist nor are declared."""
        kept = {
            target: entry
            for target, entry in self.entries.items()
            if target in there or target == STATUS
        }
        self.entries = {**kept, **judged}

    def keep(self, steps: Iterable[Write | Deletion]) -> None:
        """Forget the refusals of requests that are not planned any more."""
        planned = {step.id: (step.intent_digest, step.content) for step in steps}
        for target in self.refused:
            entry = self.entries[target]
            if planned.get(target) != (entry.intent, entry.content):
                self.clear(target)

    def clear(self, target: ChildId) -> None:
        """Forget how the last try of a target failed."""
        entry = self.entries.get(target)
        if entry is not None and entry.state is not EntryState.SETTLED:
            self.entries[target] = replace(
                entry, state=EntryState.NEW, again=None, problem=None, blocked=(), attempts=0
            )

    def succeed(
        self,
        step: Write,
        now: datetime,
        content: str = "",
        *,
        rewritten: tuple[Leaf, ...] = (),
        admitted: str = "",
    ) -> None:
        """Note that a write was made.

        `content` is that of the answer; it is empty if the answer is still to be judged.
        """
        before = self.entry(step.id)
        written = (*_lately(before.written, now), now)[-MOST_WRITES:]
        undone = before.undone if _lately(before.written[-1:], now) else 0
        undone = undone + (not before.goes_on(step)) if step.intent_digest == before.settled else 0
        wait = backoff(undone, 1.0, first=FIRST_WAIT, longest=LONGEST_WAIT) if undone else 0.0
        again = now + timedelta(seconds=wait) if undone else None
        if len(written) == MOST_WRITES:
            again = max(now + PACE, again or now)
        self.entries[step.id] = LedgerEntry(
            state=EntryState.SETTLED,
            intent=step.intent_digest,
            content=content,
            again=again,
            settled=step.intent_digest,
            left_out=step.left_out,
            undone=undone,
            written=written,
            rewritten=rewritten,
            admitted=admitted,
            restored={**before.restored, **{leaf.path: now for leaf in step.restores}},
        )

    def note_created(self, child: str) -> None:
        """Note a child for the Event about those that were created."""
        self.untold[child] = None
        while len(self.untold) > MOST_UNTOLD:
            del self.untold[next(iter(self.untold))]

    def deleted(self, step: Deletion, now: datetime) -> None:
        """Note that an object was deleted: it may be shown for a while."""
        before = self.entry(step.id)
        written = (*_lately(before.written, now), now)[-MOST_WRITES:]
        again = now + PACE if len(written) == MOST_WRITES else before.again
        self.entries[step.id] = replace(
            before,
            state=EntryState.DELETED,
            intent=step.intent_digest,
            content=step.content,
            again=again,
            problem=None,
            attempts=0,
            is_unanswered=False,
            written=written,
        )

    def refuse(
        self,
        target: ChildId,
        pair: tuple[str, str],
        problem: Problem | None,
        now: datetime,
        *,
        draw: float,
        after: float = 0.0,
        blocked: tuple[Place, ...] = (),
    ) -> LedgerEntry:
        """Note that a request was refused, and return the entry.

        If the target is refused again while its content is the same, the wait doubles, from 1 s to
        300 s. Its upper half is random (`draw`, from [0, 1)). It is at least `after` seconds, but
        never more than 300. The waits of a child begin at 1 s again when something else is
        intended, see `keep`.
        """
        before, (intent, content) = self.entry(target), pair
        is_again = before.state is EntryState.REFUSED and content == before.content
        attempts = before.attempts + 1 if is_again else 1
        wait = max(backoff(attempts, draw, first=FIRST_WAIT, longest=LONGEST_WAIT), after)
        self.entries[target] = entry = replace(
            before,
            state=EntryState.REFUSED,
            intent=intent,
            content=content,
            again=now + timedelta(seconds=min(LONGEST_WAIT, wait)),
            problem=problem,
            blocked=blocked,
            attempts=attempts,
        )
        return entry

    def carry(self, target: ChildId, content: str) -> None:
        """Keep the refusal of a target whose content another write of ours has changed."""
        entry = self.entry(target)
        if entry.state is EntryState.REFUSED and content:
            self.entries[target] = replace(entry, content=content)

    def note_answer(self, target: ChildId, *, is_silent: bool) -> bool:
        """Note a refusal, or a silence; return whether that is one more for this kind of object.

        A webhook that does not answer is asked for all objects of a kind.
        """
        silent = (e.is_unanswered for at, e in self.entries.items() if at.kind == target.kind)
        is_again = is_silent and any(silent)
        self.entries[target] = replace(self.entry(target), is_unanswered=is_silent)
        return is_again

    def record_taken(self, target: ChildId, now: datetime) -> None:
        """Note that an object that is not ours has the name of a target, as read now."""
        self.entries[target] = LedgerEntry(EntryState.TAKEN, again=now + RECHECK_NAME)

    def may_tell(self, event: Hashable, now: datetime) -> bool:
        """Return whether an Event is due: once in ten minutes. If so, note that it is told."""
        last = self._told.get(event)
        if last is not None and _is_near(last, now):
            return False
        self._told.pop(event, None)
        self._told[event] = now
        while len(self._told) > MOST_TOLD:
            del self._told[next(iter(self._told))]
        return True

    def untell(self, event: Hashable) -> None:
        """Forget that an Event was told: it was refused."""
        self._told.pop(event, None)

    def renew(self, *, generation: bool) -> None:
        """Retry writes that were undone too often: a user has changed the resource.

        What was refused, or is a taken name, still waits for its time. `generation`: the user has
        changed the spec, and not only what it yields and claims.
        """
        for target, entry in self.entries.items():
            restored = _NOTHING if generation else entry.restored
            again = entry.again if entry.state in (EntryState.REFUSED, EntryState.TAKEN) else None
            self.entries[target] = replace(
                entry, undone=0, written=(), again=again, restored=restored
            )


def _lately(times: tuple[datetime, ...], now: datetime) -> tuple[datetime, ...]:
    return tuple(time for time in times if _is_near(time, now))


def _is_near(time: datetime, now: datetime) -> bool:
    """Return whether a time is less than ten minutes away from now, before or after.

    A time further ahead was noted by a wrong clock that has been set back since.
    """
    return abs(now - time) < WINDOW
