"""Status: the status of a resource after a pass, and whether the live one equals it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from pydantic import ConfigDict, ValidationError

from hedgerow.fields import ownership
from hedgerow.fields.applyconfiguration import extract
from hedgerow.objects import digest, identity, metadata
from hedgerow.plan.conditions import conclude, stamp
from hedgerow.plan.conflicts import listed
from hedgerow_schemas.base import Condition, ContestedField, Object, Status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hedgerow.plan.conditions import Problem
    from hedgerow.plan.input import Scene

EMPTIED = ("contested", "conditions")
PASSING = ("lastTransitionTime", "since", "live")
"""What may change all the time while a status says the same."""
MOST_LISTINGS = 4
"""How often a status lists anew what it met of its own fields; then it only counts the rest."""


@dataclass(frozen=True, slots=True)
class Report:
    """A status to apply, or None when the live one says it all; and all that is contested.

    `listed` are the contested fields that the status lists.
    """

    body: Object | None
    contested: tuple[ContestedField, ...]
    listed: tuple[ContestedField, ...] = ()

    @property
    def gist(self) -> str:
        """A digest of what the status says, apart from times and from others' values.

        A value that somebody else changes again and again is told a few times, as any write that
        is repeated.
        """
        return digest(_lasting((self.body or {}).get("status")))


def said(live: Object) -> Status:
    """Return what the live status says already; one that cannot be read says nothing."""
    try:
        return Status.model_validate(live.get("status") or {})
    except ValidationError:
        return Status()


class _Kept(Status):
    """A status of any kind, whatever its other fields are."""

    model_config = ConfigDict(extra="allow")


def kept(live: Object, manager: str) -> Status:
    """Return what a manager's status says besides conditions, to say it again."""
    ours: Object = (extract(live, manager, "status") or {}).get("status") or {}
    own = ("conditions", "contested", "contestedCount", "observedGeneration")
    return _Kept.model_validate({k: v for k, v in ours.items() if k not in own})


def report(
    scene: Scene,
    live: Object,
    composed: Status,
    contested: Sequence[ContestedField],
    problems: Sequence[Problem],
    *,
    rewritten: str = "",
    unmatched: Sequence[str] = (),
    ignored: Sequence[str] = (),
    brief: bool = False,
) -> Report:
    """Fold a pass into the status that compose gave and hold it against the live one.

    Status fields that another field manager holds with another value are contested like any
    other: they are reported and left out. A `brief` status counts what is contested and lists
    nothing of it. Others may hold fields of the very list that tells of what they hold: it grows
    a few times, and what is met there at last is counted alone.
    """
    told = {(field.object, field.path): field for field in contested}
    before = said(live).contested
    shown: tuple[ContestedField, ...] = ()
    listings = 0 if brief else MOST_LISTINGS
    while True:
        everything = tuple(told.values())
        concluded = conclude(
            composed.conditions,
            everything,
            problems,
            rewritten,
            unmatched=unmatched,
            ignored=ignored,
        )
        if listings:
            shown = listed(everything, before)
            listings -= 1
        counted = composed.model_copy(
            update={"contested": shown, "contested_count": len(everything) or None}
        )
        want = _body(scene, live, counted, concluded)
        taken = ownership.judge(want, live, scene.field_manager, "status").contested
        fresh = [scene.report(scene.owner, leaf) for leaf in taken]
        fresh = [field for field in fresh if (field.object, field.path) not in told]
        if not fresh:
            break
        # To report them changes what the status says, which may meet yet another holder. This
        # ends: once the list stays, a round changes the count and the messages that tell of it,
        # and each of these is met once.
        told |= {(field.object, field.path): field for field in fresh}
    want = ownership.leave_out(want, taken)
    settled = ownership.judge(want, live, scene.field_manager, "status").settled
    return Report(None if settled else want, everything, shown)


def _lasting(value: Any) -> Any:
    if isinstance(value, dict):
        fields = cast("Object", value).items()
        return {k: _lasting(v) for k, v in fields if k not in PASSING}
    return [_lasting(v) for v in cast("list[Any]", value)] if isinstance(value, list) else value


def _body(
    scene: Scene,
    live: Object,
    composed: Status,
    concluded: Sequence[Condition],
) -> Object:
    generation: int = metadata(live).get("generation", 0)
    full = composed.model_copy(
        update={
            "observed_generation": generation,
            "conditions": stamp(concluded, said(live).conditions, generation, scene.now),
        }
    )
    # An empty granular list is owned by nobody: declaring it would never settle.
    wire = {k: v for k, v in full.wire().items() if v or k not in EMPTIED}
    return {**identity(scene.owner), "status": wire}
