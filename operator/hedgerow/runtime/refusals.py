"""Refusals: what follows when the API server refuses a request, and when it is sent again.

Every refusal has a way back: the object is read again, or the request waits for a backoff with a
ceiling of minutes. Nothing is left until "something changes": a quota under contention, a webhook
that was down or a right that was missing changes without any watch event.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from typing import TYPE_CHECKING

import structlog

from hedgerow.kube import errors

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from hedgerow.kube.errors import KubeError
    from hedgerow.objects import ObjectRef
    from hedgerow.plan.conditions import Problem
    from hedgerow.plan.writes import ChildId
    from hedgerow.runtime.clock import Clock
    from hedgerow.runtime.metrics import Meter

FIRST_WAIT = 1.0
"""Seconds before a refused request is sent for the second time; they double."""
LONGEST_WAIT = 300.0
"""Seconds: the ceiling of the backoff, and the longest Retry-After that is heeded."""

STATUS: ChildId = ("", "status")
EVENTS: ChildId = ("", "events")


log = structlog.get_logger(__name__)


UNUSUAL_FROM = 3
"""Attempts: what comes of a cache that is behind is worth a warning only if it goes on."""


class Request(Enum):
    """A kind of request, as the table and the metric name it."""

    CREATE = "create"
    APPLY = "apply"
    DELETE = "delete"
    STATUS = "status"
    FINALIZER = "finalizer"
    EVENT = "event"


class Answer(Enum):
    """A kind of refusal, as the table and the metric name it."""

    EXISTS = "409 AlreadyExists"
    STALE = "409 Conflict"
    HELD = "409 field managers"
    FORBIDDEN = "403"
    ENDING = "403 NamespaceTerminating"
    INVALID = "400, 405, 413, 415, 422"
    FAILED = "500"
    MISSING = "404"
    AWAY = "401, 429, 502, 503, 504, no answer"


class Follow(Enum):
    """What follows a refusal."""

    LOOK = "read the object; if it is not as cached, plan again at once, else wait"
    WAIT = "wait, while the rest of the pass goes on"
    PUT_OFF = "put the whole pass off, for Retry-After at least"
    END = "nothing: it is there already, or its namespace ends"


@dataclass(frozen=True, slots=True)
class Rule:
    """What follows a refusal, and what a user sees of it.

    `reason` is that of the resource's `Ready` condition, and of `Stalled` where waiting may not
    help; without one the refusal is told by the log and the metric alone.
    """

    follow: Follow
    reason: str = ""
    stalled: bool = False


_LOG, _OFF, _END = Rule(Follow.WAIT), Rule(Follow.PUT_OFF), Rule(Follow.END)


def _row(child: Rule, *, status: Rule, finalizer: Rule, event: Rule) -> Mapping[Request, Rule]:
    children = dict.fromkeys((Request.CREATE, Request.APPLY, Request.DELETE), child)
    return {
        **children,
        Request.STATUS: status,
        Request.FINALIZER: finalizer,
        Request.EVENT: event,
    }


TABLE: Mapping[Answer, Mapping[Request, Rule]] = {
    Answer.EXISTS: _row(Rule(Follow.LOOK, "Refused"), status=_LOG, finalizer=_LOG, event=_END),
    Answer.STALE: _row(Rule(Follow.LOOK, "Refused"), status=_LOG, finalizer=_LOG, event=_LOG),
    Answer.HELD: _row(Rule(Follow.LOOK, "FieldConflict"), status=_LOG, finalizer=_LOG, event=_LOG),
    Answer.FORBIDDEN: _row(
        Rule(Follow.WAIT, "Forbidden", stalled=True), status=_LOG, finalizer=_LOG, event=_LOG
    ),
    Answer.ENDING: _row(_END, status=_END, finalizer=_LOG, event=_END),
    Answer.INVALID: _row(
        Rule(Follow.WAIT, "Rejected", stalled=True), status=_LOG, finalizer=_LOG, event=_LOG
    ),
    Answer.FAILED: _row(Rule(Follow.WAIT, "Refused"), status=_LOG, finalizer=_LOG, event=_LOG),
    Answer.MISSING: _row(_OFF, status=_OFF, finalizer=_LOG, event=_LOG),
    Answer.AWAY: _row(_OFF, status=_OFF, finalizer=_OFF, event=_LOG),
}
"""Answer by request. A Lease is not in it: it is asked for again at every turn of its own loop."""

_ANSWERS: Mapping[type[KubeError], Answer] = {
    errors.AlreadyExists: Answer.EXISTS,
    errors.Stale: Answer.STALE,
    errors.Conflict: Answer.HELD,
    errors.Forbidden: Answer.FORBIDDEN,
    errors.Invalid: Answer.INVALID,
    errors.Missing: Answer.MISSING,
}
_USUAL = (Answer.EXISTS, Answer.STALE, Answer.MISSING)


def answer(error: KubeError) -> Answer:
    """Return which kind of refusal an error is."""
    if isinstance(error, errors.Forbidden) and error.terminating:
        return Answer.ENDING
    if isinstance(error, errors.Unavailable) and not error.passing:
        return Answer.FAILED
    return _ANSWERS.get(type(error), Answer.AWAY)


def rule(request: Request, error: KubeError) -> Rule:
    """Return what follows when a request is refused so."""
    return TABLE[answer(error)][request]


@dataclass(frozen=True, slots=True)
class Refusal:
    """One request that was refused, and when it may be sent again.

    `mark` names the very request: another one to the same target does not wait. `problem` is what
    the resource's conditions say of it, if anything.
    """

    mark: str
    problem: Problem | None
    attempts: int
    again: datetime

    def is_due(self, now: datetime) -> bool:
        """Return whether it may be sent again; a clock that was set back does not keep it."""
        return now >= self.again or self.again - now > timedelta(seconds=LONGEST_WAIT)


class Refusals:
    """The requests of one resource that wait for their backoff, by target."""

    def __init__(self) -> None:
        self._known: dict[ChildId, Refusal] = {}

    def __bool__(self) -> bool:
        """Return whether any request waits, or is due."""
        return bool(self._known)

    def __contains__(self, target: ChildId) -> bool:
        """Return whether the last request to the target was refused."""
        return target in self._known

    @property
    def children(self) -> frozenset[ChildId]:
        """The children of which the last write or deletion was refused."""
        return frozenset(self._known) - {STATUS, EVENTS}

    def note(
        self,
        target: ChildId,
        mark: str,
        problem: Problem | None,
        now: datetime,
        *,
        draw: float,
        after: float = 0.0,
    ) -> Refusal:
        """Remember a refusal, and return it.

        The wait doubles from 1 s to 300 s as the same request is refused again and again, its
        upper half by chance (`draw`, from [0, 1)); it is never shorter than `after` seconds.
        """
        before = self._known.get(target)
        attempts = before.attempts + 1 if before and before.mark == mark else 1
        wait = min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** min(attempts - 1, 16)) * (1 + draw) / 2
        again = now + timedelta(seconds=min(LONGEST_WAIT, max(wait, after)))
        self._known[target] = refusal = Refusal(mark, problem, attempts, again)
        return refusal

    def waiting(self, target: ChildId, mark: str, now: datetime) -> Refusal | None:
        """Return the refusal for which this very request must wait, or None."""
        known = self._known.get(target)
        return known if known and known.mark == mark and not known.is_due(now) else None

    def drop(self, target: ChildId) -> None:
        """Forget a target: its request was taken."""
        self._known.pop(target, None)

    def keep(self, marks: Mapping[ChildId, str]) -> None:
        """Forget what was refused to children and is not asked for any more."""
        self._known = {
            target: known
            for target, known in self._known.items()
            if target in (STATUS, EVENTS) or marks.get(target) == known.mark
        }

    def due_in(self, now: datetime) -> timedelta | None:
        """Return how long until the first one is to be sent again, or None."""
        least = timedelta(seconds=FIRST_WAIT / 2)
        waits = (known.again - now for known in self._known.values())
        return min((max(wait, least) for wait in waits), default=None)

    def problem(self, target: ChildId) -> Problem | None:
        """Return what the conditions say of a target whose request waits."""
        known = self._known.get(target)
        return known.problem if known else None


class Backoff:
    """Has refused requests of one controller wait, counts them, and tells of each in the log."""

    def __init__(self, clock: Clock, meter: Meter) -> None:
        self._clock = clock
        self._meter = meter

    def now(self) -> datetime:
        """Return the time by which waits are reckoned."""
        return self._clock.now()

    def wait(
        self,
        known: Refusals,
        target: ChildId,
        mark: str,
        *,
        request: Request,
        ref: ObjectRef,
        error: KubeError,
        problem: Problem | None = None,
    ) -> Refusal:
        """Note a refusal and return it; the log tells of the first in a row, not of each."""
        self._meter.refused(request.value, answer(error).value)
        now = self._clock.now()
        refusal = known.note(
            target, mark, problem, now, draw=self._clock.jitter(), after=error.after
        )
        told = UNUSUAL_FROM if answer(error) in _USUAL else 1
        tell = log.warning if refusal.attempts == told else log.debug
        seconds = round((refusal.again - now).total_seconds(), 1)
        tell("refused", request=request.value, target=str(ref), error=str(error), seconds=seconds)
        return refusal
