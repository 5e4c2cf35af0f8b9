"""BlueGreen: two revisions side by side, one Service that points at the chosen one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow import (
    Apply,
    Controller,
    Create,
    Deployment,
    Desired,
    EndpointSlice,
    Job,
    Keep,
    Key,
    Observed,
    Pod,
    Relation,
    Select,
    Service,
    View,
)
from hedgerow.controllers.bluegreen.checks import (
    CHECKS,
    MANAGED_BY,
    MANAGER,
    job_name,
    manifest,
)
from hedgerow.controllers.bluegreen.scene import (
    NAME,
    NAMED_BY,
    PHASES,
    both,
    can_be_checked,
    deployment_name,
    is_gated,
    keeps_ports,
    labels,
    look,
    preview_name,
    wait,
)
from hedgerow.controllers.bluegreen.status import remarks, status
from hedgerow.controllers.bluegreen.switch import BOTH, SelectedColour, other
from hedgerow.controllers.bluegreen.validation import errors
from hedgerow_schemas.bluegreen import BlueGreen, Phase

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hedgerow import Object
    from hedgerow.controllers.bluegreen.scene import Scene

SELECTED = f"{MANAGED_BY}={MANAGER}"
WATCHED = "app.demo.kakao.com/endpoints"
"""The label of a Service whose EndpointSlices are read; these have the labels of their Service."""


def compose(bg: BlueGreen, observed: Observed) -> Desired:
    """Return a Deployment per colour, and the Service: it switches after its new target exists."""
    scene = look(bg, observed.by_cluster_time())
    selected = scene.seen.selected
    specs = dict(bg.spec.phases())
    children: list[Apply | Keep] = [
        Keep(Deployment, deployment_name(bg, phase))
        if phase in scene.frozen
        else deployment(bg, phase, spec)
        for phase, spec in specs.items()
    ]
    # A colour without a spec is deleted only once the live Service selects the other colour.
    children += [
        Keep(Deployment, deployment_name(bg, phase))
        for phase in PHASES
        if phase not in specs and selected in (None, BOTH, phase)
    ]
    if scene.step.select and not keeps_ports(scene):
        children.append(service(bg, scene.step.select, moves=selected is not None))
    elif observed.child(Service, bg.metadata.name):
        children.append(Keep(Service, bg.metadata.name))
    if bg.spec.preview or is_gated(bg):
        children.append(preview(bg, previewed(scene)))
    jobs = (*scene.trial.begun, *(scene.trial.missing if can_be_checked(scene) else ()))
    return Desired(
        (*children, *jobs), status(scene), tuple(remarks(scene)), requeue_after=wait(scene)
    )


def previewed(scene: Scene) -> Phase:
    """Return the colour that the preview Service selects: the one that is not routed."""
    chosen = scene.seen.chosen
    return other(chosen) if scene.step.select == chosen else chosen


def deployment(bg: BlueGreen, phase: Phase, pod_spec: Object) -> Apply:
    """Return a colour's Deployment; it does not declare replicas, so that anyone may scale it."""
    own = labels(bg, phase)
    template = {"metadata": {"labels": own}, "spec": pod_spec}
    fields = {"spec": {"selector": {"matchLabels": own}, "template": template}}
    return Apply(Deployment, deployment_name(bg, phase), fields)


def service(bg: BlueGreen, selected: SelectedColour, *, moves: bool = True) -> Apply:
    """Return the Service, which selects one colour or both; it `moves` after the Deployments."""
    selector = both(bg) if selected == BOTH else labels(bg, selected)
    fields = _service(bg, selector, watched=bg.spec.switch == "Overlap")
    return Apply(Service, bg.metadata.name, fields, after=(Deployment,) if moves else ())


def preview(bg: BlueGreen, phase: Phase) -> Apply:
    """Return the preview Service."""
    return Apply(Service, preview_name(bg), _service(bg, labels(bg, phase), watched=is_gated(bg)))


def _service(bg: BlueGreen, selector: Object, *, watched: bool) -> Object:
    spec = {"ports": [port.wire() for port in bg.spec.ports], "selector": selector}
    return {**({"metadata": {"labels": {WATCHED: "true"}}} if watched else {}), "spec": spec}


def resource_of(obj: View) -> tuple[Key, ...]:
    """Return the BlueGreen of a pod: of one of its colours, or of a check."""
    own = View(obj.labels)
    name = own.text(NAMED_BY) or own.text(CHECKS)
    return (Key(obj.namespace, name),) if name else ()


def served_by(obj: View) -> tuple[Key, ...]:
    """Return the BlueGreens whose Service, or preview Service, has an EndpointSlice."""
    name = View(obj.labels).text(EndpointSlice.SERVICE)
    return tuple(
        Key(obj.namespace, owner) for owner in {name, name.removesuffix("-preview")} if owner
    )


def templates(bg: BlueGreen) -> Iterator[Create]:
    """Yield a Job of each check that is run, as it would be for an empty name of a template."""
    for check in (bg.spec.checks or ()) if is_gated(bg) else ():
        name = job_name(bg, bg.spec.route_to, "", check)
        yield Create(Job, name, manifest(bg, "", check))


CONTROLLER = Controller(
    NAME,
    BlueGreen,
    compose,
    owns=(Deployment, Service, Job),
    relates=(
        Relation(
            Pod,
            select=Select(labels=SELECTED),
            same_namespace=True,
            of=resource_of,
            reduce=Pod.reduced,
        ),
        Relation(
            EndpointSlice,
            select=Select(labels=WATCHED),
            same_namespace=True,
            of=served_by,
            reduce=EndpointSlice.reduced,
        ),
    ),
    child_names={
        Deployment: ("{}blue-deployment", "{}green-deployment"),
        Service: ("{}", "{}-preview"),
        Job: ("{}-check-*",),
    },
    validate=errors,
    templates=templates,
)
