"""Secret: the certificates that replicas share: created once, then changed by apply.

If two replicas write at the same time, one is refused and reads again: the resource version is the
lock.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hedgerow.kube.secret_errors import withholding
from hedgerow.serving.certificates.material import Material, UnusableError
from hedgerow_schemas.base import ApiResource, View

if TYPE_CHECKING:
    from hedgerow.kube.object_api import ObjectApi
    from hedgerow_schemas.base import Object

SECRET: Final = ApiResource("v1", "Secret", "secrets")
TYPE: Final = "kubernetes.io/tls"
MISSING: Final = "1"
"""A resource version that no object has: with it, an apply creates the object or fails."""


@dataclass(frozen=True, slots=True)
class Stored:
    """The content of the Secret: `material`, or a `flaw` in it; no uid: there is no Secret."""

    uid: str = ""
    version: str = ""
    material: Material | None = None
    flaw: str = ""


class SecretStore:
    """One Secret. Its methods raise a KubeError whose text never contains the Secret's values."""

    def __init__(self, cluster: ObjectApi, *, name: str, namespace: str, manager: str) -> None:
        self._cluster = cluster
        self._manager = manager
        self.name = name
        self.namespace = namespace

    def __str__(self) -> str:
        """Return kind, namespace and name."""
        return f"Secret {self.namespace}/{self.name}"

    async def read_secret(self) -> Stored:
        """Return the content of the Secret."""
        live = await self._cluster.read_object(SECRET, self.name, self.namespace)
        return Stored() if live is None else _stored(live)

    async def write(self, material: Material, over: Stored) -> Stored:
        """Store the material in place of `over`; raises Stale if the Secret has changed since."""
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
        with withholding(SECRET):
            applied = await self._cluster.apply(SECRET, body, manager=self._manager)
        return _stored(applied.object)


def _stored(live: Object) -> Stored:
    seen = View(live)
    uid, version = seen.uid, seen.text("metadata", "resourceVersion")
    try:
        return Stored(uid, version, Material.from_secret(seen.mapping("data")))
    except UnusableError as error:
        return Stored(uid, version, flaw=str(error))
