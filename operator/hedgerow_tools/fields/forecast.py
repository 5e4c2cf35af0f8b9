"""Forecast: the changes that an operator would make to a resource and its children."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from hedgerow.contract import Apply
from hedgerow.fields import ownership
from hedgerow.fields.paths import is_list, is_map
from hedgerow.objects import ChildId
from hedgerow.plan.children import ChildPlanner
from hedgerow.plan.input import contested_field
from hedgerow_schemas.base import View, instant
from hedgerow_tools.fields.identity import ObjectIdentity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from hedgerow.contract import Desired
    from hedgerow.fields.managed_fields import Holder
    from hedgerow.fields.ownership import Leaf
    from hedgerow.kube.errors import KubeError
    from hedgerow.objects import ObjectRef
    from hedgerow.plan.input import PlanInput
    from hedgerow.plan.remedies import Remedy
    from hedgerow_schemas.base import Condition, ContestedField, Object
    from hedgerow_tools.fields.diff import Line
    from hedgerow_tools.fields.selection import Dispute

T = TypeVar("T")
PlannedAction = Literal["created", "configured", "deleted", "unchanged", "refused", "unknown"]
PlanVerdict = Literal["nothing", "changes", "conflicts", "partial", "failed"]
_OF_EVERY_STATUS: Final = (
    *("conditions", "contested", "contestedCount", "observedGeneration", "admitted"),
)
_RANKS: Final[tuple[PlanVerdict, ...]] = (
    *("failed", "partial", "conflicts", "changes", "nothing"),
)


def held_by(target: ObjectRef, leaf: Leaf, holder: Holder | None = None) -> ContestedField:
    """Return a leaf that would stay as it is, or be taken, with a holder, by default its first."""
    holder = holder or leaf.holders[0]
    return contested_field(target, leaf, holder, since=instant(holder.time))


def details(error: KubeError) -> tuple[str, ...]:
    """Return every cause with its field, uncut and sorted; the message if there is no cause."""
    lines = {
        c.message if c.field in ("", "<nil>") else f"{c.field}: {c.message}"
        for c in error.causes
        if c.message
    }
    return tuple(sorted(lines)) or (str(error.status.get("message", "")) or error.message,)


class WriteRefusal(Struct, frozen=True):
    """Why the server would refuse a write."""

    object: str
    causes: tuple[str, ...]

    @property
    def lines(self) -> tuple[str, ...]:
        """The causes; one of several lines, as a webhook may write it, is as many.

        The others are marked, with nothing at which a line may be broken: whoever wrote them shall
        not forge a line of ours.
        """
        parted = (cause.strip().split("\n") for cause in self.causes)
        return tuple(
            line for first, *more in parted for line in (first, *(f"|{text}" for text in more))
        )


class ObjectForecast(
    ObjectIdentity, frozen=True, kw_only=True, omit_defaults=False, rename={"lines": "fields"}
):
    """The forecast for one object.

    `merged` says why the server was not asked. `forced` are the paths that would be taken by force.
    `warnings` are those of the server.
    """

    action: PlannedAction
    merged: str | None = None
    forced: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    lines: tuple[Line, ...] = ()


class PlannedEvent(Struct, frozen=True):
    """An Event that would be published."""

    regarding: str
    reason: str
    note: str
    type: str


class Planned(Struct, Generic[T], frozen=True):
    """What is there now, and what would be afterwards."""

    before: T
    after: T


class Forecast(ObjectIdentity, frozen=True, kw_only=True, omit_defaults=False):
    """The forecast for one resource and its children, or for an object of any other kind.

    Such an object has no `controller`, and `field_manager` is that of its user.

    `contested` are fields with what settles each, `together` settles several. `status` is what it
    says besides conditions, if that is ours to write. `unchecked` says what could not be checked.
    `later` is what would happen to the children after every Deployment has rolled out.
    `unanswered` says of an object about which the server gave no answer in time what was asked.
    """

    controller: str | None = None
    field_manager: str
    verdict: PlanVerdict = "nothing"
    objects: tuple[ObjectForecast, ...] = ()
    contested: tuple[Dispute, ...] = ()
    together: tuple[Remedy, ...] = ()
    claims: tuple[ContestedField, ...] = ()
    yields: tuple[ContestedField, ...] = ()
    refusals: tuple[WriteRefusal, ...] = ()
    conditions: Planned[tuple[Condition, ...]] = Planned((), ())
    status: Planned[Mapping[str, Any]] = Planned({}, {})
    events: tuple[PlannedEvent, ...] = ()
    later: tuple[ObjectForecast, ...] = ()
    looks_again_in_seconds: float | None = None
    unchecked: tuple[str, ...] = ()
    unanswered: str | None = None

    @property
    def problems(self) -> tuple[Condition, ...]:
        """The conditions that waiting does not help with."""
        after = self.conditions.after
        return tuple(c for c in after if c.type == "Stalled" and c.status == "True")


def judged(forecast: Forecast) -> Forecast:
    """Return a forecast with the worst of what it tells as its verdict."""
    return replace(forecast, verdict=_verdict(forecast))


def _verdict(forecast: Forecast) -> PlanVerdict:
    if forecast.unanswered:
        return "partial"
    taken = [c for c in forecast.problems if c.reason == "NameTaken"]
    if forecast.refusals or len(taken) < len(forecast.problems):
        return "failed"
    if forecast.contested or taken:
        return "conflicts"
    written = ("created", "configured", "deleted")
    return "changes" if any(obj.action in written for obj in forecast.objects) else "nothing"


class PlanReport(Struct, frozen=True):
    """The forecasts of a command, and the worst verdict of them."""

    verdict: PlanVerdict
    resources: Sequence[Forecast]


def worst(forecasts: Iterable[Forecast]) -> PlanVerdict:
    """Return the worst verdict of several."""
    verdicts = {forecast.verdict for forecast in forecasts}
    return next(rank for rank in _RANKS if rank in {*verdicts, _RANKS[-1]})


def yielded(plan_input: PlanInput, desired: Desired) -> Iterator[ContestedField]:
    """Yield the fields that compose declares, but that are yielded to their holders."""
    for child in desired.children:
        live = plan_input.live.get(ChildId(child.kind.api.kind, child.name))
        if live is None or not isinstance(child, Apply):
            continue
        planner = ChildPlanner(plan_input, child)
        for leaf in ownership.judge(planner.want, live, plan_input.field_manager).leaves:
            kind, name = planner.id
            if leaf.holders and plan_input.field_policy.yielded(kind, name, leaf.field_path):
                yield held_by(planner.ref, leaf)


def further(live: Object | None) -> Object:
    """Return what a status says besides conditions, conflicts, and which generation it is about."""
    status = View(live or {}).mapping("status")
    return {name: value for name, value in status.items() if name not in _OF_EVERY_STATUS}


def facts(said: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what can be told in a line of what a status says: single values, and lists of texts.

    The latter may be inside a map, as `switch.steps` is.
    """
    for name, value in said.items():
        inside = {f"{name}.{key}": part for key, part in value.items()} if is_map(value) else {}
        for path, part in {name: value, **inside}.items():
            if is_list(part) and part and all(isinstance(text, str) for text in part):
                yield path, "; ".join(part)
            elif path == name and isinstance(part, str | int):
                yield path, str(part)


def rolled_out(deployment: Object) -> Object:
    """Return a Deployment as it would be after its rollout, which may in fact never succeed."""
    spec: Object = deployment.get("spec") or {}
    wanted = spec.get("replicas", 1)
    counts = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
    available = {"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"}
    status: Object = {
        **dict.fromkeys(counts, wanted),
        "observedGeneration": deployment["metadata"].get("generation", 0),
        "conditions": [available],
    }
    return {**deployment, "spec": {**spec, "replicas": wanted}, "status": status}
