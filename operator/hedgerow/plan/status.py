"""Status: the status of a resource after a pass, and whether the live one equals it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from msgspec import Struct
from pydantic import ConfigDict, ValidationError

from hedgerow.fields import ownership
from hedgerow.fields.applyconfiguration import extract
from hedgerow.objects import identity, metadata
from hedgerow.plan import status_annotation
from hedgerow.plan.conditions import conclude, stamp
from hedgerow.plan.conflict_messages import listed
from hedgerow.plan.writes import checksum
from hedgerow_schemas.base import ContestedField, Model, Object, Status

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hedgerow.contract import Controller
    from hedgerow.plan.conditions import Problem
    from hedgerow.plan.input import PlanInput
    from hedgerow.plan.plan import Plan

M = TypeVar("M", bound=Model)

EMPTIED = ("contested", "conditions")
PASSING = ("lastTransitionTime", "since", "live")
"""Fields that may change often without changing what a status means."""
_TIME: Final = "f:lastTransitionTime"


class StatusReport(Struct, frozen=True):
    """The status to apply, or None if the live one is up to date, and all contested fields.

    `listed` are the contested fields that the status lists.
    """

    body: Object | None
    contested: tuple[ContestedField, ...]
    listed: tuple[ContestedField, ...] = ()

    @property
    def intent_digest(self) -> str:
        """A digest of the status without times and without other managers' values.

        If somebody else keeps changing a value, the status writes count as repeated writes of the
        same content, which are limited.
        """
        return checksum(_lasting((self.body or {}).get("status")))


def reader_of(controller: Controller[Any]) -> Callable[[Object], Status]:
    """Return how to read what a resource of a controller says: its status, or its annotation.

    What of it cannot be read is as if it were absent. A Namespace says nothing.
    """
    if controller.is_custom:
        return said
    return status_annotation.said if controller.writes_resource else _nothing


def _nothing(_live: Object) -> Status:
    return Status()


def said(live: Object) -> Status:
    """Return the live status of a custom resource, without the fields that cannot be read."""
    return read(_Reporting, {"status": live.get("status") or {}}).status


class _Reporting(Model):
    """A resource of any kind, of which only the common part of the status matters."""

    status: Status


def read(model: type[M], live: Object) -> M:
    """Return a resource as its model; raises ValidationError, but not because of the status.

    Only what cannot be read of the status is left out: a field, or a single condition or contested
    field. The rest may be the only record.
    """
    try:
        return model.model_validate(live)
    except ValidationError as error:
        places = [item["loc"] for item in error.errors()]
        if any(place[:1] != ("status",) for place in places):
            raise
        below = [place[1:3] for place in places if place[1:]]
        items = {place for place in below if place[0] in EMPTIED and place[1:]}
        bad = {place[0] for place in below if place not in items}
        status: Object = live["status"] if bad or items else {}
        readable = {name: value for name, value in status.items() if name not in bad}
        for name in readable.keys() & EMPTIED:
            kept_items = (item for n, item in enumerate(readable[name]) if (name, n) not in items)
            readable[name] = tuple(kept_items)
        return model.model_validate({**live, "status": readable})


class _Kept(Status):
    """A status of any kind, with any other fields."""

    model_config = ConfigDict(extra="allow")


def kept(live: Object, manager: str) -> Status:
    """Return the status fields that a manager declared, without conditions and conflicts."""
    ours: Object = (extract(live, manager, "status") or {}).get("status") or {}
    own = ("conditions", "contested", "contestedCount", "observedGeneration")
    return _Kept.model_validate({k: v for k, v in ours.items() if k not in own})


def report(
    plan_input: PlanInput,
    live: Object,
    composed: Status,
    contested: Sequence[ContestedField],
    problems: Sequence[Problem],
    *,
    rewritten: str = "",
    unmatched: Sequence[str] = (),
    ignored: Sequence[str] = (),
    shortened: bool = False,
) -> StatusReport:
    """Return compose's status with the results of a pass, compared with the live one.

    Status fields that another field manager holds with another value are contested like any other:
    they are reported and left out. Those that only the report itself meets are left out, too,
    without being reported, and so is the time of a condition: while others hold its status, it
    would be another time at each look. A `shortened` status only counts the contested fields and
    lists none.
    """

    def judged(everything: Sequence[ContestedField]) -> tuple[Object, ownership.Verdict]:
        concluded = conclude(
            composed.conditions,
            everything,
            problems,
            rewritten,
            unmatched=unmatched,
            ignored=ignored,
            before=before.conditions,
        )
        full = composed.model_copy(
            update={
                "contested": () if shortened else listed(everything, before.contested),
                "contested_count": len(everything) or None,
                "observed_generation": generation,
                "conditions": stamp(concluded, before.conditions, generation, plan_input.now),
            }
        )
        # Nobody can own an empty granular list: declaring it would never settle.
        wire = {name: value for name, value in full.wire().items() if value or name not in EMPTIED}
        want = {**identity(plan_input.owner), "status": wire}
        return want, ownership.judge(want, live, plan_input.field_manager, "status")

    before = plan_input.before
    generation: int = metadata(live).get("generation", 0)
    told = {(field.object, field.path): field for field in contested}
    everything = tuple(told.values())
    want, verdict = judged(everything)
    if verdict.contested:
        lasting = (leaf for leaf in verdict.contested if leaf.field_path[-1] != _TIME)
        own = (plan_input.report(plan_input.owner, leaf) for leaf in lasting)
        told |= {(field.object, field.path): field for field in own}
        everything = tuple(told.values())
        want, verdict = judged(everything)
    if verdict.contested:
        want = ownership.leave_out(want, verdict.contested)
        verdict = ownership.judge(want, live, plan_input.field_manager, "status")
    shown = () if shortened else listed(everything, before.contested)
    return StatusReport(None if verdict.settled else want, everything, shown)


def annotation_report(
    live: Object,
    composed: Status,
    plan: Plan,
    problems: Sequence[Problem],
    rewritten: str = "",
) -> tuple[str, StatusReport]:
    """Return the annotation of a built-in resource after a pass, and the report of its conflicts.

    Like a status it lists the fields first that are listed already.
    """
    contested, before = plan.contested, status_annotation.said(live)
    concluded = conclude(
        composed.conditions,
        contested,
        problems,
        rewritten,
        unmatched=plan.unmatched,
        ignored=plan.ignored,
        before=before.conditions,
    )
    shown = listed(contested, before.contested)
    return status_annotation.text(concluded, shown, len(contested)), StatusReport(
        None, contested, shown
    )


def _lasting(value: Any) -> Any:
    if isinstance(value, dict):
        fields = cast("Object", value).items()
        return {k: _lasting(v) for k, v in fields if k not in PASSING}
    return [_lasting(v) for v in cast("list[Any]", value)] if isinstance(value, list) else value
