"""Conditions: `Ready`, `Stalled`, `Contested` and the others that kstatus and kubectl wait read.

`Ready` is always present. `Reconciling`, `Stalled` and `Contested` are present only while true: a
healthy resource does not have them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from hedgerow.plan.conflict_messages import holder
from hedgerow.texts import printable
from hedgerow_schemas.base import Condition, ContestedField

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from hedgerow.objects import ChildId

LONGEST_MESSAGE = 1024
LONGEST_REMARK = 300
UNMATCHED = "; no field matches "
"""Text in a message before the policy entries that match nothing."""
_ID: Final = re.compile(
    r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"
    r"|(?:request|trace|correlation)[ _-]?id[\"']?[:= ]{1,2}+[\"']?[\w.-]++"
    r"|\b(?=[a-z]{0,31}+[0-9])[0-9a-z]{16,32}+\b"
    r"|[0-9a-f-]{0,36}+ ?… ?[0-9a-f-]{0,36}+",  # an id that is cut
    re.IGNORECASE,
)
"""What a server or a webhook may make anew for each answer: UUIDs, request ids, long random words.

The digest of an image is longer, and the name of an object rarely has a word of 16 letters with a
digit in it.
"""
_COMMAND: Final = re.compile(r"`kubectl [^`]*+`")
TAKEN: Final = "exists and is not controlled by"
"""Between an object and the resource that has a child of this name, in messages."""
REWRITTEN = "RewrittenByAdmission"
IGNORED = "AnnotationIgnored"


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a pass could not do all that was declared.

    `stalled`: waiting does not help, somebody has to change something.
    """

    reason: str
    message: str
    stalled: bool = True
    about: ChildId | None = field(default=None, compare=False)
    """Kind and name of the child that it is about, if it is about one."""


def condition(kind: str, status: bool, reason: str, message: str = "") -> Condition:
    """Return a condition, still without observedGeneration and lastTransitionTime."""
    return Condition(
        type=kind, status="True" if status else "False", reason=reason, message=message
    )


def ready(status: bool, reason: str, message: str = "") -> Condition:
    """Return a `Ready` condition, still without observedGeneration and lastTransitionTime."""
    return condition("Ready", status, reason, message)


def stalled(reason: str, message: str) -> tuple[Condition, Condition]:
    """Return the conditions of a bad spec: `Stalled`, and not `Ready`."""
    return condition("Stalled", True, reason, message), ready(False, reason, message)


def unready(lack: str, stuck: str = "", lasting: str = "") -> tuple[Condition, ...]:
    """Return the conditions of a workload that lacks something.

    That is `Ready` with the reason `Unavailable`. If waiting does not help, `stuck` is the reason
    why, and the resource is `Stalled`. Each other message of `Stalled` is another Event, so that it
    says what is `lasting`, if that is given: `lack` without what changes while nobody acts.
    """
    if not stuck:
        return (ready(False, "Unavailable", lack),)
    return condition("Stalled", True, stuck, lasting or lack), ready(False, stuck, lack)


def conclude(
    composed: Iterable[Condition],
    contested: Sequence[ContestedField],
    problems: Sequence[Problem],
    rewritten: str = "",
    *,
    unmatched: Sequence[str] = (),
    ignored: Sequence[str] = (),
    before: Iterable[Condition] = (),
) -> tuple[Condition, ...]:
    """Return compose's conditions, adapted to what the pass found.

    `Ready` stays True only if nothing is contested and there was no problem. A resource that is
    not ready, not contested and not stalled is `Reconciling`. Fields that admission rewrote, and
    policy entries without effect, get conditions of their own that do not change `Ready`. Policy
    entries that match nothing are named in the message of `Ready`. Each message is one printable
    line of at most 1024 characters. A problem that differs from one shown `before` in ids alone
    keeps that text.
    """
    conditions = {"Ready": ready(True, "Settled", "every field is as declared")}
    conditions |= {given.type: given for given in composed}
    if contested:
        message = _contested_message(contested)
        conditions["Contested"] = condition("Contested", True, "FieldConflict", message)
        conditions["Ready"] = ready(False, "FieldConflict", message)
    if problems:
        worst = next((p for p in problems if p.stalled), problems[0])
        message = "; ".join(dict.fromkeys(p.message for p in problems))
        message = _first(worst.reason, message, before)
        conditions["Ready"] = ready(False, worst.reason, message)
        if worst.stalled:
            conditions["Stalled"] = condition("Stalled", True, worst.reason, message)
    if rewritten:
        conditions[REWRITTEN] = condition(REWRITTEN, True, "ChangedOnTheWay", rewritten)
    if ignored:
        conditions[IGNORED] = condition(IGNORED, True, "NoEffect", "; ".join(ignored))
    verdict = conditions["Ready"]
    if not (verdict.status == "True" or contested or "Stalled" in conditions):
        conditions["Reconciling"] = condition("Reconciling", True, verdict.reason, verdict.message)
    if unmatched:
        remark = (UNMATCHED + ", ".join(unmatched))[:LONGEST_REMARK]
        message = verdict.message[: LONGEST_MESSAGE - LONGEST_REMARK] + remark
        conditions["Ready"] = verdict.model_copy(update={"message": message})
    return tuple(map(_bounded, conditions.values()))


def by_admission(changes: Sequence[str]) -> str:
    """Return the message about applied fields that admission changed; empty without changes."""
    if not changes:
        return ""
    who = "mutating admission, or by the API server itself"
    return f"{'; '.join(changes)}, by {who}: declare the value that it stores"


def _first(reason: str, message: str, before: Iterable[Condition]) -> str:
    """Return the message that was shown first: a server may make one of each attempt's own ids.

    The ids in a command are the right ones for now.
    """
    text = printable(message, LONGEST_MESSAGE)
    lasting, commands = _ID.sub("", text), _COMMAND.findall(text)
    shown = (old.message for old in before if old.reason == reason)
    alike = (former for former in shown if _ID.sub("", former) == lasting)
    return next((former for former in alike if _COMMAND.findall(former) == commands), message)


def _bounded(condition: Condition) -> Condition:
    message = printable(condition.message, LONGEST_MESSAGE)
    if message == condition.message:
        return condition
    return condition.model_copy(update={"message": message})


def stamp(
    conditions: Iterable[Condition],
    previous: Iterable[Condition],
    generation: int,
    now: datetime,
) -> tuple[Condition, ...]:
    """Return the conditions with observedGeneration and the time when their status last changed."""
    before = {condition.type: condition for condition in previous}

    def since(condition: Condition) -> datetime:
        old = before.get(condition.type)
        same = old is not None and old.status == condition.status
        return old.last_transition_time or now if old is not None and same else now

    return tuple(
        condition.model_copy(
            update={
                "last_transition_time": since(condition).replace(microsecond=0),
                "observed_generation": generation,
            }
        )
        for condition in conditions
    )


def _contested_message(contested: Sequence[ContestedField]) -> str:
    """Return a message that names the first contested field, without values that often change."""
    first = contested[0]
    held = (
        f"is held by {holder(first)}" if first.manager else "is held by nobody; it is left as it is"
    )
    more = f" (and {len(contested) - 1} more)" if len(contested) > 1 else ""
    path = printable(first.path, LONGEST_MESSAGE // 2)
    return f"{first.object}: {path} {held}{more}"
