"""Identity: which object a view is about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import asdict

from hedgerow.objects import metadata

if TYPE_CHECKING:
    from hedgerow.objects import ObjectRef
    from hedgerow_schemas.base import Object


class ObjectIdentity(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Which object it is, and in which version, as far as that is known."""

    api_version: str
    kind: str
    namespace: str = ""
    name: str = ""
    uid: str | UnsetType = UNSET
    resource_version: str | UnsetType = UNSET

    def __str__(self) -> str:
        """Return it as kubectl accepts it: `Deployment/web`."""
        return f"{self.kind}/{self.name}"


def identity_of(live: Object) -> ObjectIdentity:
    """Return which object it is."""
    meta = metadata(live)
    version = (meta.get(name, UNSET) for name in ("uid", "resourceVersion"))
    place = meta.get("namespace", ""), meta.get("name", "")
    return ObjectIdentity(live["apiVersion"], live["kind"], *place, *version)


def named(ref: ObjectRef) -> dict[str, Any]:
    """Return the members of ObjectIdentity for a reference."""
    return asdict(ObjectIdentity(ref.api.group_version, ref.api.kind, ref.namespace, ref.name))
