"""Rollout: when a Deployment counts as available, and what it waits for when it is not."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from hedgerow_schemas.builtin import Deployment, Pod


def waits_for(deployment: Deployment | None, pods: Iterable[Pod] = ()) -> str:
    """Say what keeps a Deployment from being available; empty when nothing does.

    Available means: the Deployment controller has seen the newest generation, every replica is
    of that generation and available, there is at least one, and it says `Available=True`. The
    generation read here is never older than our own last write, since the cache takes in the
    answer of every apply. Of its pods that wait, the first by name says why.
    """
    if deployment is None:
        return "it does not exist yet"
    lack = next(_lacks(deployment), "")
    stuck = sorted(
        f"pod {pod.name}: {pod.waiting_reason}"
        for pod in pods
        if pod.deployment == deployment.name and pod.waiting_reason
    )
    return ", ".join([lack, *stuck[:1]]) if lack else ""


def _lacks(deployment: Deployment) -> Iterator[str]:
    wanted = max(deployment.replicas, deployment.status_replicas)
    if deployment.text("metadata", "deletionTimestamp"):
        yield "it is being deleted"
    if deployment.observed_generation < deployment.generation:
        yield f"its controller has not seen generation {deployment.generation} yet"
    if wanted == 0:
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
