"""Readiness: the progress of a live object, in a few words and as kstatus's verdict.

The rules are those of kubectl's printers and of kstatus (sigs.k8s.io/cli-utils), which calls an
object Current if its controller has caught up with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from hedgerow_schemas.base import Object, View
from hedgerow_schemas.builtin import CONTAINERS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

KstatusVerdict = Literal["Current", "InProgress", "Failed", "Terminating", "NotFound", "Unknown"]

WAITS_AS_USUAL = frozenset({"ContainerCreating", "PodInitializing", "SchedulingGated"})
_AGAIN = "CrashLoopBackOff"
"""Its text has nothing but the names of the pod and the container, and the pause."""


class Readiness(Struct, frozen=True):
    """An object's progress as kubectl prints it, and kstatus's verdict."""

    verdict: KstatusVerdict
    words: str


def readiness(live: Object) -> Readiness:
    """Return an object's readiness; raises nothing. Without a status, existing means Current."""
    view = View(live)
    if view.text("metadata", "deletionTimestamp"):
        kept = ", ".join(map(str, view.items("metadata", "finalizers")))
        return Readiness(
            "Terminating", f"being deleted, kept by {kept}" if kept else "being deleted"
        )
    return _BY_KIND.get(_kind(view), _other)(view)


def _kind(view: View) -> tuple[str, str]:
    return view.text("apiVersion").rpartition("/")[0], view.text("kind")


def _holds(view: View, kind: str, status: str = "True") -> View | None:
    """Return a condition if it has this status, or None."""
    for condition in map(View, view.items("status", "conditions")):
        if (condition.text("type"), condition.text("status")) == (kind, status):
            return condition
    return None


def _said(condition: View) -> str:
    """Return what a condition says: its text, which names what is wrong, or the word for it."""
    return condition.text("message") or condition.text("reason")


def is_unseen(view: View) -> bool:
    """Return whether its controller tells that it has not seen the newest specification yet."""
    return view.at("status", "observedGeneration") is not None and _is_unseen(view)


def _is_unseen(view: View) -> bool:
    return view.number("status", "observedGeneration") < view.number("metadata", "generation")


def _wanted(view: View) -> int:
    return 1 if view.at("spec", "replicas") is None else view.number("spec", "replicas")


def _deployment(view: View) -> Readiness:
    wanted = _wanted(view)
    available = view.number("status", "availableReplicas")
    failed = _holds(view, "ReplicaFailure") or _holds(view, "Progressing", "False")
    surplus = view.number("status", "replicas") - wanted
    words = [f"available {available}/{wanted}" if wanted else "scaled to zero"]
    if failed:
        return Readiness("Failed", f"{words[0]}: {_said(failed)}")
    if _is_unseen(view):
        return Readiness("InProgress", f"{words[0]}, change not seen yet")
    if view.number("status", "updatedReplicas") < wanted:
        words.append(f"{view.number('status', 'updatedReplicas')} updated")
    if surplus > 0:
        words.append(f"{surplus} surplus")
    settled = len(words) == 1 and available >= wanted
    if not settled and view.at("spec", "paused") is True:
        words.append("paused")
    return Readiness("Current" if settled else "InProgress", ", ".join(words))


def _replica_set(view: View) -> Readiness:
    wanted, ready = _wanted(view), view.number("status", "readyReplicas")
    words = f"ready {ready}/{wanted}" if wanted else "scaled to zero"
    failed = _holds(view, "ReplicaFailure")
    if failed:
        return Readiness("Failed", f"{words}: {_said(failed)}")
    settled = ready == wanted == view.number("status", "replicas") and not _is_unseen(view)
    return Readiness("Current" if settled else "InProgress", words)


def _pod(view: View) -> Readiness:
    phase = view.text("status", "phase")
    restarts = sum(status.number("restartCount") for status in _containers(view))
    again = f", {restarts} restarts" if restarts > 1 else ", 1 restart" if restarts else ""
    if phase == "Succeeded":
        return Readiness("Current", f"Complete{again}")
    if phase == "Failed":
        parts = (view.text("status", key) for key in ("reason", "message"))
        why = ": ".join(filter(None, parts)) or next(_endings(view), "")
        return Readiness("Failed", f"Failed: {why}{again}" if why else f"Failed{again}")
    if _holds(view, "Ready"):
        return Readiness("Current", f"Ready{again}")
    why, stuck = next(_waits(view), ("", False))
    words = f"{phase or 'Pending'}: {why}" if why else f"{phase or 'Pending'}, not ready"
    return Readiness("Failed" if stuck else "InProgress", words + again)


def _containers(view: View) -> Iterator[View]:
    for key in CONTAINERS:
        yield from map(View, view.items("status", key))


def _waits(view: View) -> Iterator[tuple[str, bool]]:
    """Yield why a pod is not ready, the most useful words first, and whether it waits in vain."""
    waiting = [View(status.mapping("state", "waiting")) for status in _containers(view)]
    reasons = [(w, w.text("reason")) for w in waiting if w.text("reason")]
    yield from (
        (
            reason if reason == _AGAIN else ": ".join(filter(None, (reason, w.text("message")))),
            True,
        )
        for w, reason in reasons
        if reason not in WAITS_AS_USUAL
    )
    if unscheduled := _holds(view, "PodScheduled", "False"):
        yield _said(unscheduled), unscheduled.text("reason") not in WAITS_AS_USUAL
    yield from ((reason, False) for _, reason in reasons)
    yield from ((ending, True) for ending in _endings(view))
    # Of a container that starts up, and of a readiness gate that is not met.
    if (unready := _holds(view, "Ready", "False")) and _said(unready):
        yield _said(unready), False


def _endings(view: View) -> Iterator[str]:
    """Yield how failed containers ended: `OOMKilled`, `Error (exit code 1)`."""
    for status in _containers(view):
        ended = View(status.mapping("state", "terminated"))
        if ended.raw and ended.number("exitCode"):
            reason, code = ended.text("reason"), ended.number("exitCode")
            yield f"{reason} (exit code {code})" if reason else f"exit code {code}"


def _job(view: View) -> Readiness:
    failed = _holds(view, "Failed") or _holds(view, "FailureTarget")
    if failed:
        return Readiness("Failed", f"Failed: {failed.text('reason') or 'no reason given'}")
    if _holds(view, "Complete"):
        return Readiness("Current", "Complete")
    if view.at("spec", "suspend") is True:
        return Readiness("Current", "suspended")
    done, tries = view.number("status", "succeeded"), view.number("status", "failed")
    wanted = view.number("spec", "completions") or 1
    words = [f"running {view.number('status', 'active')}", f"{done}/{wanted} complete"]
    words += [f"{tries} failed"] if tries else []
    return Readiness("InProgress", ", ".join(words))


def _service(view: View) -> Readiness:
    kind, address = view.text("spec", "type") or "ClusterIP", view.text("spec", "clusterIP")
    if kind == "ExternalName":
        return Readiness("Current", f"ExternalName {view.text('spec', 'externalName')}")
    if kind == "LoadBalancer" and not view.items("status", "loadBalancer", "ingress"):
        return Readiness("InProgress", "LoadBalancer without address")
    return Readiness("Current", "headless" if address == "None" else f"{kind} {address}".strip())


def _budget(view: View) -> Readiness:
    if _is_unseen(view):
        return Readiness("InProgress", "change not seen yet")
    allowed, healthy = (view.number("status", n) for n in ("disruptionsAllowed", "currentHealthy"))
    unable = _holds(view, "DisruptionAllowed", "False")
    if unable and unable.text("reason") == "SyncFailed":
        return Readiness("Failed", "SyncFailed")
    wanted = view.number("status", "desiredHealthy")
    words = f"healthy {healthy}/{wanted}, may lose {allowed}"
    return Readiness("Current" if healthy >= wanted else "InProgress", words)


def _other(view: View) -> Readiness:
    """Return the readiness by the conditions that kstatus knows.

    Without conditions, existing means Current. Our own Contested counts as failed, because waiting
    does not help with it either.
    """
    if is_unseen(view):
        return Readiness("InProgress", "change not seen yet")
    failed = _holds(view, "Stalled") or _holds(view, "Contested")
    verdict = "Failed" if failed else "InProgress"
    ready, unready = _holds(view, "Ready"), _holds(view, "Ready", "False")
    if unready:
        return Readiness(verdict, _because("not Ready", unready))
    if failed:
        return Readiness(verdict, _because(failed.text("type"), failed))
    if _holds(view, "Ready", "Unknown"):
        return Readiness(verdict, "Ready is unknown")
    return Readiness("Current", _because("Ready", ready) if ready else "there")


def reported(live: Object, says: View) -> Readiness:
    """Return an object's readiness with what our controller says of it, in the form of a status."""
    own, theirs = readiness(live), _other(says)
    if theirs.verdict == "Current" or own.verdict == "Terminating":
        return own
    words = theirs.words if own.words == "there" else f"{own.words}, {theirs.words}"
    return Readiness(theirs.verdict, words)


def _because(word: str, condition: View) -> str:
    reason = condition.text("reason")
    return f"{word}: {reason}" if reason else word


_BY_KIND: Mapping[tuple[str, str], Callable[[View], Readiness]] = {
    ("apps", "Deployment"): _deployment,
    ("apps", "ReplicaSet"): _replica_set,
    ("", "Pod"): _pod,
    ("batch", "Job"): _job,
    ("", "Service"): _service,
    ("policy", "PodDisruptionBudget"): _budget,
}
