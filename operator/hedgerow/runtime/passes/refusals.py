"""Refusals: the reaction to each refusal of the API server, and when the request is sent again.

A refused request is tried again: the object is read again, or the request waits for a backoff of
at most some minutes. It does not wait until "something changes", because a full quota, a broken
webhook or a missing right may be fixed without any watch event. Only in a namespace that is being
deleted nothing is tried again.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

import structlog
from msgspec import Struct

from hedgerow.kube import errors

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hedgerow.fields.refused import Place
    from hedgerow.kube.errors import KubeError
    from hedgerow.plan.conditions import Problem
    from hedgerow.plan.ledger import Ledger, LedgerEntry
    from hedgerow.plan.writes import Deletion, Write
    from hedgerow.runtime.clock import Clock
    from hedgerow.runtime.meters import Meter

log = structlog.get_logger(__name__)


UNUSUAL_FROM = 3
"""Attempts before a refusal that a stale cache often causes is logged as a warning."""


class RequestKind(Enum):
    """A kind of request, with its name in the metric."""

    CREATE = "create"
    APPLY = "apply"
    DELETE = "delete"
    STATUS = "status"


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
    UNDECODABLE = "an answer that cannot be decoded"
    UNAVAILABLE = "401, 429, 502, 503, 504, no answer"


class Reaction(Enum):
    """The reaction to a refusal."""

    REREAD = "read the object: if it has changed, plan again at once; if not, wait"
    BACK_OFF = "wait, while the rest of the pass goes on"
    PUT_OFF = "put the whole pass off, for Retry-After at least"
    END = "end the pass without a retry"


class RefusalRule(Struct, frozen=True):
    """The reaction to a refusal, and the condition that shows it to the user.

    `reason` is that of the resource's `Ready` condition, and of `Stalled` if waiting may not help.
    Without a reason the refusal is only logged and counted.
    """

    reaction: Reaction
    reason: str = ""
    stalled: bool = False


TABLE: Mapping[RefusalKind, RefusalRule] = {
    RefusalKind.EXISTS: RefusalRule(Reaction.REREAD, "Refused"),
    RefusalKind.STALE: RefusalRule(Reaction.REREAD, "Refused"),
    RefusalKind.FIELD_CONFLICT: RefusalRule(Reaction.REREAD, "FieldConflict"),
    RefusalKind.FORBIDDEN: RefusalRule(Reaction.BACK_OFF, "Forbidden", stalled=True),
    RefusalKind.TERMINATING: RefusalRule(Reaction.END),
    RefusalKind.INVALID: RefusalRule(Reaction.BACK_OFF, "Rejected", stalled=True),
    RefusalKind.FAILED: RefusalRule(Reaction.BACK_OFF, "Refused"),
    RefusalKind.MISSING: RefusalRule(Reaction.PUT_OFF),
    RefusalKind.UNDECODABLE: RefusalRule(Reaction.BACK_OFF, "Refused"),
    RefusalKind.UNAVAILABLE: RefusalRule(Reaction.PUT_OFF),
}
"""By the kind of refusal. A report that would be read again or told of just waits (`report`).

A 404 whose kind is served, and a namespace that is being deleted, end in `Reconciler._pass`. Leases
are not in it: their own loop tries again at every turn. Nor are Events: each is tried once.
"""

UNANSWERED_AGAIN = RefusalRule(Reaction.REREAD, "Refused")
"""The rule for no answer, or a 502, 503 or 504, while a child of the same kind waits for one.

If the read is answered, the server is there, and only a webhook for that kind does not answer.
"""

_KINDS: Mapping[type[KubeError], RefusalKind] = {
    errors.AlreadyExists: RefusalKind.EXISTS,
    errors.Stale: RefusalKind.STALE,
    errors.Conflict: RefusalKind.FIELD_CONFLICT,
    errors.Forbidden: RefusalKind.FORBIDDEN,
    errors.Invalid: RefusalKind.INVALID,
    errors.Missing: RefusalKind.MISSING,
    errors.Undecodable: RefusalKind.UNDECODABLE,
}
_USUAL = (RefusalKind.EXISTS, RefusalKind.STALE, RefusalKind.MISSING)


def kind_of(error: KubeError) -> RefusalKind:
    """Return the kind of refusal of an error."""
    if isinstance(error, errors.Forbidden) and error.terminating:
        return RefusalKind.TERMINATING
    if isinstance(error, errors.Unavailable) and not error.passing:
        return RefusalKind.FAILED
    return _KINDS.get(type(error), RefusalKind.UNAVAILABLE)


def rule(error: KubeError) -> RefusalRule:
    """Return the rule for a request that was refused with this error."""
    return TABLE[kind_of(error)]


def record(
    ledger: Ledger,
    step: Write | Deletion,
    error: KubeError,
    *,
    request: RequestKind,
    clock: Clock,
    meter: Meter,
    problem: Problem | None = None,
    blocked: tuple[Place, ...] = (),
) -> LedgerEntry:
    """Note a refusal and return the entry; count it, and log one in a row as a warning.

    `blocked` are the fields for which the write was refused.
    """
    kind, now = kind_of(error), clock.now()
    meter.refused(request.value, kind.value)
    pair = step.intent_digest, step.content
    entry = ledger.refuse(
        step.id,
        pair,
        problem,
        now,
        draw=clock.jitter(),
        after=error.after,
        blocked=blocked,
    )
    warned = UNUSUAL_FROM if kind in _USUAL else 1
    write = log.warning if entry.attempts == warned else log.debug
    seconds = round(((entry.again or now) - now).total_seconds(), 1)
    write("refused", request=request.value, target=str(step.ref), error=str(error), seconds=seconds)
    return entry
