"""Identity: which object a view is about."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

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
    uid: str = ""
    resource_version: str = ""


def identity_of(live: Object) -> ObjectIdentity:
    """Return which object it is."""
    meta = metadata(live)
    names = ("namespace", "name", "uid", "resourceVersion")
    return ObjectIdentity(
        live["apiVersion"], live["kind"], *(str(meta.get(name, "")) for name in names)
    )


def identity_of_ref(ref: ObjectRef) -> ObjectIdentity:
    """Return which object a reference is about."""
    return ObjectIdentity(ref.api.group_version, ref.api.kind, ref.namespace, ref.name)
