"""Submission: a custom resource as the API server would store it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from hedgerow.cli.plan import client_side_apply
from hedgerow.cli.plan.client_side_apply import ANNOTATIONS_LIMIT, LAST_APPLIED
from hedgerow.cli.plan.dry_run import NO_NAMESPACE, NO_RIGHTS
from hedgerow.cli.plan.forecast import PLACEHOLDER, HeldField, WriteRefusal
from hedgerow.cli.plan.merge import merge
from hedgerow.encoding import to_json
from hedgerow.fields import ownership
from hedgerow.fields.managed import entries
from hedgerow.fields.sets import subtree, union, united
from hedgerow.kube.errors import Conflict, Forbidden, Invalid, KubeError, Missing
from hedgerow.objects import ObjectRef, annotation, identity, metadata

if TYPE_CHECKING:
    from datetime import datetime

    from hedgerow.fields.paths import Tree
    from hedgerow.kube.cluster import ApplyResult, Cluster
    from hedgerow_schemas.base import Object

STORED_LIMIT = 1536 * 1024
"""The most bytes of a write that etcd accepts by default (--max-request-bytes)."""
MIGRATED = (
    "kubectl takes over what client-side apply held and applies again, which was worked out here"
)
NOTHING_GOES = (
    "`kubectl apply` has not applied this object before, and keeps the fields that the file"
    " leaves out; with --server-side it removes those that it holds"
)
_COPY = ("f:metadata", "f:annotations", f"f:{LAST_APPLIED}")
_KEEPER = "kubectl-last-applied"
"""The manager under which `kubectl apply --server-side` keeps client-side apply's copy."""


@dataclass(frozen=True, slots=True)
class Submitted:
    """What would be stored, or why not; `merged` says why no server was asked."""

    live: Object | None
    merged: str = ""
    contested: tuple[HeldField, ...] = ()
    refusals: tuple[WriteRefusal, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Submission:
    """A manifest to apply to the `stored` object, as `kubectl apply` does it.

    `field_manager` is the user's. `server_side`: as `kubectl apply --server-side` does it.
    `coming`: the namespace would be created first if it does not exist.
    """

    ref: ObjectRef
    manifest: Object
    stored: Object | None
    field_manager: str
    now: datetime
    server_side: bool = False
    coming: bool = False

    async def dry_run(self, cluster: Cluster, *, absent: bool) -> Submitted:
        """Return what the server would store; `absent`: the namespace does not exist yet.

        Raises Missing if the server does not serve the kind, and KubeError.
        """
        size = (
            0
            if self.server_side
            else client_side_apply.annotations_size(self.stored, self.manifest)
        )
        if size > ANNOTATIONS_LIMIT:
            return self._refused(_too_long(size))
        if absent and self.coming:
            return self._merged(NO_NAMESPACE)
        try:
            return await (
                self._by_server(cluster) if self.server_side else self._by_client(cluster)
            )
        except (Conflict, Forbidden, Invalid, Missing) as error:
            return await self._instead(cluster, error)

    async def _instead(self, cluster: Cluster, error: KubeError) -> Submitted:
        """Return what an error means: a refusal, or that the server could not be asked."""
        match error:
            case Conflict():
                return self._contested(error)
            case Forbidden():
                may = await self._may_apply(cluster)
                return self._refused(*error.details) if may else self._merged(NO_RIGHTS)
            case Missing() if not error.served:
                raise error
            case Missing() if self.coming:
                return self._merged(NO_NAMESPACE)
            case Missing():
                return self._refused(f"{error.message}: make it first, or earlier in the files")
            case _:
                return self._refused(*error.details)

    async def _by_server(self, cluster: Cluster) -> Submitted:
        applied = await cluster.apply(
            self.ref.api, self.manifest, manager=self.field_manager, dry_run=True
        )
        submitted = self._answered(applied)
        held = _by_client_side(applied.object)
        return await self._migrated(cluster, submitted, held) if held else submitted

    async def _by_client(self, cluster: Cluster) -> Submitted:
        api, place, manager = self.ref.api, self.ref.namespace, self.field_manager
        if self.stored is None:
            body = client_side_apply.creation(self.manifest)
            return self._answered(await cluster.dry_run_create(api, place, body, manager=manager))
        try:
            patch = client_side_apply.patch(self.stored, self.manifest)
        except ValueError as error:
            return self._refused(
                f"kubectl cannot read the annotation {LAST_APPLIED} ({error}): remove it, or use"
                " `kubectl apply --server-side`"
            )
        if not patch:
            return Submitted(self.stored)
        name = self.ref.name
        submitted = self._answered(
            await cluster.dry_run_patch(api, place, name, patch, manager=manager)
        )
        more = () if annotation(self.stored, LAST_APPLIED) else (NOTHING_GOES,)
        return replace(submitted, warnings=(*submitted.warnings, *more))

    def _answered(self, applied: ApplyResult) -> Submitted:
        live = applied.object
        size = len(to_json(live)) + self._overhead()
        if size > STORED_LIMIT:
            return self._refused(
                f"request is too large: to store it takes {size} bytes, and etcd takes"
                f" {STORED_LIMIT} unless it is configured otherwise (a dry run does not store it)"
            )
        if self.stored is None:
            live = {**live, "metadata": {**metadata(live), "uid": PLACEHOLDER}}
        return Submitted(live, warnings=applied.warnings)

    def _overhead(self) -> int:
        """Return the bytes of a transaction besides the object: three times its key."""
        api = self.ref.api
        key = f"/registry/{api.group}/{api.plural}/{self.ref.namespace}/{self.ref.name}"
        return 3 * len(key) + 32

    async def _migrated(self, cluster: Cluster, submitted: Submitted, held: Tree) -> Submitted:
        """Move client-side apply's fields to the applier, and remove those not declared any more.

        kubectl does this after a successful apply: k8s.io/client-go, util/csaupgrade. What the
        server makes of the removal, such as a default in its place, a dry run of it says.
        """
        live = submitted.live or {}
        moved = _moved(live, held, self.field_manager)
        merged = merge(moved, self.manifest, self.field_manager)
        if merged.get("spec") == live.get("spec") and _given(merged) == _given(live):
            return replace(submitted, live=merged)
        stored = self.stored or {}
        patch = _difference(_content(stored), _content(merged))
        try:
            answer = await cluster.dry_run_patch(
                self.ref.api, self.ref.namespace, self.ref.name, patch, manager=self.field_manager
            )
        except KubeError:
            return replace(submitted, live=_counted(merged, stored), merged=MIGRATED)
        held_by = {"managedFields": metadata(merged).get("managedFields")}
        asked = {**answer.object, "metadata": {**metadata(answer.object), **held_by}}
        return replace(submitted, live=asked)

    def _refused(self, *causes: str) -> Submitted:
        return Submitted(None, refusals=(WriteRefusal(str(self.ref), causes),))

    async def _may_apply(self, cluster: Cluster) -> bool:
        """Return whether we have the rights for the apply, so that it was forbidden otherwise."""
        made = ("patch", "create") if self.server_side else ("create",)
        verbs = ("patch",) if self.stored is not None else made
        asked = [await cluster.allowed(v, self.ref.api, self.ref.namespace) for v in verbs]
        return all(asked)

    def _contested(self, error: Conflict) -> Submitted:
        """Return the contested fields with their holders."""
        verdict = ownership.judge(self.manifest, self.stored or {}, self.field_manager)
        known = {leaf.path: leaf for leaf in verdict.contested}
        held = [
            HeldField.by(self.ref, known[cause.field])
            if cause.field in known
            else HeldField(str(self.ref), cause.field, cause.manager)
            for cause in error.causes
        ]
        return Submitted(None, contested=tuple(held))

    def _merged(self, why: str) -> Submitted:
        """Return the result of an apply, computed here without the server."""
        if self.stored is None:
            born = f"{self.now:%Y-%m-%dT%H:%M:%SZ}"
            meta: Object = {"uid": PLACEHOLDER, "generation": 1, "creationTimestamp": born}
            base = identity(self.ref)
            base["metadata"] = {**base["metadata"], **meta}
            return Submitted(merge(base, self.manifest, self.field_manager), why)
        base = self.stored if self.server_side else self._patched()
        live = merge(base, self.manifest, self.field_manager)
        return Submitted(_counted(live, self.stored), why)

    def _patched(self) -> Object:
        """Return the stored object without the fields that client-side apply removes."""
        stored = self.stored or {}
        try:
            return client_side_apply.patched(stored, client_side_apply.patch(stored, self.manifest))
        except ValueError:
            return stored


def _too_long(size: int) -> str:
    return (
        "metadata.annotations: Too long: `kubectl apply` keeps the whole manifest in an annotation,"
        f" which makes {size} bytes of annotations where the API server takes {ANNOTATIONS_LIMIT};"
        " use `kubectl apply --server-side`, and plan it with --server-side"
    )


def _given(live: Object) -> tuple[Any, Any]:
    """Return the parts of an object's metadata that users set: labels and annotations."""
    meta = metadata(live)
    return meta.get("labels") or {}, meta.get("annotations") or {}


def _content(obj: Object) -> Object:
    """Return what users set of an object, whose kind may have more than a spec."""
    meta = {
        name: metadata(obj)[name] for name in ("labels", "annotations") if name in metadata(obj)
    }
    left_out = ("apiVersion", "kind", "metadata", "status")
    return {"metadata": meta, **{k: v for k, v in obj.items() if k not in left_out}}


def _difference(before: Any, after: Any) -> Any:
    """Return the JSON merge patch (RFC 7386) from one value to another."""
    if not isinstance(before, dict) or not isinstance(after, dict):
        return after
    old, new = cast("Object", before), cast("Object", after)
    return {
        name: _difference(old.get(name), new.get(name))
        for name in {**old, **new}
        if old.get(name) != new.get(name)
    }


def _counted(live: Object, before: Object) -> Object:
    """Return the object with its next generation, if its spec changes."""
    if live.get("spec") == before.get("spec"):
        return live
    meta = {**metadata(live), "generation": metadata(before).get("generation", 0) + 1}
    return {**live, "metadata": meta}


def _by_client_side(live: Object) -> Tree:
    """Return the fields of client-side apply, whose `Update` entries have the manifest's copy."""
    held: Tree = {}
    for holder, _, tree in entries(live):
        if (holder.operation, holder.subresource) == ("Update", "") and _has_copy(tree):
            held = union(held, tree)
    return held


def _has_copy(tree: Tree) -> bool:
    return subtree(tree, _COPY) is not None


def _moved(live: Object, held: Tree, field_manager: str) -> Object:
    """Return the object with these fields held by an applier, and the copy by `_KEEPER`."""
    kept: list[Object] = []
    for entry in metadata(live).get("managedFields") or ():
        tree: Tree = entry.get("fieldsV1") or {}
        ours = (entry.get("manager"), entry.get("operation")) == (field_manager, "Apply")
        if ours and not entry.get("subresource"):
            kept.append({**entry, "fieldsV1": union(tree, held)})
        elif entry.get("operation") != "Update" or not _has_copy(tree):
            kept.append(entry)
    other_installation = {"manager": _KEEPER, "operation": "Apply", "fieldsV1": united({}, [_COPY])}
    return {**live, "metadata": {**metadata(live), "managedFields": [*kept, other_installation]}}
