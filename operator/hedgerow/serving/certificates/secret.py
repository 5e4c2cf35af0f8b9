"""Secret: where replicas share certificates: created once, then changed by apply.

Of two replicas that write at the same time one is refused, and looks again: the resource version
is the lock.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hedgerow.serving.certificates.issuing import AUTHORITY_KEY, Material, UnusableError
from hedgerow_schemas.base import ApiResource, View

if TYPE_CHECKING:
    from hedgerow.kube.cluster import Cluster
    from hedgerow_schemas.base import Object

SECRET: Final = ApiResource("v1", "Secret", "secrets")
TYPE: Final = "kubernetes.io/tls"
MISSING: Final = "1"
"""A resource version that no object has any more: it makes an apply create, or fail."""


@dataclass(frozen=True, slots=True)
class Stored:
    """What is stored: `material`, or `flaw`, why it is none; without a uid there is no Secret.

    `surplus` says that an authority's key is there besides, as earlier versions kept it.
    """

    uid: str = ""
    version: str = ""
    material: Material | None = None
    flaw: str = ""
    surplus: bool = False


class SecretStore:
    """One Secret. Its methods raise a KubeError; none has values of the Secret in its text."""

    def __init__(self, cluster: Cluster, *, name: str, namespace: str, manager: str) -> None:
        self._cluster = cluster
        self._manager = manager
        self.name = name
        self.namespace = namespace

    def __str__(self) -> str:
        """Name it as kubectl does, with its namespace."""
        return f"Secret {self.namespace}/{self.name}"

    async def read(self) -> Stored:
        """Return what is stored."""
        live = await self._cluster.read(SECRET, self.name, self.namespace)
        return Stored() if live is None else _stored(live)

    async def write(self, material: Material, over: Stored) -> Stored:
        """Store the material over what was read; raises Stale when that is no longer stored."""
        precondition = {"uid": over.uid} if over.uid else {}
        body: Object = {
            "metadata": {
                "name": self.name,
                "namespace": self.namespace,
                "resourceVersion": over.version or MISSING,
                **precondition,
            },
            "type": TYPE,
            "data": material.wire(),
        }
        applied = await self._cluster.apply(SECRET, body, manager=self._manager)
        return _stored(applied.object)


def _stored(live: Object) -> Stored:
    seen = View(live)
    uid, version = seen.uid, seen.text("metadata", "resourceVersion")
    data = seen.mapping("data")
    try:
        return Stored(uid, version, Material.read(data), surplus=AUTHORITY_KEY in data)
    except UnusableError as error:
        return Stored(uid, version, flaw=str(error))
