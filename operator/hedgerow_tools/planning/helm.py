"""Helm: what Helm 4 adds to the objects of a release, and which of them it does not apply.

helm.sh/helm/v4, pkg/action/validate.go.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hedgerow.objects import annotation, metadata

if TYPE_CHECKING:
    from hedgerow_schemas.base import Object

MANAGER: Final = "helm"
_BY_HELM: Final = {"app.kubernetes.io/managed-by": "Helm"}
_NAME: Final = "meta.helm.sh/release-name"
_NAMESPACE: Final = "meta.helm.sh/release-namespace"
_HOOK: Final = "helm.sh/hook"


@dataclass(frozen=True, slots=True)
class Release:
    """A release of Helm, by its name and the namespace in which Helm keeps it."""

    name: str
    namespace: str

    def marked(self, manifest: Object) -> Object:
        """Return an object of a chart as Helm applies it."""
        meta = metadata(manifest)
        labels: Object = meta.get("labels") or {}
        annotations: Object = meta.get("annotations") or {}
        added: Object = {
            "labels": {**labels, **_BY_HELM},
            "annotations": {**annotations, _NAME: self.name, _NAMESPACE: self.namespace},
        }
        return {**manifest, "metadata": {**meta, **added}}

    def obstacle(self, live: Object) -> str:
        """Return why Helm does not take this object for one of the release; empty if it does."""
        if self == release_of(live):
            return ""
        return (
            f"it exists and is not of the release {self.name} in {self.namespace}: Helm does not"
            " import it, unless with --take-ownership"
        )


def release_of(live: Object) -> Release | None:
    """Return the release that an object is of, if any."""
    labels: Object = metadata(live).get("labels") or {}
    if not labels.items() >= _BY_HELM.items():
        return None
    name, namespace = annotation(live, _NAME), annotation(live, _NAMESPACE)
    return Release(name, namespace) if name and namespace else None


def is_hook(manifest: Object) -> bool:
    """Return whether Helm creates an object at some time of its own, and does not apply it."""
    return bool(annotation(manifest, _HOOK))
