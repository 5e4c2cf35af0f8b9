"""Submission: a custom resource as the server would store it, before its children are planned."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pydantic_core import from_json

from hedgerow.core import ownership
from hedgerow.core.fieldset import is_map
from hedgerow.core.forecast import PLACEHOLDER, Held, Refusal
from hedgerow.core.managed import entries
from hedgerow.core.merge import keyed, merge, tree_of
from hedgerow.core.meta import ObjectRef, annotation, digest, identity, metadata
from hedgerow.kube.errors import Conflict, Forbidden, Invalid, Missing
from hedgerow.planning.rehearsal import NO_NAMESPACE, NO_RIGHTS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from hedgerow.core.fieldset import Tree
    from hedgerow.kube.cluster import Applied, Cluster
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
        try:
            applied = await self._tried(cluster, self.manifest)
        except Conflict as error:
            return await self._by_client(cluster) if self._is_by_client else self._contested(error)
        except Invalid as error:
            return await self._anew(cluster) if self._is_by_client else self._refused(error.message)
        except Forbidden as error:
            may = await self._may_apply(cluster)
            return self._refused(error.message) if may else self._merged(NO_RIGHTS)
        except Missing as error:
            if not error.served:
                raise
            return self._merged(NO_NAMESPACE)
        return self._answered(applied)

    def _answered(self, applied: Applied) -> Submitted:
        live = applied.object
        if self._is_by_client:
            # A dry run cannot tell what kubectl would remove: it compares with what it sent last.
            trees = [tree for _, _, tree in entries(live)]
            return replace(self._continued(trees), warnings=applied.warnings)
        if self.stored is None:
            live = {**live, "metadata": {**metadata(live), "uid": PLACEHOLDER}}
        return Submitted(live, warnings=applied.warnings)

    @property
    def _is_by_client(self) -> bool:
        """Whether client-side apply keeps the object, so that the next apply goes on with it."""
        stored = self.stored or {}
        managers = {e.get("manager") for e in metadata(stored).get("managedFields") or ()}
        return CLIENT_SIDE in managers and bool(annotation(stored, LAST_APPLIED))

    async def _by_client(self, cluster: Cluster) -> Submitted:
        """Merge what client-side apply goes on with: nobody is in the way of that.

        What the server makes of the rest tells the keys of lists that are new.
        """
        verdict = ownership.judge(self.manifest, self.stored or {}, self.field_manager)
        rest = ownership.leave_out(self.manifest, verdict.contested)
        try:
            applied = await self._tried(cluster, rest)
        except (Conflict, Invalid):
            return await self._anew(cluster)
        return self._answered(applied)

    async def _anew(self, cluster: Cluster) -> Submitted:
        """Merge what client-side apply goes on with; whether it is valid is asked by another name.

        An apply leaves beside the manifest what client-side apply removes, which together may be
        invalid though the manifest is not.
        """
        meta = metadata(self.manifest)
        name = f"p{digest(meta['name'])}"[: len(str(meta["name"]))]
        alone = {**self.manifest, "metadata": {**meta, "name": name}}
        try:
            applied = await self._tried(cluster, alone)
        except Invalid as error:
            return self._refused(error.message.replace(f'"{name}"', f'"{meta["name"]}"'))
        except (Conflict, Forbidden):
            return self._continued()
        return self._answered(applied)

    async def _tried(self, cluster: Cluster, manifest: Object) -> Applied:
        return await cluster.apply(self.ref.api, manifest, manager=self.field_manager, dry_run=True)

    def _refused(self, message: str) -> Submitted:
        return Submitted(None, refusals=(Refusal(str(self.ref), message),))

    async def _may_apply(self, cluster: Cluster) -> bool:
        """Tell whether it was something else than rights that forbade the apply."""
        verbs = ("patch",) if self.stored is not None else ("patch", "create")
        asked = [await cluster.allowed(v, self.ref.api, self.ref.namespace) for v in verbs]
        return all(asked)

    def _contested(self, error: Conflict) -> Submitted:
        """Tell who is in the way."""
        verdict = ownership.judge(self.manifest, self.stored or {}, self.field_manager)
        known = {leaf.path: leaf for leaf in verdict.contested}
        held = [
            Held.by(str(self.ref), known[cause.field])
            if cause.field in known
            else Held(str(self.ref), cause.field, cause.manager)
            for cause in error.causes
        ]
        return Submitted(None, contested=tuple(held))

    def _merged(self, why: str) -> Submitted:
        """Work out what an apply comes to, where no server is asked."""
        if self.stored is None:
            born = f"{self.now:%Y-%m-%dT%H:%M:%SZ}"
            meta: Object = {"uid": PLACEHOLDER, "generation": 1, "creationTimestamp": born}
            base = identity(self.ref)
            base["metadata"] = {**base["metadata"], **meta}
            return Submitted(merge(base, self.manifest, self.field_manager), why)
        live = merge(self.stored, self.manifest, self.field_manager)
        return Submitted(_counted(live, self.stored), why)

    def _continued(self, shapes: Sequence[Tree] = ()) -> Submitted:
        """Work out what client-side apply comes to; `shapes` are trees that tell list keys."""
        stored = self.stored or {}
        manifest = keyed(_as_sent(stored, self.manifest), shapes)
        live = merge(_as_applied(stored), manifest, CLIENT_SIDE, shapes=shapes)
        live = _rebooked(live, lambda entry: {**entry, "operation": "Update"})
        return Submitted(_counted(live, stored), BY_CLIENT)


def _counted(live: Object, before: Object) -> Object:
    """Give the object with the generation that it gets."""
    if live.get("spec") == before.get("spec"):
        return live
    meta = {**metadata(live), "generation": metadata(live).get("generation", 0) + 1}
    return {**live, "metadata": meta}


def _as_applied(stored: Object) -> Object:
    """Give the object as if client-side apply had been an apply of what it sent last.

    That is what kubectl compares with: what it sent then and drops now is removed, and what the
    server added to it stays.
    """
    sent = _sent(stored)

    def applied(entry: Object) -> Object:
        tree = tree_of(sent, [entry.get("fieldsV1") or {}])
        return {**entry, "operation": "Apply", "fieldsV1": tree}

    return _rebooked(stored, applied)


def _sent(stored: Object) -> Object:
    """Give what client-side apply sent last, without the object's identity."""
    try:
        last = from_json(annotation(stored, LAST_APPLIED))
    except ValueError:
        return {}
    fields: Object = last if is_map(last) else {}
    meta = {k: v for k, v in metadata(fields).items() if k in ("labels", "annotations") and v}
    spec = {k: v for k, v in fields.items() if k not in ("apiVersion", "kind", "metadata")}
    return {"metadata": meta, **spec} if meta else spec


def _rebooked(live: Object, change: Callable[[Object], Object]) -> Object:
    entries = [
        change(entry) if entry.get("manager") == CLIENT_SIDE else entry
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
