"""Conditions: `Ready`, `Stalled`, `Contested` and the others that kstatus and kubectl wait read.

`Ready` is always there. `Reconciling`, `Stalled` and `Contested` are there only while true:
their absence is the healthy reading.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hedgerow.plan.conflicts import holder
from hedgerow.validation import cut
from hedgerow_schemas.base import Condition, ContestedField

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

LONGEST_MESSAGE = 1024
LONGEST_REMARK = 300
UNMATCHED = "; no field there is meant by "
"""What comes before the terms that mean nothing, in a message."""
REWRITTEN = "RewrittenByAdmission"
IGNORED = "AnnotationIgnored"


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a pass could not do all that was declared.

    `stalled` says that waiting will not help: someone has to change something.
    """

    reason: str
    message: str
    stalled: bool = True


def condition(kind: str, status: bool, reason: str, message: str = "") -> Condition:
    """Return a condition as compose sees it."""
    return Condition(
        type=kind, status="True" if status else "False", reason=reason, message=message
    )


def ready(status: bool, reason: str, message: str = "") -> Condition:
    """Return the `Ready` condition as compose sees it."""
    return condition("Ready", status, reason, message)


def stalled(reason: str, message: str) -> tuple[Condition, Condition]:
    """Return what compose concludes from a bad spec: not ready, and waiting will not help."""
    return condition("Stalled", True, reason, message), ready(False, reason, message)


def conclude(
    composed: Iterable[Condition],
    contested: Sequence[ContestedField],
    problems: Sequence[Problem],
    rewritten: str = "",
    *,
    unmatched: Sequence[str] = (),
    ignored: Sequence[str] = (),
) -> tuple[Condition, ...]:
    """Fold what the pass met into what compose concluded.

    Ready stays True only when nothing is contested and no problem was met. What is not ready,
    not contested and not stalled is reconciling. What admission rewrote is told, and that is all;
    so are the terms without effect, and in the message of Ready those that mean nothing. No
    message is longer than 1024 characters.
    """
    conditions = {"Ready": ready(True, "Settled", "all is as declared")}
    conditions |= {given.type: given for given in composed}
    if contested:
        message = _contested_message(contested)
        conditions["Contested"] = condition("Contested", True, "FieldConflict", message)
        conditions["Ready"] = ready(False, "FieldConflict", message)
    if problems:
        worst = next((p for p in problems if p.stalled), problems[0])
        message = "; ".join(dict.fromkeys(p.message for p in problems))
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
        told = (UNMATCHED + ", ".join(unmatched))[:LONGEST_REMARK]
        message = verdict.message[: LONGEST_MESSAGE - LONGEST_REMARK] + told
        conditions["Ready"] = verdict.model_copy(update={"message": message})
    return tuple(map(_bounded, conditions.values()))


def _bounded(condition: Condition) -> Condition:
    if len(condition.message) <= LONGEST_MESSAGE:
        return condition
    return condition.model_copy(update={"message": cut(condition.message, LONGEST_MESSAGE)})


def stamp(
    conditions: Iterable[Condition],
    previous: Iterable[Condition],
    generation: int,
    now: datetime,
) -> tuple[Condition, ...]:
    """Return every condition its observedGeneration and the time its status last changed."""
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
    """Name the first contested field; values are not told here, as they may change all the time."""
    first = contested[0]
    held = f"is held by {holder(first)}" if first.manager else "is held by nobody, and left so"
    more = f" (and {len(contested) - 1} more)" if len(contested) > 1 else ""
    path = cut(first.path, LONGEST_MESSAGE // 2)
    return f"{first.object}: {path} {held}{more}"
