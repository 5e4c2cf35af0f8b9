"""BlueGreen: two revisions side by side, one Service that points at the chosen one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow import (
    Apply,
    Controller,
    Deployment,
    Desired,
    FieldError,
    Keep,
    Notice,
    Observed,
    Pod,
    Relation,
    Service,
    condition,
    named_by,
    ready,
    stalled,
    waits_for,
)
from hedgerow_schemas.bluegreen import BlueGreen, BlueGreenStatus, Phase

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hedgerow import Condition, Object

PHASES: tuple[Phase, ...] = ("Blue", "Green")
NAMED_BY = "app.kubernetes.io/name"
MANAGED_BY = "app.demo.kakao.com"
SELECTED = f"app.kubernetes.io/managed-by={MANAGED_BY}"


def compose(bg: BlueGreen, observed: Observed) -> Desired:
    """Return a Deployment per colour, and the Service: it switches after its new target exists."""
    selected = routed(bg, observed)
    specs = dict(bg.spec.phases())
    children: list[Apply | Keep] = [deployment(bg, phase, spec) for phase, spec in specs.items()]
    # A colour without a spec is deleted only once the live Service selects the other colour.
    children += [
        Keep(Deployment, deployment_name(bg, phase))
        for phase in PHASES
        if phase not in specs and selected in (None, phase)
    ]
    children.append(service(bg, destination(bg, observed), moves=selected is not None))
    status = BlueGreenStatus(route_to=selected, conditions=health(bg, observed))
    return Desired(tuple(children), status, tuple(remarks(bg, selected)))


def labels(bg: BlueGreen, phase: Phase) -> dict[str, str]:
    """Return the labels of a colour's pods, which its Deployment and the Service select."""
    return {
        "app.kubernetes.io/managed-by": MANAGED_BY,
        NAMED_BY: bg.metadata.name,
        "app.kubernetes.io/phase": phase,
    }


def deployment_name(bg: BlueGreen, phase: Phase) -> str:
    """Return the name that the original operator used: no hyphen before the colour."""
    return f"{bg.metadata.name}{phase.lower()}-deployment"


def deployment(bg: BlueGreen, phase: Phase, pod_spec: Object) -> Apply:
    """Return a colour's Deployment; it does not declare replicas, so that anyone may scale it."""
    own = labels(bg, phase)
    template = {"metadata": {"labels": own}, "spec": pod_spec}
    fields = {"spec": {"selector": {"matchLabels": own}, "template": template}}
    return Apply(Deployment, deployment_name(bg, phase), fields)


def service(bg: BlueGreen, phase: Phase, *, moves: bool = True) -> Apply:
    """Return the Service, which selects one colour; it `moves` only after the Deployments."""
    ports = [port.wire() for port in bg.spec.ports]
    fields = {"spec": {"ports": ports, "selector": labels(bg, phase)}}
    return Apply(Service, bg.metadata.name, fields, after=(Deployment,) if moves else ())


def routed(bg: BlueGreen, observed: Observed) -> Phase | None:
    """Return the colour that the live Service selects, or None."""
    live = observed.child(Service, bg.metadata.name)
    if live is None:
        return None
    return next((phase for phase in PHASES if live.selector == labels(bg, phase)), None)


def destination(bg: BlueGreen, observed: Observed) -> Phase:
    """Return the colour to select: the present one until the chosen one is available."""
    # If the Service was deleted, the new one selects the colour in the status.
    last: Phase | None = next((p for p in PHASES if p == bg.status.route_to), None)
    present, chosen = routed(bg, observed) or last, bg.spec.route_to
    if present is None or present == chosen:
        return chosen
    gated = bg.spec.promotion == "WhenAvailable" and unavailable(bg, observed, chosen)
    return present if gated or chosen not in dict(bg.spec.phases()) else chosen


def unavailable(bg: BlueGreen, observed: Observed, phase: Phase) -> str:
    """Return why a colour is not available as declared; empty if it is available."""
    name = deployment_name(bg, phase)
    if observed.is_refused(Deployment, name):
        return "the API server refused its declaration"
    return waits_for(observed.child(Deployment, name), observed.all(Pod))


def health(bg: BlueGreen, observed: Observed) -> tuple[Condition, ...]:
    """Return `Available` (the selected colour serves) and `Ready` (the chosen colour serves)."""
    selected, chosen = routed(bg, observed), bg.spec.route_to
    lack = unavailable(bg, observed, selected) if selected else "the Service selects no colour"
    reason = "Unavailable" if lack else "Serving"
    words = f"{selected}: {lack}" if lack and selected else lack or f"{selected} is available"
    available = condition("Available", not lack, reason, words)
    if lacking := [error.detail for error in errors(bg)]:  # stored before the rule existed
        return available, *stalled("NoSpec", *lacking)
    if selected == chosen:
        verdict = ready(not lack, reason, words)
    elif (stays := destination(bg, observed)) != chosen:
        message = f"{chosen}: {unavailable(bg, observed, chosen)}; the Service stays on {stays}"
        verdict = ready(False, "WaitingForAvailability", message)
    else:
        verdict = ready(False, "Routing", f"the Service does not select {chosen} yet")
    return available, verdict


def remarks(bg: BlueGreen, selected: Phase | None) -> Iterator[Notice]:
    """Yield a notice of a switch that the status does not show yet."""
    if selected and bg.status.route_to not in (None, "", selected):
        yield Notice("Switched", f"the Service selects {selected} now, {bg.status.route_to} before")


def errors(bg: BlueGreen) -> Iterator[FieldError]:
    """Yield an error if routeTo names a colour without a spec; the CRD's CEL rule checks it too."""
    if (chosen := bg.spec.route_to) not in dict(bg.spec.phases()):
        detail = f"routeTo is {chosen}, so there must be a {chosen.lower()}Spec to route to"
        yield FieldError(f"spec.{chosen.lower()}Spec", None, detail, "FieldValueRequired")


CONTROLLER = Controller(
    "bluegreen",
    BlueGreen,
    compose,
    owns=(Deployment, Service),
    relates=(Relation(Pod, labels=SELECTED, of=named_by(NAMED_BY), reduce=Pod.reduced),),
    child_names={Deployment: ("{}blue-deployment", "{}green-deployment")},
    validate=errors,
)
