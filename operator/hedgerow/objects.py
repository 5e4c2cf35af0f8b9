"""Objects: their identity, owner references, annotations, and the labels that mark our children."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hedgerow_schemas.base import ApiResource, CustomResource, Object

CONTROLLER_LABEL = "hedgerow.dev/controller"
NORMAL_FORM_ANNOTATION = "hedgerow.dev/normal-form"


@dataclass(frozen=True, slots=True)
class ObjectRef:
    """One object: its kind, namespace and name, and the uid if it is about one exact object."""

    api: ApiResource
    namespace: str
    name: str
    uid: str = ""

    def __str__(self) -> str:
        """Return it as kubectl accepts it: `Deployment/demoblue-deployment`."""
        return f"{self.api.kind}/{self.name}"


@dataclass(frozen=True, slots=True)
class Installation:
    """One installation of hedgerow in a cluster: its field managers and its children's labels.

    Two installations in one cluster need different instance names: otherwise both would write as
    the same field manager.
    """

    instance: str = ""

    def field_manager(self, controller: str) -> str:
        """Return the field manager of a controller: one per controller, never per process."""
        return "-".join(filter(None, ("hedgerow", self.instance, controller)))

    def label(self, controller: str) -> str:
        """Return the value of `hedgerow.dev/controller` on a controller's children."""
        return ".".join(filter(None, (self.instance, controller)))


def ref_of(resource: CustomResource) -> ObjectRef:
    """Return the reference of a resource that was read from the cluster."""
    meta = resource.metadata
    return ObjectRef(resource.api, meta.namespace, meta.name, meta.uid)


def metadata(obj: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an object's metadata, or an empty map."""
    return obj.get("metadata") or {}


def controller_of(obj: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the owner reference with `controller: true`, or an empty map."""
    owners: list[Mapping[str, Any]] = metadata(obj).get("ownerReferences") or []
    none: Mapping[str, Any] = {}
    return next((owner for owner in owners if owner.get("controller") is True), none)


def annotation(obj: Mapping[str, Any], name: str) -> str:
    """Return an annotation's value, or an empty string."""
    annotations: Mapping[str, str] = metadata(obj).get("annotations") or {}
    return annotations.get(name, "")


def is_going(obj: Mapping[str, Any]) -> bool:
    """Return whether deletion of the object has begun: nothing is written to it any more."""
    return bool(metadata(obj).get("deletionTimestamp"))


def identity(ref: ObjectRef) -> Object:
    """Return the manifest that names an object and declares nothing."""
    meta: Object = {"name": ref.name}
    if ref.namespace:
        meta["namespace"] = ref.namespace
    if ref.uid:
        meta["uid"] = ref.uid
    return {"apiVersion": ref.api.group_version, "kind": ref.api.kind, "metadata": meta}


def controller_reference(owner: ObjectRef) -> Object:
    """Return the one owner reference of a child.

    `blockOwnerDeletion` is left out: setting it requires the right to update the owner's
    finalizers.
    """
    return {
        "apiVersion": owner.api.group_version,
        "kind": owner.api.kind,
        "name": owner.name,
        "uid": owner.uid,
        "controller": True,
    }


def digest(*parts: Any) -> str:
    """Return a short, stable digest of JSON values (16 hex digits of SHA-256)."""
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
