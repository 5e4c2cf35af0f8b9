"""BlueGreen: two revisions side by side, one Service that points at the chosen one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.contract import Apply, Controller, Desired, Keep, Notice, Observed, Relation
from hedgerow.controllers import workloads
from hedgerow.controllers.workloads import waits_for
from hedgerow.plan import conditions
from hedgerow.validation import FieldError
from hedgerow_schemas.bluegreen import BlueGreen, BlueGreenStatus, Phase
from hedgerow_schemas.builtin import Deployment, Pod, Service

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hedgerow_schemas.base import Condition, Object

PHASES: tuple[Phase, ...] = ("Blue", "Green")
NAMED_BY = "app.kubernetes.io/name"
MANAGED_BY = "app.demo.kakao.com"
SELECTED = f"app.kubernetes.io/managed-by={MANAGED_BY}"


def compose(bg: BlueGreen, observed: Observed) -> Desired:
    """Declare a Deployment per colour, then the Service: it moves after what it moves to."""
    selected = routed(bg, observed)
    specs = dict(bg.spec.phases())
    children: list[Apply | Keep] = [deployment(bg, phase, spec) for phase, spec in specs.items()]
    # A colour that lost its spec goes only once the live Service is seen on the other one.
    children += [
        Keep(Deployment, deployment_name(bg, phase))
        for phase in PHASES
        if phase not in specs and selected in (None, phase)
    ]
    children.append(service(bg, destination(bg, observed)))
    status = BlueGreenStatus(route_to=selected, conditions=health(bg, observed))
    return Desired(tuple(children), status, tuple(remarks(bg, selected)))


def labels(bg: BlueGreen, phase: Phase) -> dict[str, str]:
    """Return the labels of a colour's pods: the selector of its Deployment and of the Service."""
    return {
        "app.kubernetes.io/managed-by": MANAGED_BY,
        NAMED_BY: bg.metadata.name,
        "app.kubernetes.io/phase": phase,
    }


def deployment_name(bg: BlueGreen, phase: Phase) -> str:
    """Return the name the original operator gave: no hyphen before the colour."""
    return f"{bg.metadata.name}{phase.lower()}-deployment"


def deployment(bg: BlueGreen, phase: Phase, pod_spec: Object) -> Apply:
    """Declare a colour's Deployment; replicas stay undeclared, anyone may scale it."""
    own = labels(bg, phase)
    template = {"metadata": {"labels": own}, "spec": pod_spec}
    fields = {"spec": {"selector": {"matchLabels": own}, "template": template}}
    return Apply(Deployment, deployment_name(bg, phase), fields)


def service(bg: BlueGreen, phase: Phase) -> Apply:
    """Declare the Service, pointing at one colour."""
    ports = [port.wire() for port in bg.spec.ports]
    fields = {"spec": {"ports": ports, "selector": labels(bg, phase)}}
    return Apply(Service, bg.metadata.name, fields)


def routed(bg: BlueGreen, observed: Observed) -> Phase | None:
    """Return the colour that the live Service really selects, or None."""
    live = observed.child(Service, bg.metadata.name)
    if live is None:
        return None
    return next((phase for phase in PHASES if live.selector == labels(bg, phase)), None)


def destination(bg: BlueGreen, observed: Observed) -> Phase:
    """Return the colour to declare: the chosen one, or the present one until that is available."""
    # A Service made anew goes where the last one went.
    last: Phase | None = next((p for p in PHASES if p == bg.status.route_to), None)
    present, chosen = routed(bg, observed) or last, bg.spec.route_to
    if present is None or present == chosen:
        return chosen
    gated = bg.spec.promotion == "WhenAvailable" and unavailable(bg, observed, chosen)
    return present if gated or chosen not in dict(bg.spec.phases()) else chosen


def unavailable(bg: BlueGreen, observed: Observed, phase: Phase) -> str:
    """Say why a colour is not available as declared; empty when it is."""
    name = deployment_name(bg, phase)
    if (Deployment.api.kind, name) in observed.refused:
        return "its declaration was refused"
    return waits_for(observed.child(Deployment, name), observed.all(Pod))


def health(bg: BlueGreen, observed: Observed) -> tuple[Condition, ...]:
    """Conclude `Available` (the routed colour serves) and `Ready` (so does the chosen one)."""
    selected, chosen = routed(bg, observed), bg.spec.route_to
    lack = unavailable(bg, observed, selected) if selected else "the Service selects no colour"
    reason = "Unavailable" if lack else "Serving"
    words = f"{selected}: {lack}" if lack and selected else lack or f"{selected} is available"
    available = conditions.condition("Available", not lack, reason, words)
    if lacking := [error.detail for error in errors(bg)]:  # stored before there was the rule
        return available, *conditions.stalled("NoSpec", *lacking)
    if selected == chosen:
        ready = conditions.ready(not lack, reason, words)
    elif (stays := destination(bg, observed)) != chosen:
        message = f"{chosen}: {unavailable(bg, observed, chosen)}; the Service stays on {stays}"
        ready = conditions.ready(False, "WaitingForAvailability", message)
    else:
        ready = conditions.ready(False, "Routing", f"the Service does not select {chosen} yet")
    return available, ready


def remarks(bg: BlueGreen, selected: Phase | None) -> Iterator[Notice]:
    """Yield of a switch that the status does not show yet."""
    if selected and bg.status.route_to not in (None, "", selected):
        yield Notice("Switched", f"the Service selects {selected} now, {bg.status.route_to} before")


def errors(bg: BlueGreen) -> Iterator[FieldError]:
    """Refuse a routeTo without pods to route to; CEL does so where the definition has the rule."""
    if (chosen := bg.spec.route_to) not in dict(bg.spec.phases()):
        detail = f"routeTo is {chosen}, so there must be a {chosen.lower()}Spec to route to"
        yield FieldError(f"spec.{chosen.lower()}Spec", None, detail, "FieldValueRequired")


CONTROLLER = Controller(
    "bluegreen",
    BlueGreen,
    compose,
    owns=(Deployment, Service),
    relates=(Relation(Pod, SELECTED, workloads.names(NAMED_BY), Pod.reduced),),
    child_names={Deployment: ("{}blue-deployment", "{}green-deployment")},
    validate=errors,
)
