"""Scaler: holds the replicas of Deployments and StatefulSets during the windows they ask for."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final

from hedgerow import (
    KEEP_ALL,
    ApiResource,
    BuiltIn,
    ContributesTo,
    Contribution,
    Controller,
    Deployment,
    Desired,
    HorizontalPodAutoscaler,
    Key,
    Notice,
    Object,
    Observed,
    Resource,
    StatefulSet,
    Status,
    View,
    condition,
    holders,
    stalled,
)
from hedgerow.controllers.scaler.record import SOMEBODY, UNKNOWN, FormerValue, recorded
from hedgerow.controllers.scaler.windows import (
    BEFORE,
    DOMAIN,
    HOLDS,
    NEVER,
    AnnotationsError,
    WindowPhase,
    read_plan,
)

if TYPE_CHECKING:
    from hedgerow import Condition

DEFAULT: Final = 1
"""The number of replicas, and the least one of an autoscaler, that the API server defaults to."""
LONGEST_WAIT: Final = timedelta(days=366)
OUTSIDE: Final = WindowPhase(in_force=False, replicas=None, since=NEVER, until=None)
"""The phase of an object that asks for nothing any more."""
FORMER_LOST: Final = "FormerValueLost"


class ScaledDeployment(Resource):
    """A Deployment; nothing is installed for it."""

    api: ClassVar[ApiResource] = Deployment.api


class ScaledStatefulSet(Resource):
    """A StatefulSet; nothing is installed for it."""

    api: ClassVar[ApiResource] = StatefulSet.api


@dataclass(frozen=True, slots=True)
class ScaledField:
    """A field that may be held: its object and name, its value, its holders, and its record."""

    kind: type[View]
    live: View
    field: str
    ours: bool
    others: tuple[str, ...]

    @classmethod
    def of(cls, kind: type[View], live: View, field: str, manager: str) -> ScaledField:
        """Return a target with its holders; `manager` is our field manager."""
        known = holders(live, "spec", field)
        others = tuple(holder.manager for holder in known if not holder.is_applier(manager, ""))
        return cls(kind, live, field, len(others) < len(known), others)

    @property
    def id(self) -> str:
        """Kind and name, as conflicts print them."""
        return f"{self.kind.api.kind}/{self.live.name}"

    @property
    def value(self) -> int:
        """The number that is there now."""
        value = self.live.at("spec", self.field)
        return value if isinstance(value, int) else DEFAULT

    @property
    def is_scaled(self) -> bool:
        """Whether somebody scaled it whom the API server did not record, so that nobody holds it.

        A scale to 0 is never recorded, nor is any further one. What a holder let go of has the
        default instead.
        """
        is_lost = not (self.ours or self.others)
        return is_lost and (self.value == 0 or (self.record is not None and self.value != DEFAULT))

    @property
    def record(self) -> FormerValue | None:
        """The record beside the field."""
        return recorded(self.live.text("metadata", "annotations", BEFORE))


@dataclass(frozen=True, slots=True)
class Hold:
    """The declaration of a target: the number, the record beside it, and why it waits.

    Without a number, the record alone.
    """

    replicas: int | None
    record: FormerValue | None = None
    waits: str = ""

    def fields(self, field: str) -> Object:
        """Return the fields to contribute."""
        notes: Object = {BEFORE: self.record.text()} if self.record else {}
        declared: Object = {} if self.replicas is None else {"spec": {field: self.replicas}}
        return {"metadata": {"annotations": notes}, **declared} if notes else declared


def compose(kind: type[View], workload: Resource, observed: Observed) -> Desired:
    """Return the replicas to hold in this phase, on the object or its autoscaler, if any."""
    now = max(observed.now, observed.cluster_time)  # a clock that is behind leaves pods out
    own, autoscalers = targets(kind, observed)
    try:
        plan = read_plan(workload.metadata.annotations, workload.metadata.creation_timestamp)
    except AnnotationsError as error:
        return Desired(KEEP_ALL, Status(conditions=stalled("InvalidAnnotation", str(error))))
    if len(autoscalers) > 1:
        names = ", ".join(sorted(autoscaler.id for autoscaler in autoscalers))
        text = f"{names} all target {own.id}: hedgerow changes none of them until only one does"
        conditions = stalled("SeveralAutoscalers", text) if plan else ()
        return Desired(KEEP_ALL, Status(conditions=conditions))
    target = autoscalers[0] if autoscalers else own
    phase = plan.at(now) if plan else OUTSIDE
    word = observed.word(target.kind, target.live.name, "spec", target.field)
    hold = returned(target) if phase.replicas is None else wanted(target, phase, word)
    events, conditions = remarks(target, hold)
    return Desired(
        status=Status(conditions=conditions) if conditions else None,
        events=events,
        requeue_after=phase.until and min(phase.until - now, LONGEST_WAIT),
        contributions=contributions(own, target, hold, phase),
    )


def targets(kind: type[View], observed: Observed) -> tuple[ScaledField, list[ScaledField]]:
    """Return the replicas of the object itself, and those of the autoscalers that target it."""
    manager, live = observed.field_manager, observed.resource or View({})
    autoscalers = observed.all(HorizontalPodAutoscaler)
    return ScaledField.of(kind, live, "replicas", manager), [
        ScaledField.of(HorizontalPodAutoscaler, autoscaler, "minReplicas", manager)
        for autoscaler in autoscalers
    ]


def wanted(target: ScaledField, phase: WindowPhase, word: str) -> Hold:
    """Return how to hold a field in a phase that has a number.

    If others hold it with another value, it is taken by force only if the author claims it, and
    once in a transition. Otherwise it is declared unforced: it is reported, and ours once they let
    go. The same is so if somebody scaled it whom the API server did not record; then the former
    value stays recorded, since the object may be scaled up again.
    """
    number, record = phase.replicas or 0, target.record
    was_taken = record is not None and record.was_taken_at(phase.since)
    if word == "yield" and target.others:
        return Hold(number, record if was_taken else None)
    if not ((target.others or target.is_scaled) and target.value != number):
        return Hold(number, record if target.ours else _met(target, record, phase))
    if word == "claim" and not was_taken:
        former = target.others[0] if target.others else SOMEBODY
        taken = FormerValue(replicas=target.value, taken_from=former, taken_at=phase.since)
        return Hold(number, taken)
    until = f"until {phase.until:%Y-%m-%dT%H:%M:%SZ}" if phase.until else "as it is"
    waits = (
        f"the field was taken in the transition of {phase.since:%Y-%m-%dT%H:%M:%SZ} and lost"
        f" again, and is"
        f" left {until}"
    )
    is_kept = was_taken or target.is_scaled
    return Hold(number, record if is_kept else None, waits if word == "claim" else "")


def _met(target: ScaledField, record: FormerValue | None, phase: WindowPhase) -> FormerValue:
    """Return the record of a field that is free, or that others hold with the wanted number.

    The record stays as it is if somebody scaled the object, so that the field is free: no other
    manager loses a value. A new record still says if force was used in this phase.
    """
    used = record is not None and record.was_taken_at(phase.since)
    if record is not None and (target.is_scaled or not (used or target.others)):
        return record
    return FormerValue(replicas=target.value, taken_at=phase.since if used else None)


def returned(target: ScaledField) -> Hold | None:
    """Return how to hold a field that is to be as it was before; None to give it back.

    A field without any holder gets the default. So a former value other than the default is held
    until somebody else holds the field. If the record is lost, the present number is held.
    """
    if target.others or not target.ours:
        return None
    record = target.record or FormerValue(replicas=target.value, taken_from=UNKNOWN)
    if record.replicas == DEFAULT and not record.taken_from:
        return None
    return Hold(record.replicas, record)


def contributions(
    own: ScaledField, target: ScaledField, hold: Hold | None, phase: WindowPhase
) -> tuple[Contribution, ...]:
    """Return the contributions to the object itself and to its autoscaler.

    An annotation of the object names its autoscaler, from before a field of that is held until it
    is given back: by this the autoscaler is found if the other annotations are removed. Replicas
    that were held before there was an autoscaler stay held until that takes them, or they would
    fall to the default.
    """
    if target is own:
        return (_contribution(own, hold),) if hold else ()
    fields = _kept(own, phase)
    holds = hold is not None and (hold.record is not None or target.ours)
    if holds or target.ours:
        meta: Object = fields.get("metadata", {})
        marks: Object = {**meta.get("annotations", {}), HOLDS: target.id}
        fields = {**fields, "metadata": {"annotations": marks}}
    own_part = (Contribution(own.kind, own.live.name, fields),) if fields else ()
    is_marked = own.live.text("metadata", "annotations", HOLDS) == target.id
    if hold is None or (holds and not (is_marked or target.ours)):
        return own_part
    return (*own_part, _contribution(target, hold))


def _kept(own: ScaledField, phase: WindowPhase) -> Object:
    """Return the fields of the object itself that stay declared while there is an autoscaler."""
    if own.ours and not own.others:
        return Hold(own.value, own.record).fields(own.field)
    # The autoscaler may go within the phase: then force does not count anew.
    is_used = own.record is not None and own.record.was_taken_at(phase.since)
    return (
        Hold(None, own.record).fields(own.field) if is_used and phase.replicas is not None else {}
    )


def remarks(
    target: ScaledField, hold: Hold | None
) -> tuple[tuple[Notice, ...], tuple[Condition, ...]]:
    """Return the Event and the condition of a field whose former value is not known any more."""
    if hold is None or hold.record is None or hold.record.taken_from != UNKNOWN:
        return (), ()
    text = (
        f"what {target.id} had before is not known, since {BEFORE} was removed from it:"
        f" spec.{target.field} stays {hold.replicas} until somebody else sets it"
    )
    return (Notice(FORMER_LOST, text, "Warning"),), (
        condition(FORMER_LOST, True, "RecordRemoved", text),
    )


def _contribution(target: ScaledField, hold: Hold) -> Contribution:
    return Contribution(target.kind, target.live.name, hold.fields(target.field), hold.waits)


def scaled(autoscaler: View) -> tuple[str, str]:
    """Return kind and name of the object that an autoscaler targets; no kind but those of apps."""
    reference = View(autoscaler.mapping("spec", "scaleTargetRef"))
    is_apps = reference.text("apiVersion").startswith("apps/")
    return (reference.text("kind") if is_apps else "", reference.text("name"))


def _key(kind: type[View], autoscaler: View) -> Key | None:
    target, name = scaled(autoscaler)
    return Key(autoscaler.namespace, name) if target == kind.api.kind else None


def _concerns(kind: type[View], autoscaler: View) -> bool:
    """Return whether this one of the two controllers gives back the fields of an autoscaler."""
    is_stateful = scaled(autoscaler)[0] == StatefulSet.api.kind
    return is_stateful == (kind is StatefulSet)


def former(autoscaler: View, manager: str) -> Object:
    """Return the fields that stay declared of an autoscaler without object, or without windows."""
    target = ScaledField.of(HorizontalPodAutoscaler, autoscaler, "minReplicas", manager)
    hold = returned(target)
    return hold.fields(target.field) if hold else {}


def reduced(autoscaler: Object) -> Object:
    """Return an autoscaler without its status, and with only the fields that are read."""
    view = HorizontalPodAutoscaler(autoscaler)
    meta: Object = autoscaler["metadata"]
    kept = ("name", "namespace", "uid", "resourceVersion", "generation", "deletionTimestamp")
    notes = {BEFORE: text} if (text := view.text("metadata", "annotations", BEFORE)) else {}
    entries: list[Any] = meta.get("managedFields") or []
    return {
        "apiVersion": autoscaler.get("apiVersion"),
        "kind": autoscaler.get("kind"),
        "metadata": {
            **{name: meta[name] for name in kept if name in meta},
            **({"annotations": notes} if notes else {}),
            "managedFields": [entry for entry in entries if entry.get("subresource") != "status"],
        },
        "spec": {
            name: value
            for name in ("scaleTargetRef", "minReplicas")
            if (value := view.at("spec", name)) is not None
        },
    }


def _fields(number: str, *annotations: str) -> tuple[tuple[str, ...], ...]:
    notes = (("metadata", "annotations", name) for name in annotations)
    return ("spec", number), *notes


def _controller(resource: type[Resource], kind: type[View]) -> Controller[Any]:
    return Controller(
        "scaler",
        resource,
        partial(compose, kind),
        owns=(),
        contributes=(
            ContributesTo(
                HorizontalPodAutoscaler,
                _fields("minReplicas", BEFORE),
                of=partial(_key, kind),
                concerns=partial(_concerns, kind),
                reduce=reduced,
                remains=former,
            ),
        ),
        opt_in=True,
        built_in=BuiltIn(annotation_prefix=DOMAIN, contributes=_fields("replicas", BEFORE, HOLDS)),
    )


DEPLOYMENTS: Final = _controller(ScaledDeployment, Deployment)
STATEFUL_SETS: Final = _controller(ScaledStatefulSet, StatefulSet)
CONTROLLER: Final = (DEPLOYMENTS, STATEFUL_SETS)
