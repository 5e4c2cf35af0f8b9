"""Status: a BlueGreen's status, its conditions and its Events."""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING, Final

from hedgerow import Deployment, Notice, Service, condition, ready, stalled, unready
from hedgerow.controllers.bluegreen.scene import (
    PHASES,
    bound,
    deployment_name,
    is_tracked,
    missing,
    not_serving,
    overlap,
    preview_name,
    stuck,
    unavailable,
)
from hedgerow.controllers.bluegreen.switch import BOTH, other
from hedgerow.controllers.bluegreen.validation import errors
from hedgerow_schemas.bluegreen import BlueGreenStatus, CheckStatus, Switch

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import timedelta

    from hedgerow import Condition
    from hedgerow.controllers.bluegreen.scene import Scene
    from hedgerow_schemas.bluegreen import Phase

ENDED: Final = ("CheckFailed", "RolledBack")
"""The phases in which a switch does not go on until somebody changes something.

`Held` is none of them: its author asked for the pause.
"""


def status(scene: Scene) -> BlueGreenStatus:
    """Return the status: the Service's selection, and the progress of a switch if it is tracked."""
    bg, seen, now, phase = scene.bg, scene.seen, scene.observed.now, scene.step.phase
    alone = seen.former if seen.selected == BOTH else seen.selected
    before, conditions = bg.status, tuple(health(scene))
    if not is_tracked(bg):
        return BlueGreenStatus(route_to=alone, conditions=conditions, routed=scene.routed)
    switch = None
    if phase not in ("Routed", "Baking", "RollingBack", "RolledBack"):
        same = before.switch and (before.phase, before.switch.to) == (phase, seen.chosen)
        switch = Switch(
            source=seen.stay,
            to=seen.chosen,
            template=scene.template,
            since=before.switch.since if before.switch and same else now,
            ready_since=scene.ready_since,
            steps=tuple(steps(scene)),
        )
    return BlueGreenStatus(
        route_to=alone,
        conditions=conditions,
        phase=phase,
        switch=switch,
        routed=scene.routed,
        previous=scene.previous,
        rejected=scene.rejected,
        unavailable_since=scene.unavailable_since,
        checks=verdicts(scene) or None,
    )


def verdicts(scene: Scene) -> tuple[CheckStatus, ...]:
    """Return the checks of the chosen template, or of the one that is routed."""
    routed = scene.routed
    checks = scene.bg.status.checks or ()
    kept = (check for check in checks if routed and check.template == routed.template)
    return scene.trial.statuses or tuple(kept)


def steps(scene: Scene) -> Iterator[str]:
    """Yield the steps that are left until the chosen colour is routed, and those after that."""
    bg, seen = scene.bg, scene.seen
    if not seen.available:
        yield f"wait until {seen.chosen} is available"
    if seen.gated and not seen.served:
        passed = {check.name for check in scene.trial.statuses if check.verdict == "Passed"}
        yield from (
            f"check {check.name}" for check in bg.spec.checks or () if check.name not in passed
        )
    if seen.held and not seen.served:
        yield f"wait for {_promoting(scene)}"
    if seen.overlap and seen.stay not in (None, seen.chosen):
        yield f"select both colours for {seconds(overlap(bg))}"
    yield f"select {seen.chosen}"
    if bg.spec.bake_seconds and not seen.served and seen.stay:
        yield f"watch {seen.chosen} for {bg.spec.bake_seconds} s"


def health(scene: Scene) -> Iterator[Condition]:
    """Yield `Available`, `Ready`, `Stalled` and `Checked`.

    Available is whether what is selected serves now, Ready whether the switch and the rollout of
    the chosen colour are over.
    """
    bg, seen = scene.bg, scene.seen
    yield _serving(scene)
    if lacking := [error.detail for error in errors(bg)]:  # stored before the rule existed
        reason = "InvalidSpec" if seen.has_spec else "NoSpec"
        yield from stalled(reason, "; ".join(lacking))
    elif scene.trial.taken:
        yield from stalled("NameTaken", scene.trial.taken)
    elif seen.chosen in scene.frozen:
        yield from stalled("TemplateNotChecked", _frozen(seen.chosen))
    elif seen.alone and scene.step.phase != "RollingBack":
        yield from _rolled_out(scene)
    else:
        reason, words = _not_ready(scene)
        if reason in ENDED or reason == stuck(bg, scene.observed, seen.chosen):
            yield from unready(words, reason, _not_ready(scene, lasting=True)[1])
        else:
            yield ready(False, reason, words)
    if seen.gated:
        yield from _checked(scene)
    elif bg.spec.checks:
        yield condition(
            "Checked", False, "NotChecked", f"promotion {bg.spec.promotion} runs no check"
        )


def _serving(scene: Scene) -> Condition:
    """Return `Available`: of two colours that are selected, it is enough that one serves."""
    bg, observed, seen = scene.bg, scene.observed, scene.seen
    selected = seen.stay if seen.selected == BOTH else seen.selected
    if seen.selected == BOTH and not any(not_serving(bg, observed, seen.chosen)):
        selected = seen.chosen
    if not selected:
        return condition("Available", False, "Unavailable", "the Service selects no colour")
    reason, lack = not_serving(bg, observed, selected)
    if lack:
        return condition("Available", False, reason, f"{selected}: {lack}")
    return condition("Available", True, "Serving", f"{selected} is available")


def _rolled_out(scene: Scene) -> tuple[Condition, ...]:
    """Return `Ready` of a colour that is selected: whether it is rolled out as declared."""
    bg, observed, chosen = scene.bg, scene.observed, scene.seen.chosen
    if lack := unavailable(bg, observed, chosen):
        lacks = (lack, unavailable(bg, observed, chosen, lasting=True))
        words, lasting = ("; ".join((f"{chosen}: {text}", *_no_way_back(scene))) for text in lacks)
        return unready(words, stuck(bg, observed, chosen), lasting)
    lacks = (*_no_way_back(scene), *_port_lacks(scene, other(chosen)))
    words = "; ".join((f"{chosen} is available", *lacks))
    return (ready(True, "Baking" if scene.step.phase == "Baking" else "Serving", words),)


def _no_way_back(scene: Scene) -> Iterator[str]:
    """Yield why the Service would not go back while the chosen colour is watched."""
    seen = scene.seen
    if scene.step.phase == "Baking" and not seen.way_back:
        why = "has changed since it was routed" if seen.other_up else "could not serve"
        yield f"there is no way back: {other(seen.chosen)} {why}"


def _port_lacks(scene: Scene, phase: Phase) -> Iterator[str]:
    """Yield which port the colour that is not routed lacks: a switch would lose it.

    The preview Service lacks it already.
    """
    bg, observed = scene.bg, scene.observed
    if phase in dict(bg.spec.phases()):
        lacks = (missing(bg, observed, phase, name) for name in ("", preview_name(bg)))
        yield from (f"{phase}: {lack}" for lack in [*filter(None, lacks)][:1])


def _frozen(phase: Phase) -> str:
    away = other(phase)
    return (
        f"{phase} serves, so its new specification cannot be checked before it would serve: its"
        f" pods stay as they are. Put it into {away.lower()}Spec and route to {away}"
    )


def _promoting(scene: Scene) -> str:
    """Return the command that lets a held switch go on."""
    meta = scene.bg.metadata
    return f"`hedgerow promote {quote(meta.name)} -n {quote(meta.namespace)}`"


def _not_ready(scene: Scene, *, lasting: bool = False) -> tuple[str, str]:
    """Return the reason and the message of a `Ready` that is false because of a switch.

    `lasting` is that of `waits_for`.
    """
    bg, seen, phase = scene.bg, scene.seen, scene.step.phase
    chosen = seen.chosen
    stays = _stays(scene)
    fewer = fewer_pods(scene, seen.stay, seen.chosen, coming=seen.waits)
    # Where somebody has to act first, each other number would be another Event of Stalled.
    why = stuck(bg, scene.observed, chosen)
    if fewer and phase not in ENDED and not why:
        stays += f": {fewer}"
    match phase:
        case "WaitingForAvailability":
            lack = unavailable(bg, scene.observed, chosen, lasting=lasting)
            words = f"{chosen}: {lack}; {stays}"
            return why or phase, words
        case "Checking" | "CheckFailed":
            words = f"{chosen}: {_undecided(scene)}; {stays}"
        case "Held":
            waits = f"{chosen} waits for {_promoting(scene)}"
            words = "; ".join((waits, stays, *_port_lacks(scene, chosen)))
        case "Overlapping":
            until = f"{chosen} has been among its endpoints for {seconds(overlap(bg))}"
            words = f"the Service selects both colours until {until}"
            words += f"; {fewer}" if fewer else ""
        case "RollingBack":
            longest = f"longer than {seconds(bound(bg))}"
            words = f"{chosen} was not available for {longest}: the Service goes back"
        case "RolledBack":
            words = (
                f"{chosen} was not available after it was routed, and is not tried again with this"
                f" template; {stays}"
            )
        case _:
            return "Routing", f"the Service does not select {chosen} yet"
    return phase, words


def _stays(scene: Scene) -> str:
    """Return the colours that have the traffic until the chosen one gets it."""
    if stay := scene.seen.stay:
        return f"the Service stays on {stay}"
    live = scene.observed.child(Service, scene.bg.metadata.name)
    return "the Service stays as it is" if live else "nothing is routed yet"


def fewer_pods(scene: Scene, source: str | None, to: str, *, coming: bool = False) -> str:
    """Return how many pods are available where the traffic is, if there are fewer where it goes.

    Replicas are the user's, so that no switch waits for more of them. If they are `coming`, those
    count that are wanted there: a Deployment has one by default. Empty if there are not fewer.
    """
    bg, observed = scene.bg, scene.observed
    deployments: dict[str, Deployment | None] = {
        phase: observed.child(Deployment, deployment_name(bg, phase)) for phase in PHASES
    }
    before, after = deployments.get(source or ""), deployments.get(to)
    now = before.available_replicas if before else 0
    there = after.available_replicas if after else 0
    if coming:
        there = max(after.replicas if after else 1, there)
    return f"{now} available now, {there} there" if there < now else ""


def seconds(span: timedelta) -> str:
    """Return a number of seconds with its unit."""
    return f"{round(span.total_seconds())} s"


def _undecided(scene: Scene) -> str:
    """Return the message about the first check that has not passed; failed ones come first."""
    if scene.contested:
        return f"it is not checked while somebody else holds {scene.contested}"
    waiting = [check for check in scene.trial.statuses if check.verdict != "Passed"]
    if not waiting:
        return "all checks have passed" if scene.trial.statuses else "it has not been checked yet"
    first = next((check for check in waiting if check.verdict == "Failed"), waiting[0])
    ended = "has failed" if first.verdict == "Failed" else "has not passed yet"
    return f"check {first.name} {ended}" + (f" ({first.message})" if first.message else "")


def _checked(scene: Scene) -> Iterator[Condition]:
    checks = verdicts(scene)
    if not checks:
        return
    failed = [check for check in checks if check.verdict == "Failed"]
    if failed:
        yield condition("Checked", False, "CheckFailed", f"{failed[0].name}: {failed[0].message}")
    elif any(check.verdict == "Running" for check in checks):
        yield condition("Checked", False, "Checking", _undecided(scene))
    else:
        yield condition(
            "Checked", True, "ChecksPassed", f"all checks of {checks[0].template} passed"
        )


def remarks(scene: Scene) -> Iterator[Notice]:
    """Yield notices of changes that the status does not show yet."""
    bg, selected, status = scene.bg, scene.seen.selected, scene.bg.status
    if selected and selected != BOTH and status.route_to not in (None, "", selected):
        note = f"the Service selects {selected} now, {status.route_to} before"
        fewer = fewer_pods(scene, status.route_to, selected)
        yield Notice(
            "Switched", f"{note} ({status.route_to} to {selected}: {fewer})" if fewer else note
        )
        if status.phase == "RollingBack":
            note = (
                f"{status.route_to} was not available after it was routed: the Service is back on"
                f" {selected}, and this template is not tried again"
            )
            yield Notice("RolledBack", note, "Warning")
    before = {(known.job, known.verdict) for known in status.checks or ()}
    for check in scene.trial.statuses:
        if (check.job, check.verdict) in before:
            continue
        if check.verdict == "Passed":
            yield Notice("CheckPassed", f"check {check.name} of {bg.spec.route_to} has passed")
        elif check.verdict == "Failed":
            note = f"check {check.name} of {bg.spec.route_to} has failed: {check.message}"
            yield Notice("CheckFailed", note, "Warning")
