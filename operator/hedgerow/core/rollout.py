"""Rollout: which pods are a Deployment's, when it counts as available, what it waits for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from hedgerow.core.selector import matches

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from hedgerow_schemas.builtin import Deployment, Pod

ONE_BY_ONE: Final[Mapping[str, Any]] = {
    "type": "RollingUpdate",
    "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0},
}
"""The strategy that loses least of what pods hold: a new one comes, then an old one goes.

With keys spread over n pods, 1/(n+1) of them are elsewhere at a time; going first, it were 1/n.
"""


def waits_for(
    deployment: Deployment | None, pods: Iterable[Pod] = (), *, may_be_zero: bool = False
) -> str:
    """Say what keeps a Deployment from being available; empty when nothing does.

    Available means: the Deployment controller has seen the newest generation, every replica is
    of that generation and available, there is at least one unless it `may_be_zero`, and it says
    `Available=True`. The generation read here is never older than our own last write, since the
    cache takes in the answer of every apply. Of its pods that wait, the first by name says why.
    """
    if deployment is None:
        return "it has no Deployment of its own yet"
    lack = next(_lacks(deployment, may_be_zero=may_be_zero), "")
    stuck = sorted(
        f"pod {pod.name}: {pod.waiting_reason}"
        for pod in pods
        if pod.deployment == deployment.name and pod.waiting_reason
    )
    return ", ".join([lack, *stuck[:1]]) if lack else ""


def replicas_of(name: str, chosen: Mapping[str, Any], pods: Iterable[Pod]) -> tuple[Pod, ...]:
    """Give the pods of a Deployment, as its ReplicaSets count them, by name.

    They are those that its selector `chosen` selects, down the chain of owners, and that have not
    ended and are not being deleted.
    """
    mine = (p for p in pods if p.deployment == name and matches(chosen, p.labels) and p.active)
    return tuple(sorted(mine, key=lambda pod: pod.name))


def _lacks(deployment: Deployment, *, may_be_zero: bool) -> Iterator[str]:
    wanted = max(deployment.replicas, deployment.status_replicas)
    if deployment.text("metadata", "deletionTimestamp"):
        yield "it is being deleted"
    if deployment.observed_generation < deployment.generation:
        yield f"its controller has not seen generation {deployment.generation} yet"
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
        yield "it does not say Available=True"
