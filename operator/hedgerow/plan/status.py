"""Status: the status of a resource after a pass, and whether the live one equals it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from msgspec import Struct
from msgspec.structs import replace
from pydantic import ConfigDict, ValidationError

from hedgerow.fields import ownership
from hedgerow.fields.applyconfiguration import extract
from hedgerow.fields.redaction import is_secret
from hedgerow.objects import ObjectRef, annotation, identity, metadata
from hedgerow.plan import status_annotation
from hedgerow.plan.children import plan_own
from hedgerow.plan.conditions import conclude, stamp
from hedgerow.plan.conflict_messages import listed
from hedgerow.plan.ledger import NO_ENTRY, WITHOUT
from hedgerow.plan.writes import STATUS, Write, checksum
from hedgerow_schemas.base import AdmittedChild, ContestedField, Model, Object, Status

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hedgerow.contract import Controller
    from hedgerow.plan.children import Contributions, Plan
    from hedgerow.plan.conditions import Problem
    from hedgerow.plan.input import PlanInput
    from hedgerow.plan.ledger import LedgerEntry

M = TypeVar("M", bound=Model)

EMPTIED = ("contested", "conditions")
PASSING = ("lastTransitionTime", "since", "live")
"""Fields that may change often without changing what a status means."""
MOST_ADMITTED: Final = 50
_TIME: Final = "f:lastTransitionTime"


class StatusReport(Struct, frozen=True):
    """The status or annotation to write, if any, and all contested fields.

    The write is None if the live one is the same, or if it cannot be written. `is_news`: the live
    one differs. `listed` are the contested fields that it lists. `entry` is that
    of a status that says all.
    """

    write: Write | None
    contested: tuple[ContestedField, ...]
    listed: tuple[ContestedField, ...] = ()
    is_news: bool = False
    entry: LedgerEntry | None = None


def reader_of(controller: Controller[Any]) -> Callable[[Object], Status]:
    """Return the function that reads a resource's own report: its status, or its annotation.

    Unreadable fields count as absent. A Namespace has no report.
    """
    if controller.is_custom:
        return said
    return status_annotation.said if controller.writes_resource else lambda _live: Status()


def said(live: Object) -> Status:
    """Return the live status of a custom resource, without the fields that cannot be read."""
    return read_resource(_Reporting, {"status": live.get("status") or {}}).status


class _Reporting(Model):
    """A resource of any kind, of which only the common part of the status matters."""

    status: Status


def read_resource(model: type[M], live: Object) -> M:
    """Return a resource as its model; raises ValidationError, but not because of the status.

    Only the unreadable parts of the status are left out: a field, or a single condition or
    contested field. The rest may be the only record.
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
    own = ("conditions", "contested", "contestedCount", "observedGeneration", "admitted")
    return _Kept.model_validate({k: v for k, v in ours.items() if k not in own})


def report(
    plan_input: PlanInput,
    live: Object,
    composed: Status,
    plan: Plan,
    problems: Sequence[Problem],
    *,
    rewritten: str = "",
) -> StatusReport:
    """Return compose's status with the results of a pass, compared with the live one.

    Status fields that another field manager holds with another value are contested like any other:
    they are reported and left out. Those that only the report itself meets are left out, too,
    without being reported, and so is the time of a condition: while others hold its status, it
    would be another time at each look.
    """

    def wanted(everything: Sequence[ContestedField]) -> Object:
        concluded = conclude(
            composed.conditions,
            everything,
            problems,
            rewritten,
            unmatched=plan.unmatched,
            ignored=plan.ignored,
            before=before.conditions,
        )
        full = composed.model_copy(
            update={
                "contested": listed(everything, before.contested),
                "contested_count": len(everything) or None,
                "admitted": admitted or None,
                "observed_generation": generation,
                "conditions": stamp(concluded, before.conditions, generation, plan_input.now),
            }
        )
        # Nobody can own an empty granular list: declaring it would never settle.
        wire = {name: value for name, value in full.wire().items() if value or name not in EMPTIED}
        return {**identity(plan_input.resource), "status": wire}

    def judged(want: Object) -> ownership.Verdict:
        return ownership.judge(want, live, plan_input.field_manager, "status")

    before = plan_input.before
    generation: int = metadata(live).get("generation", 0)
    version: str = metadata(live).get("resourceVersion", "")
    contested = {(field.object, field.path): field for field in plan.contested}
    admitted = _admitted(plan) if plan.judged else before.admitted
    everything = tuple(contested.values())
    shown = listed(everything, before.contested)
    want, entry = wanted(everything), plan_input.entries.get(STATUS, NO_ENTRY)
    if not everything and entry.is_settled(_intent(want), version):
        return StatusReport(None, (), entry=entry)
    verdict = judged(want)
    if verdict.contested:
        lasting = (leaf for leaf in verdict.contested if leaf.field_path[-1] != _TIME)
        own = (plan_input.report(plan_input.resource, leaf) for leaf in lasting)
        contested |= {(field.object, field.path): field for field in own}
        everything = tuple(contested.values())
        want = wanted(everything)
        verdict = judged(want)
        shown = listed(everything, before.contested)
    is_complete = not verdict.contested
    if verdict.contested:
        want = ownership.leave_out(want, verdict.contested)
        verdict = judged(want)
    if verdict.settled:
        # The values of contested fields may change while nothing else does.
        entry = entry.judged(_intent(want), "" if everything else version)
        return StatusReport(None, everything, shown, entry=entry)
    write = _write(plan_input.resource, version, want, is_complete=is_complete)
    return StatusReport(write, everything, shown, is_news=True)


def _admitted(plan: Plan) -> tuple[AdmittedChild, ...]:
    """Return digests of children as admission changed them, for the status; none of a Secret.

    Whoever knows a digest of a Secret can guess its contents.
    """
    digests = {
        f"{target.kind}/{target.name}": entry.admitted
        for target, entry in plan.judged.items()
        if entry.admitted and not is_secret(target.kind) and WITHOUT not in target.name
    }
    first = sorted(digests.items())[:MOST_ADMITTED]
    return tuple(AdmittedChild(object=name, digest=made) for name, made in first)


def _write(resource: ObjectRef, version: str, want: Object, *, is_complete: bool) -> Write:
    """Return the write of a status for exactly this version of the resource.

    For a custom resource's status the server ignores a wrong uid (seen on 1.36). Only the version
    keeps the write from a new resource with the same name.
    """
    body = {**want, "metadata": {**want["metadata"], "resourceVersion": version}}
    return Write(
        resource,
        body,
        create=False,
        content=version,
        declared=_intent(want),
        is_complete=is_complete,
        subresource="status",
        target=STATUS,
    )


def _intent(want: Object) -> str:
    """Return a digest of a status without times and without other managers' values.

    They change although the status means the same.
    """
    return checksum(_lasting(want.get("status")))


def annotation_report(
    plan_input: PlanInput,
    live: Object,
    composed: Status,
    plan: Plan,
    problems: Sequence[Problem],
    *,
    rewritten: str = "",
    contributions: Contributions | None = None,
) -> StatusReport:
    """Return the annotation to write on a built-in resource.

    Fields that are listed already come first, as in a status. The annotation and the
    `contributions` to the resource are one apply. If these are None, nothing is written: the apply
    would give them back.
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
    text = status_annotation.text(concluded, shown, len(contested))
    writes = () if contributions is None else plan_own(plan_input, contributions, text).writes
    is_news = text != annotation(live, status_annotation.STATUS_ANNOTATION)
    # The contribution without the annotation is tried, and settled, by itself.
    write = replace(writes[0], target=STATUS) if writes else None
    return StatusReport(write, contested, shown, is_news=is_news)


def user_generation(controller: Controller[Any], live: Object) -> int | None:
    """Return the generation that only users change; None if others change it too.

    That of a built-in resource also changes when we contribute to it, and when others undo that.
    """
    return metadata(live).get("generation", 0) if controller.is_custom else None


def _lasting(value: Any) -> Any:
    if isinstance(value, dict):
        fields = cast("Object", value).items()
        return {k: _lasting(v) for k, v in fields if k not in PASSING}
    return [_lasting(v) for v in cast("list[Any]", value)] if isinstance(value, list) else value
