"""Workloads: label selectors, Deployment rollouts, ports and parts of pod templates.

Selectors have the semantics of apimachinery's `metav1.LabelSelectorAsSelector`. An ill-typed one
selects nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from hedgerow.contract import Key
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


def matches(selector: Mapping[str, Any], labels: Mapping[str, Any]) -> bool:
    """Return whether a label selector selects these labels; an empty one selects all."""
    return all(_holds(*requirement, labels) for requirement in _requirements(selector))


def selector_text(selector: Mapping[str, Any]) -> str:
    """Return the string form that kubectl and autoscalers parse: `a=b,c in (d,e),!f`."""
    spelled = sorted(_requirements(selector), key=lambda requirement: requirement[0])
    return ",".join(_spelled(*requirement) for requirement in spelled)


def named_by(label: str) -> Callable[[View], tuple[Key, ...]]:
    """Return a function from an object to its resource's key, which is the value of this label."""

    def of(obj: View) -> tuple[Key, ...]:
        name = obj.text("metadata", "labels", label)
        return (Key(obj.namespace, name),) if name else ()

    return of


def _requirements(selector: Mapping[str, Any]) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    view = View(selector)
    for key, value in view.mapping("matchLabels").items():
        yield key, "=", (str(value),)
    for expression in view.items("matchExpressions"):
        one = View(expression)
        values = tuple(sorted(map(str, one.items("values"))))
        yield one.text("key"), one.text("operator"), values


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
    deployment: Deployment | None, pods: Iterable[Pod] = (), *, may_be_zero: bool = False
) -> str:
    """Return what keeps a Deployment from being available; empty if it is available.

    Available means: the Deployment controller has seen the newest generation, every replica is
    of that generation and available, there is at least one unless it `may_be_zero`, and the
    Deployment has `Available=True`. The generation read here is never older than our own last
    write, since the cache stores the response of every apply. If some of its pods wait, the text
    also has the reason of the first one by name.
    """
    if deployment is None:
        return "it has no Deployment of its own yet"
    lack = next(_lacks(deployment, may_be_zero=may_be_zero), "")
    if not lack:
        return ""
    stuck = sorted(
        f"pod {pod.name}: {pod.waiting_reason}"
        for pod in pods
        if pod.deployment == deployment.name and pod.waiting_reason
    )
    return ", ".join([lack, *stuck[:1]])


def why_stuck(deployment: Deployment | None) -> str:
    """Return Kubernetes's reason why waiting does not help a rollout; empty if it may help.

    That is `ProgressDeadlineExceeded`, if the newest generation's rollout made no progress for
    `spec.progressDeadlineSeconds`, or `DeploymentPaused`, if somebody paused it before its pods had
    the newest template. It is of interest only while `waits_for` returns something.
    """
    if deployment is None or deployment.observed_generation < deployment.generation:
        return ""
    reason = deployment.reason("Progressing")
    ends = reason == PAUSED and deployment.updated_replicas < deployment.replicas
    return reason if ends or reason == DEADLINE_EXCEEDED else ""


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
        one
        for one in pod_spec.items("initContainers")
        if View(one).text("restartPolicy") == "Always"
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
    wanted = max(deployment.replicas, deployment.status_replicas)
    if deployment.text("metadata", "deletionTimestamp"):
        yield "it is being deleted"
    if deployment.observed_generation < deployment.generation:
        yield "its controller has not seen the newest generation yet"
    if wanted == 0 and not may_be_zero:
        yield "it is scaled to zero"
    if deployment.updated_replicas != wanted:
        yield f"{deployment.updated_replicas} of {wanted} replicas are up to date"
    if deployment.status_replicas != deployment.replicas:
        surplus = deployment.status_replicas - deployment.replicas
        yield f"{surplus} surplus replicas are still there"
    if deployment.available_replicas != wanted:
        yield f"{deployment.available_replicas} of {wanted} replicas are available"
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
