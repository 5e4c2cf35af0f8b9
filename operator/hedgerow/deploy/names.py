"""Names: the names and labels of one installation's objects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hedgerow.objects import PROGRAM, Installation
from hedgerow.shard import ends_as_shard

if TYPE_CHECKING:
    from hedgerow_schemas.base import Object

NAME_LABEL = "app.kubernetes.io/name"
INSTANCE_LABEL = "app.kubernetes.io/instance"
COMPONENT_LABEL = "app.kubernetes.io/component"
"""The label that tells the pods of one shard from those of others, such as `shard-2-of-8`."""
METRICS, HEALTH, WEBHOOK = 8080, 8081, 9443
"""Container ports, the defaults of the settings."""
SYSTEM, METRICS_AUTH, PUBLISHER = "system", "metrics-auth", "webhook"
CHILDREN, AUTHORS = "children", "authors"
VIEWER, EDITOR, METRICS_READER = "viewer", "editor", "metrics-reader"
RESERVED = frozenset(
    {SYSTEM, METRICS_AUTH, PUBLISHER, VIEWER, EDITOR, METRICS_READER, CHILDREN, AUTHORS}
    | {"metrics"}
)
"""Suffixes of object names; no instance name may be one of them, or end with one."""


def clashes(instance: str) -> bool:
    """Return whether an instance's names would clash: those of `a-webhook` with those of `a`."""
    is_reserved = any(f"-{instance}".endswith(f"-{suffix}") for suffix in RESERVED)
    return is_reserved or ends_as_shard(instance)


@dataclass(frozen=True, slots=True)
class Names:
    """The names of one installation; without an instance they start with just the program's.

    Raises ValueError if the program's name will not do.
    """

    instance: str = ""
    program: str = PROGRAM
    system_namespace: str = ""
    """The namespace that it is in, if not the program's own."""
    service_account: str = ""
    """The ServiceAccount of its pods, if not one of its own."""

    def __post_init__(self) -> None:
        """Raise ValueError if the program's name will not do."""
        _ = self.installation

    @property
    def installation(self) -> Installation:
        """The installation, which marks its writes and children."""
        return Installation(self.instance, self.program)

    @property
    def namespace(self) -> str:
        """The namespace that it is in."""
        return self.system_namespace or self.installation.system_namespace

    @property
    def base(self) -> str:
        """The name of its ServiceAccount, Deployment, Lease and most other objects."""
        return self.installation.base

    @property
    def account(self) -> str:
        """The name of the ServiceAccount of its pods."""
        return self.service_account or self.base

    @property
    def user(self) -> str:
        """The user that this ServiceAccount is."""
        return f"system:serviceaccount:{self.namespace}:{self.account}"

    @property
    def labels(self) -> dict[str, str]:
        """The labels of all its objects, which are also the selector of its pods."""
        return {NAME_LABEL: self.program, INSTANCE_LABEL: self.base}

    def cluster_wide(
        self, api_version: str, kind: str, name: str, labels: dict[str, str] | None = None
    ) -> Object:
        """Return the start of a cluster-scoped object: identity and labels."""
        metadata = {"name": name, "labels": {NAME_LABEL: self.program, **(labels or {})}}
        return {"apiVersion": api_version, "kind": kind, "metadata": metadata}

    def object(self, api_version: str, kind: str, suffix: str = "", namespace: str = "") -> Object:
        """Return the start of a namespaced object: identity and labels."""
        name = "-".join(filter(None, (self.base, suffix)))
        metadata = {"name": name, "namespace": namespace or self.namespace, "labels": self.labels}
        return {"apiVersion": api_version, "kind": kind, "metadata": metadata}
