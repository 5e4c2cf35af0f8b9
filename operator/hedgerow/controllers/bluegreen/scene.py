"""Scene: the observed state of a BlueGreen, as far as a switch depends on it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from hedgerow import (
    PORT_MISSING,
    Deployment,
    EndpointSlice,
    Observed,
    Pod,
    Service,
    View,
    digest,
    extract,
    held_items,
    is_manager_of,
    missing_port,
    waits_for,
    why_stuck,
)
from hedgerow.controllers.bluegreen import checks
from hedgerow.controllers.bluegreen.checks import MANAGED_BY, MANAGER, NAMED_BY, Trial
from hedgerow.controllers.bluegreen.switch import (
    BOTH,
    SelectedColour,
    Situation,
    Step,
    decide,
    other,
)
from hedgerow_schemas.bluegreen import BlueGreen, Phase, RoutedTemplate

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from hedgerow import Object

NAME: Final = "bluegreen"
"""The name of the controller."""
PHASES: Final[tuple[Phase, ...]] = ("Blue", "Green")
OVERLAP_SECONDS = BAKE_UNAVAILABLE_SECONDS = 10
SETTLING = timedelta(seconds=3)
"""How long the preview Service shows a template before its checks begin: kube-proxies follow."""
CHECKING: Final = ("Checking", "CheckFailed")


@dataclass(frozen=True, slots=True)
class Scene:
    """A BlueGreen and its observed objects, and the facts about a switch that follow from both.

    `template` is that of the chosen colour; empty if nothing depends on it, or if it does not exist
    yet. `routed`, `previous` and `rejected` are as the next status has them.
    """

    bg: BlueGreen
    observed: Observed
    seen: Situation
    step: Step
    template: str = ""
    trial: Trial = checks.UNTRIED
    routed: RoutedTemplate | None = None
    previous: RoutedTemplate | None = None
    rejected: RoutedTemplate | None = None
    ready_since: datetime | None = None
    unavailable_since: datetime | None = None
    contested: str = ""
    """What others hold of the chosen colour's template, while it is to be checked."""
    frozen: tuple[Phase, ...] = ()
    """Serving colours with an unchecked new spec: their Deployments stay as they are."""


def look(bg: BlueGreen, observed: Observed) -> Scene:
    """Return the next selection of the Service, and all facts that it depends on."""
    spec, chosen = bg.spec, bg.spec.route_to
    selected = selection(bg, observed)
    former = last_routed(bg)
    overlaps = spec.switch == "Overlap"
    waits = spec.promotion != "Immediate" or overlaps
    basic = Situation(
        selected=selected,
        former=former,
        chosen=chosen,
        has_spec=chosen in dict(spec.phases()),
        available=not waits or not unavailable(bg, observed, chosen),
        waits=waits,
        gated=is_gated(bg),
        overlap=overlaps,
        in_use=former is not None or observed.child(Service, bg.metadata.name) is not None,
        other_up=is_up(bg, observed, other(chosen)),
    )
    if not is_tracked(bg):
        routed = None if selected else record_of(bg, former)
        return Scene(bg, observed, basic, decide(basic), routed=routed)
    return _tracked(bg, observed, basic)


def last_routed(bg: BlueGreen) -> Phase | None:
    """Return the colour that the Service selected alone last, as far as the status knows.

    `status.routeTo` says what is selected now, so that it is empty while somebody else has set the
    selector, and while there is no Service; `status.routed` names the colour then.
    """
    routed = bg.status.routed
    last = bg.status.route_to or (routed.phase if routed else None)
    return next((phase for phase in PHASES if phase == last), None)


def record_of(bg: BlueGreen, former: Phase | None) -> RoutedTemplate | None:
    """Return the record of the colour that was routed last; an unknown template is empty."""
    routed = bg.status.routed
    if former is None or (routed and routed.phase == former):
        return routed
    return RoutedTemplate(phase=former, template="")


def _tracked(bg: BlueGreen, observed: Observed, basic: Situation) -> Scene:
    """Return the scene of a BlueGreen whose status remembers templates and times."""
    status, chosen, now = bg.status, basic.chosen, observed.now
    frozen: list[Phase] = [phase for phase in PHASES if is_frozen(bg, phase, observed, basic)]
    templates: dict[str, str] = {
        phase: template_of(bg, phase, observed, frozen=phase in frozen) for phase in PHASES
    }
    routed, previous = records(bg, basic.selected, templates, now)
    former = basic.former
    if basic.gated and basic.selected is None and former:
        # Without a Service the former colour would be routed anew: only what was routed before may.
        former = former if _is(status.routed, former, templates[former]) else None
    template, back = templates[chosen], other(chosen)
    trial, contested = checks.UNTRIED, ""
    served = any(_is(record, chosen, template) for record in (status.routed, status.previous))
    if basic.gated and template and not (served or basic.alone):
        trial = checks.trial(bg, chosen, template, observed)
        contested = contested_in(bg, chosen)
    overlapped_since = overlap_began(bg, observed, basic)
    watched = bool(
        basic.alone and routed and previous and routed.since and now < bake_end(bg, routed.since)
    )
    down = watched and not is_up(bg, observed, chosen)
    unavailable_since = _not_to_come(status.unavailable_since, now) if down else None
    way_back = is_up(bg, observed, back) and _is(previous, back, templates[back])
    rejected = status.rejected
    if rejected and templates.get(rejected.phase) not in ("", rejected.template):
        rejected = None
    if basic.alone and not way_back and _is(rejected, chosen, template):
        rejected = None
    seen = replace(
        basic,
        former=former,
        checks=trial.verdict if trial.statuses and not contested else "Running",
        held=bg.spec.hold and (not template or bg.spec.promoted != template),
        served=served,
        overlapped=overlapped_since is not None and now >= overlapped_since + overlap(bg),
        baking=watched,
        lost=unavailable_since is not None and now >= unavailable_since + bound(bg),
        rejected=_is(rejected, chosen, template),
        way_back=way_back,
    )
    step = decide(seen)
    if step.phase == "RollingBack" and not seen.rejected:
        rejected = RoutedTemplate(phase=chosen, template=template, since=now)
    return Scene(
        bg,
        observed,
        seen,
        step,
        template=template,
        trial=trial,
        routed=routed,
        previous=previous,
        rejected=rejected,
        ready_since=(
            previewed_since(bg, observed, chosen, template)
            if step.phase in CHECKING
            else overlapped_since
        ),
        unavailable_since=unavailable_since,
        contested=contested,
        frozen=tuple(frozen),
    )


def is_gated(bg: BlueGreen) -> bool:
    """Return whether nothing is routed before its checks have passed."""
    return bg.spec.promotion == "WhenChecked"


def is_tracked(bg: BlueGreen) -> bool:
    """Return whether the spec uses anything that the status has to remember."""
    spec = bg.spec
    is_watched = spec.switch == "Overlap" or spec.bake_seconds is not None
    # What was routed before stays known while somebody routes past the checks by Immediate.
    return is_gated(bg) or bool(spec.checks) or spec.hold or is_watched


def selection(bg: BlueGreen, observed: Observed) -> SelectedColour | None:
    """Return the selection of the live Service: a colour, both, or None for anything else."""
    live = observed.child(Service, bg.metadata.name)
    if live is None:
        return None
    if live.selector == both(bg):
        return BOTH
    return next((phase for phase in PHASES if live.selector == labels(bg, phase)), None)


def template_of(bg: BlueGreen, phase: Phase, observed: Observed, *, frozen: bool = False) -> str:
    """Return a name for the template of a colour's pods; empty if there is no Deployment.

    It has a digest of the spec and one of the live values of declared fields, whoever holds them.
    So a new spec changes the name before it is applied; fields that others add, as a restart does,
    do not. Of a `frozen` colour the spec counts that was applied last.
    """
    live = observed.child(Deployment, deployment_name(bg, phase))
    spec = dict(bg.spec.phases()).get(phase)
    if live is None or spec is None:
        return ""
    declared = _declared_before(bg, phase) if frozen else digest(spec)
    ours = View(extract(live.raw, observed.field_manager) or {}).mapping("spec", "template")
    theirs = _held_by_others(spec, View(ours).mapping("spec"), live.pod_spec)
    return f"{declared}-{digest(ours, *([theirs] if theirs else []))}"


def _held_by_others(declared: Any, ours: Any, live: Any) -> Any:
    """Return the live values of declared fields that others hold, such as a yielded image.

    Items of lists are known by their names; a list whose items have none is ours or theirs as a
    whole.
    """
    if ours is None:
        return live
    kinds: set[type[Any]] = {type(part) for part in (declared, ours, live)}
    if kinds == {dict}:
        pairs = {
            name: _held_by_others(value, ours.get(name), live[name])
            for name, value in declared.items()
            if name in live
        }
        return {name: value for name, value in pairs.items() if value not in (None, {})}
    if kinds == {list}:
        return _held_by_others(*(_by_name(items) for items in (declared, ours, live)))
    return None


def _by_name(items: Iterable[Any]) -> dict[str, Any]:
    return {name: item for item in items if (name := View(item).text("name"))}


def _declared_before(bg: BlueGreen, phase: Phase) -> str:
    """Return the digest of a colour's spec that the status records, or an empty text."""
    status = bg.status
    switch = status.switch and RoutedTemplate(
        phase=status.switch.to, template=status.switch.template
    )
    records = (status.routed, switch, status.previous)
    template = next((record.template for record in records if record and record.phase == phase), "")
    return template.partition("-")[0]


def contested_in(bg: BlueGreen, phase: Phase) -> str:
    """Return which field of a colour's template somebody else holds, as the status has it.

    Once they give it up, other pods run than those that were checked. Of fields for which the
    status has no room, any may be such a one.
    """
    name, status = f"Deployment/{deployment_name(bg, phase)}", bg.status
    paths = (field.path for field in status.contested if field.object == name)
    listed = next((path for path in paths if path.startswith(".spec.template")), "")
    if listed:
        return f"{listed} of its Deployment"
    return "fields that this status does not list" if status.has_unlisted else ""


def is_frozen(bg: BlueGreen, phase: Phase, observed: Observed, seen: Situation) -> bool:
    """Return whether a colour serves, and its spec has changed since it was checked.

    Its Deployment stays as it is: otherwise unchecked pods would serve.
    """
    spec = dict(bg.spec.phases()).get(phase)
    serves = seen.selected == BOTH or phase == (seen.selected or seen.former)
    live = observed.child(Deployment, deployment_name(bg, phase))
    if not (seen.gated and serves and spec is not None and live is not None):
        return False
    # What leaves an overlap is not recorded any more, and serves until the Service has moved.
    unknown = None if seen.selected == BOTH else ""
    return _declared_before(bg, phase) not in (unknown, digest(spec))


def records(
    bg: BlueGreen, selected: SelectedColour | None, templates: Mapping[str, str], now: datetime
) -> tuple[RoutedTemplate | None, RoutedTemplate | None]:
    """Return the template that is routed alone, or was last, and the one before it.

    After a way back there is no template before: the restored one is not watched, and there is no
    way back to the one that was left.
    """
    routed, previous, former = bg.status.routed, bg.status.previous, last_routed(bg)
    if selected is None:
        return record_of(bg, former), previous
    if routed is None and former not in (None, selected) and templates[former]:
        # What was routed before anything was tracked: the switch came with the first edit.
        routed = RoutedTemplate(phase=former, template=templates[former])
    if selected == BOTH or not templates[selected]:
        return routed, previous
    if routed and _is(routed, selected, templates[selected]):
        since = routed.since and _not_to_come(routed.since, now)
        return routed.model_copy(update={"since": since}), previous
    newest = RoutedTemplate(phase=selected, template=templates[selected], since=now)
    if routed is None or routed.phase == selected:
        return newest, previous
    return newest, None if _is(previous, selected, newest.template) else routed


def _is(record: RoutedTemplate | None, phase: Phase, template: str) -> bool:
    """Return whether a record is of this template of a colour."""
    return (
        record is not None
        and template != ""
        and (record.phase, record.template) == (phase, template)
    )


def overlap_began(bg: BlueGreen, observed: Observed, seen: Situation) -> datetime | None:
    """Return since when both colours serve: the chosen one is among the Service's endpoints."""
    if seen.selected != BOTH:
        return None
    switch = bg.status.switch
    goes_on = switch and switch.to == seen.chosen and bg.status.phase == "Overlapping"
    began = switch.ready_since if switch and goes_on else None
    pods, shown = endpoints(bg, observed, seen.chosen, bg.metadata.name)
    if pods & shown and (began or pods <= shown):
        return _not_to_come(began, observed.now)
    return None


def previewed_since(
    bg: BlueGreen, observed: Observed, phase: Phase, template: str
) -> datetime | None:
    """Return since when the preview Service shows the pods of this template, and no others.

    The status has recorded the template by then, so that an earlier pass has applied it.
    """
    switch, name = bg.status.switch, preview_name(bg)
    live = observed.child(Service, name)
    pods, shown = endpoints(bg, observed, phase, name)
    if switch is None or (switch.to, switch.template) != (phase, template):
        return None
    if live is None or live.selector != labels(bg, phase) or not pods or pods != shown:
        return None
    goes_on = bg.status.phase in CHECKING
    return _not_to_come(switch.ready_since if goes_on else None, observed.now)


def endpoints(
    bg: BlueGreen, observed: Observed, phase: Phase, service_name: str
) -> tuple[set[str], set[str]]:
    """Return the ready pods of a colour, and those that a Service's EndpointSlices show."""
    wanted = labels(bg, phase).items()
    ready = (pod for pod in observed.all(Pod) if pod.ready and pod.active)
    slices = (
        endpoint_slice
        for endpoint_slice in observed.all(EndpointSlice)
        if endpoint_slice.service == service_name
    )
    return (
        {pod.name for pod in ready if wanted <= pod.labels.items()},
        {name for endpoint_slice in slices for name in endpoint_slice.ready_pods},
    )


def is_up(bg: BlueGreen, observed: Observed, phase: Phase) -> bool:
    """Return whether a colour can serve: enough pods are available, and have the Service's ports.

    The Deployment says how many are enough. One that is scaled to zero has enough, but no pod that
    serves.
    """
    return has_pods(bg, observed, phase) and not missing(bg, observed, phase)


def has_pods(bg: BlueGreen, observed: Observed, phase: Phase) -> bool:
    """Return whether enough pods of a colour are available, as its Deployment counts them."""
    live = observed.child(Deployment, deployment_name(bg, phase))
    if live is None or live.condition("Available") != "True":
        return False
    return live.available_replicas > 0


def _not_to_come(time: datetime | None, now: datetime) -> datetime:
    """Return a recorded time; now if there is none, or if a clock that was ahead recorded it."""
    return min(time or _ceiling(now), _ceiling(now))


def _ceiling(now: datetime) -> datetime:
    """Return the next whole second: a status has no fractions, and no time may be cut short."""
    return now.replace(microsecond=0) + timedelta(seconds=bool(now.microsecond))


def overlap(bg: BlueGreen) -> timedelta:
    """Return how long both colours serve once the chosen one is among the endpoints."""
    given = bg.spec.overlap_seconds
    return timedelta(seconds=OVERLAP_SECONDS if given is None else given)


def bound(bg: BlueGreen) -> timedelta:
    """Return how long a watched colour may be unavailable."""
    given = bg.spec.bake_unavailable_seconds
    return timedelta(seconds=BAKE_UNAVAILABLE_SECONDS if given is None else given)


def bake_end(bg: BlueGreen, since: datetime) -> datetime:
    """Return until when a colour is watched that was routed at this time."""
    return since + timedelta(seconds=bg.spec.bake_seconds or 0)


def wait(scene: Scene) -> timedelta | None:
    """Return the time until a check can begin, or the overlap, bake or patience ends."""
    bg, now, routed = scene.bg, scene.observed.now, scene.routed
    settling = SETTLING if scene.step.phase in CHECKING else overlap(bg)
    times = [
        scene.ready_since + settling if scene.ready_since else None,
        scene.unavailable_since + bound(bg) if scene.unavailable_since else None,
        bake_end(bg, routed.since) if scene.seen.baking and routed and routed.since else None,
        scene.trial.due,
    ]
    return min((time - now for time in times if time and time > now), default=None)


def can_be_checked(scene: Scene) -> bool:
    """Return whether the checks may begin: the preview leads to the pods to check alone."""
    since = scene.ready_since
    return (
        scene.step.phase in CHECKING
        and not scene.contested
        and since is not None
        and scene.observed.now >= since + SETTLING
    )


def labels(bg: BlueGreen, phase: Phase) -> dict[str, str]:
    """Return the labels of a colour's pods, which its Deployment and the Service select."""
    return {**both(bg), "app.kubernetes.io/phase": phase}


def both(bg: BlueGreen) -> dict[str, str]:
    """Return the labels that the pods of both colours have, and no others."""
    return {MANAGED_BY: MANAGER, NAMED_BY: bg.metadata.name}


def deployment_name(bg: BlueGreen, phase: Phase) -> str:
    """Return the name that the original operator used: no hyphen before the colour."""
    return f"{bg.metadata.name}{phase.lower()}-deployment"


def preview_name(bg: BlueGreen) -> str:
    """Return the name of the Service for the colour that is not routed."""
    return f"{bg.metadata.name}-preview"


def unavailable(bg: BlueGreen, observed: Observed, phase: Phase, *, lasting: bool = False) -> str:
    """Return why a colour is not available as declared; empty if it is available.

    `lasting` is that of `waits_for`.
    """
    name = deployment_name(bg, phase)
    if observed.is_refused(Deployment, name):
        return "the API server refused its declaration"
    lack = missing(bg, observed, phase)
    live = observed.child(Deployment, name)
    return lack or waits_for(live, observed.all(Pod), lasting=lasting)


def not_serving(bg: BlueGreen, observed: Observed, phase: Phase) -> tuple[str, str]:
    """Return why a colour that is selected does not serve: a reason, and words; empty if it does.

    It serves as long as enough of its pods are available, whatever of a rollout is still to come.
    """
    live = observed.child(Service, bg.metadata.name)
    if live and (lack := missing_port(live.ports, pod_spec(bg, observed, phase))):
        return PORT_MISSING, lack
    if has_pods(bg, observed, phase):
        return "", ""
    return "Unavailable", unavailable(bg, observed, phase)


def stuck(bg: BlueGreen, observed: Observed, phase: Phase) -> str:
    """Return the reason why waiting does not make a colour available; empty if it may."""
    name = deployment_name(bg, phase)
    if observed.is_refused(Deployment, name):
        return ""  # it is sent again
    if missing(bg, observed, phase):
        return PORT_MISSING
    return why_stuck(observed.child(Deployment, name))


def missing(bg: BlueGreen, observed: Observed, phase: Phase, service_name: str = "") -> str:
    """Return which port the pods of a colour would lack if a Service selected them.

    The Service is the main one, if no other is named.
    """
    live = observed.child(Service, service_name or bg.metadata.name)
    return missing_port(ports(bg, live), pod_spec(bg, observed, phase))


def pod_spec(bg: BlueGreen, observed: Observed, phase: Phase) -> Mapping[str, Any]:
    """Return the template of a colour's pods: as its Deployment has it, with others' additions.

    Before there is one, as the spec has it.
    """
    live = observed.child(Deployment, deployment_name(bg, phase))
    return live.pod_spec if live else dict(bg.spec.phases()).get(phase, {})


def ports(bg: BlueGreen, live: Service | None) -> Iterable[Object]:
    """Return the ports that a Service has once ours are applied, with those of others.

    Where somebody else holds a target port, that is left as it is.
    """
    declared: dict[tuple[int, str], Object] = {
        (port.port, port.protocol): port.wire() for port in bg.spec.ports
    }
    # Reading the holders takes longer than all the rest; most Services have numbers alone.
    if live and any(View(port).text("targetPort") for port in (*declared.values(), *live.ports)):
        theirs = {
            _key(keys)
            for holder, keys, names in held_items(live, "spec", "ports")
            if "targetPort" in names and not is_manager_of(NAME, holder.manager)
        }
        there = {_key(View(port)): port for port in live.ports}
        declared |= {key: port for key, port in there.items() if key in theirs}
    return declared.values()


def _key(port: View) -> tuple[int, str]:
    return port.number("port"), port.text("protocol")


def keeps_ports(scene: Scene) -> bool:
    """Return whether the ports of the Service wait for the switch, together with its selector.

    They do if the colour that has the traffic until then lacks a declared port, but none of those
    that the Service has.
    """
    bg, observed, selected = scene.bg, scene.observed, scene.seen.selected
    live = observed.child(Service, bg.metadata.name)
    if live is None or selected in (None, BOTH, scene.seen.chosen):
        return False
    pods = pod_spec(bg, observed, selected)
    stays = scene.step.select == selected
    return stays and not missing_port(live.ports, pods) and bool(missing(bg, observed, selected))
