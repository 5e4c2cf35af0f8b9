"""Workloads: label selectors, Deployment rollouts, ports and parts of pod templates.

Selectors have the semantics of apimachinery's `metav1.LabelSelectorAsSelector`. An ill-typed one
selects nothing.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from hedgerow.contract import Key
from hedgerow.texts import command_line, cut, printable, within
from hedgerow_schemas.base import View

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from hedgerow_schemas.base import Object
    from hedgerow_schemas.builtin import Deployment, Pod


TCP: Final = "TCP"
"""The protocol of a port that names none."""
DEADLINE_EXCEEDED: Final = "ProgressDeadlineExceeded"
PAUSED: Final = "DeploymentPaused"
PORT_MISSING: Final = "PortMissing"
"""The reason of conditions that say what `missing_port` returns."""
LONGEST_REASON: Final = 600
"""The most characters of what a Deployment or a pod says: PodSecurity needs 550 to name all."""
LONGEST_WORDS: Final = 900
"""The most characters of all that `waits_for` says; a condition's message has 1024."""
_POD_NAME: Final = re.compile(r'\b(pods?) "[^"]*+"', re.IGNORECASE)
_SUFFIX: Final = re.compile(
    r"-[bcdfghjklmnpqrstvwxz2456789]{6,10}-[bcdfghjklmnpqrstvwxz2456789]{5}\b"
)
"""The end of a pod's name in other texts, in the letters that Kubernetes draws (`rand.String`)."""
_USED: Final = re.compile(r"\bused: \S++ (?=limited: )")
"""What others use of a quota."""


def matches(selector: Mapping[str, Any], labels: Mapping[str, Any]) -> bool:
    """Return whether a label selector selects these labels; an empty one selects all."""
    return all(_holds(*requirement, labels) for requirement in _requirements(selector))


def selector_text(selector: Mapping[str, Any]) -> str:
    """Return the string form that kubectl and autoscalers parse: `a=b,c in (d,e),!f`."""
    spelled = sorted(_requirements(selector), key=lambda requirement: requirement[0])
    return ",".join(_spelled(*requirement) for requirement in spelled)


def named_by(label: str) -> Callable[[View], tuple[Key, ...]]:
    """Return a function from an object to its resource's key, which is the value of this label."""

    def key_in_label(obj: View) -> tuple[Key, ...]:
        name = obj.text("metadata", "labels", label)
        return (Key(obj.namespace, name),) if name else ()

    return key_in_label


def _requirements(selector: Mapping[str, Any]) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    view = View(selector)
    for key, value in view.mapping("matchLabels").items():
        yield key, "=", (str(value),)
    for expression in view.items("matchExpressions"):
        requirement = View(expression)
        values = tuple(sorted(map(str, requirement.items("values"))))
        yield requirement.text("key"), requirement.text("operator"), values


def _holds(key: str, operator: str, values: tuple[str, ...], labels: Mapping[str, Any]) -> bool:
    match operator:
        case "=" | "In":
            return labels.get(key) in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
        case _:
            return False


def _spelled(key: str, operator: str, values: tuple[str, ...]) -> str:
    match operator:
        case "=":
            return f"{key}={values[0]}"
        case "Exists":
            return key
        case "DoesNotExist":
            return f"!{key}"
        case _:
            return f"{key} {operator.lower()} ({','.join(values)})"


def waits_for(
    deployment: Deployment | None,
    pods: Iterable[Pod] = (),
    *,
    may_be_zero: bool = False,
    lasting: bool = False,
) -> str:
    """Return why a Deployment is not available; empty if it is available.

    Available means: the Deployment controller has seen the newest generation, every replica is
    of that generation and available, there is at least one unless it `may_be_zero`, and the
    Deployment has `Available=True`. The generation read here is never older than our own last
    write, since the cache stores the response of every apply.

    The reasons are those of the Deployment itself and of the first of its pods by name. Text of
    others is cut to 600 characters and escaped. `lasting` leaves out numbers and pods, as far as
    the Deployment says why: that stays the same until somebody acts.
    """
    if deployment is None:
        return "it has no Deployment of its own yet"
    lack = next(_lacks(deployment, may_be_zero=may_be_zero), "")
    if not lack or _is_unseen(deployment):
        return lack
    whys = tuple(filter(None, _whys(deployment)))
    if lasting and whys:
        return _USED.sub("", ": ".join(whys))
    mine = (pod for pod in pods if pod.deployment == deployment.name)
    return cut(", ".join((": ".join((lack, *whys)), *_waiting(mine))), LONGEST_WORDS)


def _waiting(pods: Iterable[Pod]) -> tuple[str, ...]:
    """Return why the first of some pods by name is not ready, in words; empty if all are."""
    mine = [(pod.name, why) for pod in pods if (why := pod.why_not_ready)]
    return tuple(printable(f"pod {name}: {why}", LONGEST_REASON) for name, why in sorted(mine)[:1])


def why_stuck(deployment: Deployment | None) -> str:
    """Return Kubernetes's reason why waiting does not help a rollout; empty if it may help.

    That is `ProgressDeadlineExceeded`, if the newest generation's rollout made no progress for
    `spec.progressDeadlineSeconds`, or `DeploymentPaused`, if somebody paused it before its pods had
    the newest template. It is of interest only while `waits_for` returns something.
    """
    if deployment is None or _is_unseen(deployment):
        return ""
    if _is_held(deployment):
        return PAUSED
    reason = deployment.reason("Progressing")
    return reason if reason == DEADLINE_EXCEEDED else ""


def _is_unseen(deployment: Deployment) -> bool:
    return deployment.observed_generation < deployment.generation


def _is_held(deployment: Deployment) -> bool:
    """Return whether somebody paused a rollout; without a deadline no condition says so."""
    paused = deployment.paused or deployment.reason("Progressing") == PAUSED
    return paused and deployment.updated_replicas < deployment.replicas


def _whys(deployment: Deployment) -> Iterator[str]:
    """Yield why pods are missing, as the Deployment says: the same words until somebody acts."""
    if _is_held(deployment):
        words = ("resume", f"deployment/{deployment.name}", *within(deployment.namespace))
        resume = command_line("kubectl", "rollout", *words)
        yield f"it is paused (`{resume}` ends that)"
    if deployment.reason("Progressing") == DEADLINE_EXCEEDED:
        yield "its rollout has made no progress for spec.progressDeadlineSeconds"
    elif deployment.condition("Progressing") == "False":
        yield _said(deployment, "Progressing")
    if deployment.condition("ReplicaFailure") == "True":
        yield _said(deployment, "ReplicaFailure")


def _said(deployment: Deployment, kind: str) -> str:
    """Return the text of a condition without the name of a pod, which is another each time."""
    text = cut(deployment.message(kind) or deployment.reason(kind), 2 * LONGEST_REASON)
    return printable(_SUFFIX.sub("-…", _POD_NAME.sub(r'\1 "…"', text)), LONGEST_REASON)


def missing_port(ports: Iterable[Mapping[str, Any]], pod_spec: Mapping[str, Any]) -> str:
    """Return to which port of a Service no container answers; empty if there is none.

    A `targetPort` that is a name has to be the name of a container's port of the same protocol, as
    the EndpointSlice controller looks it up (`endpointslice.FindPort`): in the containers, and in
    init containers that go on running. A `targetPort` that is a number needs no declaration.
    """
    names = set(_named_ports(View(pod_spec)))
    lacks: list[str] = []
    for port in map(View, ports):
        name, protocol = port.text("targetPort"), port.text("protocol") or TCP
        if name and (name, protocol) not in names:
            leads = f"no container has a {protocol} port named {name}"
            lacks.append(f"{leads}, to which port {port.number('port')} of the Service leads")
    return lacks[0] + (f" (and {len(lacks) - 1} more)" if len(lacks) > 1 else "") if lacks else ""


def _named_ports(pod_spec: View) -> Iterator[tuple[str, str]]:
    sidecars = (
        container
        for container in pod_spec.items("initContainers")
        if View(container).text("restartPolicy") == "Always"
    )
    for container in (*pod_spec.items("containers"), *sidecars):
        for port in map(View, View(container).items("ports")):
            yield port.text("name"), port.text("protocol") or TCP


def replicas_of(name: str, chosen: Mapping[str, Any], pods: Iterable[Pod]) -> tuple[Pod, ...]:
    """Return the pods of a Deployment, as its ReplicaSets count them, sorted by name.

    The Deployment owns them through its ReplicaSets, its selector `chosen` selects them, and they
    have not ended and are not being deleted.
    """
    mine = (p for p in pods if p.deployment == name and matches(chosen, p.labels) and p.active)
    return tuple(sorted(mine, key=lambda pod: pod.name))


def _lacks(deployment: Deployment, *, may_be_zero: bool) -> Iterator[str]:
    wanted, there = deployment.replicas, deployment.status_replicas
    updated, available = deployment.updated_replicas, deployment.available_replicas
    surplus = max(there, updated, available) - wanted
    if deployment.text("metadata", "deletionTimestamp"):
        yield "it is being deleted"
    if _is_unseen(deployment):
        yield "its controller has not seen the newest generation yet"
    if wanted == 0 and not may_be_zero:
        yield "it is scaled to zero"
    if updated < wanted:
        yield f"{updated} of {wanted} replicas are up to date"
    if min(there, available) < wanted:
        yield f"{min(there, available)} of {wanted} replicas are available"
    if surplus > 0:
        yield f"{surplus} surplus replicas are still there"
    if deployment.condition("Available") != "True":
        yield "its status has no condition Available=True"


CONFINED: Final[Mapping[str, Any]] = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
}
"""The security context of a container without privileges and with a read-only file system."""


def unprivileged(user: int) -> Object:
    """Return the security context of pods that run with this uid and gid."""
    return {
        "runAsGroup": user,
        "runAsNonRoot": True,
        "runAsUser": user,
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def answers(port: int, *, every: int, failures: int) -> Object:
    """Return a probe that opens a TCP connection `every` so many seconds."""
    return {"tcpSocket": {"port": port}, "periodSeconds": every, "failureThreshold": failures}
