"""Submission: a custom resource as the server would store it, before its children are planned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hedgerow.core import ownership
from hedgerow.core.forecast import PLACEHOLDER, Held, Refusal
from hedgerow.core.merge import merge
from hedgerow.core.meta import ObjectRef, annotation, identity, metadata
from hedgerow.kube.errors import Conflict, Forbidden, Invalid, Missing
from hedgerow.planning.rehearsal import NO_NAMESPACE, NO_RIGHTS

if TYPE_CHECKING:
    from datetime import datetime

    from hedgerow.kube.cluster import Cluster
    from hedgerow_schemas.base import Object

CLIENT_SIDE = "kubectl-client-side-apply"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
BY_CLIENT = "client-side apply has it, so it was merged as kubectl would"


@dataclass(frozen=True, slots=True)
class Submitted:
    """What would be stored, or why it would not be; `merged` tells why no server was asked."""

    live: Object | None
    merged: str = ""
    contested: tuple[Held, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Submission:
    """A manifest to be applied to what is `stored`, as a user's field manager."""

    ref: ObjectRef
    manifest: Object
    stored: Object | None
    field_manager: str
    now: datetime

    async def dry_run(self, cluster: Cluster, *, absent: bool) -> Submitted:
        """Ask the server what it would store; `absent`: the namespace is not there yet.

        Raises Missing when the server does not serve the kind, and KubeError.
        """
        if absent:
            return self._merged(NO_NAMESPACE)
        api = self.ref.api
        try:
            applied = await cluster.apply(
                api, self.manifest, manager=self.field_manager, dry_run=True
            )
        except Conflict as error:
            return self._contested(error)
        except (Forbidden, Invalid) as error:
            if isinstance(error, Forbidden) and not await self._may_apply(cluster):
                return self._merged(NO_RIGHTS)
            return Submitted(None, refusals=(Refusal(str(self.ref), error.message),))
        except Missing as error:
            if not error.served:
                raise
            return self._merged(NO_NAMESPACE)
        live = applied.object
        if self.stored is None:
            live = {**live, "metadata": {**metadata(live), "uid": PLACEHOLDER}}
        return Submitted(live, warnings=applied.warnings)

    async def _may_apply(self, cluster: Cluster) -> bool:
        """Tell whether it was something else than rights that forbade the apply."""
        verbs = ("patch",) if self.stored is not None else ("patch", "create")
        asked = [await cluster.allowed(v, self.ref.api, self.ref.namespace) for v in verbs]
        return all(asked)

    def _contested(self, error: Conflict) -> Submitted:
        """Tell who is in the way; not when it is what client-side apply wrote, which goes on."""
        if self.stored is not None and {c.manager for c in error.causes} == {CLIENT_SIDE}:
            return self._merged(BY_CLIENT, CLIENT_SIDE)
        verdict = ownership.judge(self.manifest, self.stored or {}, self.field_manager)
        known = {leaf.path: leaf for leaf in verdict.contested}
        held = [
            Held.by(str(self.ref), known[cause.field])
            if cause.field in known
            else Held(str(self.ref), cause.field, cause.manager)
            for cause in error.causes
        ]
        return Submitted(None, contested=tuple(held))

    def _merged(self, why: str, field_manager: str = "") -> Submitted:
        manager = field_manager or self.field_manager
        if self.stored is None:
            born = f"{self.now:%Y-%m-%dT%H:%M:%SZ}"
            meta: Object = {"uid": PLACEHOLDER, "generation": 1, "creationTimestamp": born}
            base = identity(self.ref)
            base["metadata"] = {**base["metadata"], **meta}
            return Submitted(merge(base, self.manifest, manager), why)
        stored, manifest = self.stored, self.manifest
        if manager == CLIENT_SIDE:
            stored, manifest = _as_applied(stored), _as_sent(stored, manifest)
        live = merge(stored, manifest, manager)
        if manager == CLIENT_SIDE:
            live = _operated(live, "Update")
        if live.get("spec") != self.stored.get("spec"):
            meta = {**metadata(live), "generation": metadata(live).get("generation", 0) + 1}
            live = {**live, "metadata": meta}
        return Submitted(live, why)


def _as_applied(stored: Object) -> Object:
    """Give the object as if client-side apply had been an apply: what it drops is dropped."""
    return _operated(stored, "Apply")


def _operated(live: Object, operation: str) -> Object:
    entries = [
        {**entry, "operation": operation} if entry.get("manager") == CLIENT_SIDE else entry
        for entry in metadata(live).get("managedFields") or ()
    ]
    return {**live, "metadata": {**metadata(live), "managedFields": entries}}


def _as_sent(stored: Object, manifest: Object) -> Object:
    """Give the manifest with the copy that client-side apply keeps, as it is."""
    copy = {LAST_APPLIED: annotation(stored, LAST_APPLIED)}
    meta = metadata(manifest)
    given: Object = meta.get("annotations") or {}
    annotations = {**given, **copy}
    return {**manifest, "metadata": {**meta, "annotations": annotations}}
