"""Refusals: what follows when the API server refuses a request, and when it is sent again.

A refused request is tried again: the object is read again, or the request waits for a backoff of
at most some minutes. It does not wait until "something changes", because a full quota, a broken
webhook or a missing right may be fixed without any watch event. Only in a namespace that is being
deleted nothing is tried again.
"""

from __future__ import annotations

from datetime import timedelta
from enum import Enum
from typing import TYPE_CHECKING

import structlog
from msgspec import Struct

from hedgerow.kube import errors
from hedgerow.kube.retry import backoff
from hedgerow.objects import ChildId

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from hedgerow.kube.errors import KubeError
    from hedgerow.objects import ObjectRef
    from hedgerow.plan.conditions import Problem
    from hedgerow.runtime.clock import Clock
    from hedgerow.runtime.metrics import Meter

FIRST_WAIT = 1.0
"""Seconds before a refused request is sent again; they double each time."""
LONGEST_WAIT = 300.0
"""Seconds: the longest backoff, and the longest Retry-After that is respected."""

STATUS = ChildId("", "status")


log = structlog.get_logger(__name__)


UNUSUAL_FROM = 3
"""Attempts before a refusal that a stale cache often causes is logged as a warning."""


class RequestKind(Enum):
    """A kind of request, with its name in the table and the metric."""

    CREATE = "create"
    APPLY = "apply"
    DELETE = "delete"
    STATUS = "status"
    RELEASE = "release"


class RefusalKind(Enum):
    """A kind of refusal, with its name in the table and the metric."""

    EXISTS = "409 AlreadyExists"
    STALE = "409 Conflict"
    FIELD_CONFLICT = "409 field managers"
    FORBIDDEN = "403"
    TERMINATING = "403 NamespaceTerminating"
    INVALID = "400, 405, 413, 415, 422"
    FAILED = "500"
    MISSING = "404"
    UNAVAILABLE = "401, 429, 502, 503, 504, no answer"


class Reaction(Enum):
    """What follows a refusal."""

    REREAD = "read the object; if it is not as cached, plan again at once, else wait"
    BACK_OFF = "wait, while the rest of the pass goes on"
    PUT_OFF = "put the whole pass off, for Retry-After at least"
    END = "end the pass without a retry"


class RefusalRule(Struct, frozen=True):
    """What follows a refusal, and what a user sees of it.

    `reason` is that of the resource's `Ready` condition, and of `Stalled` if waiting may not help.
    Without a reason the refusal is only logged and counted.
    """

    reaction: Reaction
    reason: str = ""
    stalled: bool = False


_LOG, _OFF, _END = (
    RefusalRule(Reaction.BACK_OFF),
    RefusalRule(Reaction.PUT_OFF),
    RefusalRule(Reaction.END),
)


def _row(
    child: RefusalRule, *, status: RefusalRule, release: RefusalRule
) -> Mapping[RequestKind, RefusalRule]:
    children = dict.fromkeys((RequestKind.CREATE, RequestKind.APPLY, RequestKind.DELETE), child)
    return {
        **children,
        RequestKind.STATUS: status,
        RequestKind.RELEASE: release,
    }


TABLE: Mapping[RefusalKind, Mapping[RequestKind, RefusalRule]] = {
    RefusalKind.EXISTS: _row(RefusalRule(Reaction.REREAD, "Refused"), status=_LOG, release=_LOG),
    RefusalKind.STALE: _row(RefusalRule(Reaction.REREAD, "Refused"), status=_LOG, release=_LOG),
    RefusalKind.FIELD_CONFLICT: _row(
        RefusalRule(Reaction.REREAD, "FieldConflict"), status=_LOG, release=_LOG
    ),
    RefusalKind.FORBIDDEN: _row(
        RefusalRule(Reaction.BACK_OFF, "Forbidden", stalled=True), status=_LOG, release=_LOG
    ),
    RefusalKind.TERMINATING: _row(_END, status=_END, release=_LOG),
    RefusalKind.INVALID: _row(
        RefusalRule(Reaction.BACK_OFF, "Rejected", stalled=True), status=_LOG, release=_LOG
    ),
    RefusalKind.FAILED: _row(RefusalRule(Reaction.BACK_OFF, "Refused"), status=_LOG, release=_LOG),
    RefusalKind.MISSING: _row(_OFF, status=_OFF, release=_LOG),
    RefusalKind.UNAVAILABLE: _row(_OFF, status=_OFF, release=_OFF),
}
"""By the kind of refusal and of request.

A 404 whose kind is served, and a namespace that is being deleted, end in `Reconciler._pass`. Leases
are not in it: their own loop tries again at every turn. Nor are Events: each is tried once.
"""

_KINDS: Mapping[type[KubeError], RefusalKind] = {
    errors.AlreadyExists: RefusalKind.EXISTS,
    errors.Stale: RefusalKind.STALE,
    errors.Conflict: RefusalKind.FIELD_CONFLICT,
    errors.Forbidden: RefusalKind.FORBIDDEN,
    errors.Invalid: RefusalKind.INVALID,
    errors.Missing: RefusalKind.MISSING,
}
_USUAL = (RefusalKind.EXISTS, RefusalKind.STALE, RefusalKind.MISSING)


def kind_of(error: KubeError) -> RefusalKind:
    """Return the kind of refusal of an error."""
    if isinstance(error, errors.Forbidden) and error.terminating:
        return RefusalKind.TERMINATING
    if isinstance(error, errors.Unavailable) and not error.passing:
        return RefusalKind.FAILED
    return _KINDS.get(type(error), RefusalKind.UNAVAILABLE)


def rule(request: RequestKind, error: KubeError) -> RefusalRule:
    """Return what follows when a request is refused with this error."""
    return TABLE[kind_of(error)][request]


class Refusal(Struct, frozen=True):
    """One request that was refused, and when it may be sent again.

    `fingerprint` identifies the exact request: a different one to the same target does not wait.
    `problem` is what the resource's conditions report, if anything.
    """

    fingerprint: str
    problem: Problem | None
    attempts: int
    again: datetime

    def may_be_sent_again(self, now: datetime) -> bool:
        """Return whether it may be sent again, also after the clock was set back."""
        return now >= self.again or self.again - now > timedelta(seconds=LONGEST_WAIT)


class Refusals:
    """The requests of one resource that wait for their backoff, by target."""

    def __init__(self) -> None:
        self._known: dict[ChildId, Refusal] = {}

    def __bool__(self) -> bool:
        """Return whether any request was refused."""
        return bool(self._known)

    def __contains__(self, target: ChildId) -> bool:
        """Return whether the last request to the target was refused."""
        return target in self._known

    @property
    def children(self) -> frozenset[ChildId]:
        """The children whose last write or deletion was refused."""
        return frozenset(self._known) - {STATUS}

    def record(
        self,
        target: ChildId,
        fingerprint: str,
        problem: Problem | None,
        now: datetime,
        *,
        draw: float,
        after: float = 0.0,
    ) -> Refusal:
        """Remember a refusal, and return it.

        If the same request is refused again, the wait doubles, from 1 s to 300 s. Its upper half is
        random (`draw`, from [0, 1)). It is at least `after` seconds, but never more than 300.
        """
        before = self._known.get(target)
        attempts = before.attempts + 1 if before and before.fingerprint == fingerprint else 1
        wait = backoff(attempts, draw, first=FIRST_WAIT, longest=LONGEST_WAIT)
        again = now + timedelta(seconds=min(LONGEST_WAIT, max(wait, after)))
        self._known[target] = refusal = Refusal(fingerprint, problem, attempts, again)
        return refusal

    def waiting(self, target: ChildId, fingerprint: str, now: datetime) -> Refusal | None:
        """Return the refusal because of which this exact request must wait, or None."""
        known = self._known.get(target)
        return (
            known
            if known and known.fingerprint == fingerprint and not known.may_be_sent_again(now)
            else None
        )

    def clear(self, target: ChildId) -> None:
        """Forget a target's refusal: its request was accepted, or is not sent any more."""
        self._known.pop(target, None)

    def keep(self, fingerprints: Mapping[ChildId, str]) -> None:
        """Forget the refusals of children whose requests are not among `fingerprints`."""
        self._known = {
            target: known
            for target, known in self._known.items()
            if target == STATUS or fingerprints.get(target) == known.fingerprint
        }

    def due_in(self, now: datetime) -> timedelta | None:
        """Return the time until the first request is sent again, or None."""
        least = timedelta(seconds=FIRST_WAIT / 2)
        waits = (known.again - now for known in self._known.values())
        return min((max(wait, least) for wait in waits), default=None)

    def problem(self, target: ChildId) -> Problem | None:
        """Return what the conditions report about a target's refusal, or None."""
        known = self._known.get(target)
        return known.problem if known else None


class RefusalLog:
    """Records the refused requests of one controller, and counts and logs them."""

    def __init__(self, clock: Clock, meter: Meter) -> None:
        self._clock = clock
        self._meter = meter

    def now(self) -> datetime:
        """Return the current time, by which waits are measured."""
        return self._clock.now()

    def record(
        self,
        known: Refusals,
        target: ChildId,
        fingerprint: str,
        *,
        request: RequestKind,
        ref: ObjectRef,
        error: KubeError,
        problem: Problem | None = None,
    ) -> Refusal:
        """Remember a refusal and return it; only one in a row is logged as a warning."""
        self._meter.refused(request.value, kind_of(error).value)
        now = self._clock.now()
        refusal = known.record(
            target, fingerprint, problem, now, draw=self._clock.jitter(), after=error.after
        )
        warned = UNUSUAL_FROM if kind_of(error) in _USUAL else 1
        write = log.warning if refusal.attempts == warned else log.debug
        seconds = round((refusal.again - now).total_seconds(), 1)
        write("refused", request=request.value, target=str(ref), error=str(error), seconds=seconds)
        return refusal
