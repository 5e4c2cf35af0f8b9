"""Claims: an EphemeralVolumeClaim makes a PersistentVolumeClaim of its size, with its labels."""

from __future__ import annotations

from typing import ClassVar

from hedgerow import (
    ApiResource,
    Apply,
    Controller,
    CustomResource,
    Desired,
    Model,
    Observed,
    Status,
    View,
    main,
    ready,
)


class PersistentVolumeClaim(View):
    """A PersistentVolumeClaim, as it is read."""

    api: ClassVar[ApiResource] = ApiResource(
        "v1", "PersistentVolumeClaim", "persistentvolumeclaims"
    )


class ClaimSpec(Model):
    """What is wanted."""

    size: str


class EphemeralVolumeClaim(CustomResource):
    """A volume that goes with its claim."""

    api: ClassVar[ApiResource] = ApiResource(
        "kopf.dev/v1", "EphemeralVolumeClaim", "ephemeralvolumeclaims"
    )
    spec: ClaimSpec
    status: Status | None = None


def compose(claim: EphemeralVolumeClaim, observed: Observed) -> Desired:
    """Declare the PersistentVolumeClaim, and report that it is there."""
    name = claim.metadata.name
    volume = {
        "metadata": {"labels": claim.metadata.labels},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "standard",
            "resources": {"requests": {"storage": claim.spec.size}},
        },
    }
    there = observed.child(PersistentVolumeClaim, name) is not None
    told = ready(there, "Claimed" if there else "Waiting")
    return Desired((Apply(PersistentVolumeClaim, name, volume),), Status(conditions=(told,)))


CLAIMS = Controller("claims", EphemeralVolumeClaim, compose, owns=(PersistentVolumeClaim,))

if __name__ == "__main__":
    main((CLAIMS,), name="claims")
