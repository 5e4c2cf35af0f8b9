"""Scaler: holds the replicas of Deployments that say by an annotation how many they want."""

from __future__ import annotations

from typing import ClassVar

from hedgerow import (
    ApiResource,
    BuiltIn,
    ContributesTo,
    Contribution,
    Controller,
    Deployment,
    Desired,
    Key,
    Observed,
    Resource,
    Status,
    View,
    main,
    stalled,
)

WANTED = "scaler.example.com/replicas"


class Autoscaler(View):
    """A HorizontalPodAutoscaler, as it is read."""

    api: ClassVar[ApiResource] = ApiResource(
        "autoscaling/v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers"
    )


class Workload(Resource):
    """A Deployment; nothing is installed for it."""

    api: ClassVar[ApiResource] = Deployment.api


def target(autoscaler: View) -> Key | None:
    """Return the Deployment that an autoscaler scales."""
    name = autoscaler.text("spec", "scaleTargetRef", "name")
    kind = autoscaler.text("spec", "scaleTargetRef", "kind")
    return (autoscaler.namespace, name) if kind == "Deployment" else None


def compose(workload: Workload, observed: Observed) -> Desired:
    """Contribute the least replicas of the autoscalers, or the replicas where there is none."""
    wanted = workload.metadata.annotations.get(WANTED)
    if wanted is None:
        return Desired()
    if not wanted.isdecimal():
        return Desired(status=Status(conditions=stalled("Invalid", f"{WANTED} is no number")))
    contributions = tuple(
        Contribution(Autoscaler, autoscaler.name, {"spec": {"minReplicas": int(wanted)}})
        for autoscaler in observed.all(Autoscaler)
    )
    own = Contribution(Deployment, workload.metadata.name, {"spec": {"replicas": int(wanted)}})
    return Desired(contributions=contributions or (own,))


SCALER = Controller(
    "scaler",
    Workload,
    compose,
    owns=(),
    contributes=(ContributesTo(Autoscaler, (("spec", "minReplicas"),), of=target),),
    built_in=BuiltIn(annotation_prefix=WANTED, contributes=(("spec", "replicas"),)),
)

if __name__ == "__main__":
    main((SCALER,))
