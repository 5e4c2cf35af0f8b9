"""Submission: an object of a file as the API server would store it, if it were applied."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from hedgerow.encoding import encode
from hedgerow.fields import ownership
from hedgerow.fields.applyconfiguration import without_nulls
from hedgerow.fields.managed_fields import Holder, entries
from hedgerow.fields.ownership import Leaf
from hedgerow.fields.redaction import is_secret
from hedgerow.fields.sets import subtree, union, united
from hedgerow.kube.errors import (
    ConfigError,
    Conflict,
    Forbidden,
    Invalid,
    KubeError,
    Missing,
    Unauthenticated,
    Unreachable,
)
from hedgerow.objects import PLACEHOLDER, ObjectRef, identity, metadata
from hedgerow.plan.conflict_messages import OTHER_VALUE
from hedgerow_schemas.base import ContestedField
from hedgerow_tools.fields.allocated import without_uid
from hedgerow_tools.fields.diff import difference
from hedgerow_tools.fields.forecast import WriteRefusal, held_by
from hedgerow_tools.fields.merge import merge
from hedgerow_tools.fields.relabelling import COPY, KUBECTL
from hedgerow_tools.planning import obstacles
from hedgerow_tools.planning.dry_run import NO_NAMESPACE, NO_RIGHTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from hedgerow.fields.paths import Tree
    from hedgerow.kube.cluster import Cluster
    from hedgerow.kube.object_api import ApplyResult
    from hedgerow_schemas.base import Object

STORED_LIMIT = 1536 * 1024
"""The most bytes of a write that etcd accepts by default (--max-request-bytes)."""
MIGRATED = (
    "kubectl takes over what client-side apply held and applies again, which was worked out here"
)
MANAGED_FIELDS = (
    "metadata.managedFields: the server takes no apply with it; leave it out of the file, as"
    " `kubectl get -o yaml` does"
)
NOT_SHOWN = "a warning of the server that may repeat values, and is not shown"
EXISTING = "default"
"""A namespace that every cluster has."""
_NO_DRY_RUN = "does not support dry run"
"""What the server says of an admission webhook that may have side effects."""
_SET_BY_USERS = ("annotations", "finalizers", "labels", "ownerReferences")
_KEEPER = "kubectl-last-applied"
"""The manager under which `kubectl apply --server-side` keeps client-side apply's copy."""


@dataclass(frozen=True, slots=True)
class UserApply:
    """How a user applies objects, as `kubectl apply --server-side` does.

    `takes`: by force, so that contested fields change hands.
    """

    manager: str = KUBECTL
    takes: bool = False


@dataclass(frozen=True, slots=True)
class Submitted:
    """What would be stored, or why not; `merged` says why no server was asked.

    `taken` are the fields that would be taken by force.
    """

    live: Object | None
    merged: str = ""
    contested: tuple[ContestedField, ...] = ()
    taken: tuple[ContestedField, ...] = ()
    refusals: tuple[WriteRefusal, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def forced(self) -> tuple[str, ...]:
        """The paths that would be taken by force."""
        return tuple(dict.fromkeys(held.path for held in self.taken))


@dataclass(frozen=True, slots=True)
class Submission:
    """A manifest to apply to the `stored` object.

    `coming`: the namespace would be created first if it does not exist.
    """

    ref: ObjectRef
    manifest: Object
    stored: Object | None
    applier: UserApply
    now: datetime
    coming: bool = False

    @property
    def field_manager(self) -> str:
        """The user's field manager."""
        return self.applier.manager

    async def dry_run(self, cluster: Cluster, *, absent: bool) -> Submitted:
        """Return what the server would store; `absent`: the namespace does not exist yet.

        Raises Missing if the server does not serve the kind, and KubeError.
        """
        if metadata(self.manifest).get("managedFields") is not None:
            return self._refused(MANAGED_FIELDS)
        if absent and self.coming:
            return await self._elsewhere(cluster)
        try:
            return await self._tried(cluster)
        except (ConfigError, Unauthenticated, Unreachable):
            raise
        except KubeError as error:
            return await self._instead(cluster, error)

    async def _instead(self, cluster: Cluster, error: KubeError) -> Submitted:
        """Return what an error means: a refusal, or that the server could not be asked."""
        match error:
            case Forbidden() if not await self._may_apply(cluster):
                return self.merged(NO_RIGHTS)
            case Invalid() if _NO_DRY_RUN in error.message:
                return self.merged(f"{error.message}, and so cannot be asked")
            case Missing() if not error.served:
                raise error
            case Missing() if self.coming:
                return await self._elsewhere(cluster)
            case Missing():
                return self._refused(f"{error.message}: make it first, or earlier in the files")
            case _:
                return self._refused(*self._causes(error), *self._obstacles(error))

    def _obstacles(self, error: KubeError) -> Iterable[str]:
        """Return what is in the way of an apply, beside the server's words."""
        if self.stored is None:
            return ()
        return obstacles.told(self.ref, error, self.manifest, self.stored, self.field_manager)

    async def _elsewhere(self, cluster: Cluster) -> Submitted:
        """Return the result of an apply whose namespace is not there yet.

        Whether the object is valid, a dry run says in a namespace that is there. What it says else,
        of a quota or of rights, is about that namespace alone.
        """
        # Create-only: an object of this name may be there.
        place = {"namespace": EXISTING, "resourceVersion": "1"}
        elsewhere = {**self.manifest, "metadata": {**metadata(self.manifest), **place}}
        try:
            await self._applied(cluster, elsewhere)
        except Invalid as error:
            if _NO_DRY_RUN not in error.message:
                return self._refused(*self._causes(error))
        except (ConfigError, Unauthenticated, Unreachable):
            raise
        except KubeError:
            pass
        return self.merged(NO_NAMESPACE)

    def _causes(self, error: KubeError) -> tuple[str, ...]:
        """Return why the server refuses a write; for a Secret without what may repeat values."""
        if is_secret(self.ref.api.kind):
            error.withhold()
        return error.details

    async def _applied(
        self, cluster: Cluster, manifest: Object, *, force: bool = False
    ) -> ApplyResult:
        return await cluster.apply(
            self.ref.api, manifest, manager=self.field_manager, force=force, dry_run=True
        )

    async def _tried(self, cluster: Cluster) -> Submitted:
        try:
            applied = await self._applied(cluster, self.manifest)
        except Conflict as error:
            return await self._forced(cluster, error)
        return await self._migrated(cluster, applied)

    async def _forced(self, cluster: Cluster, conflict: Conflict) -> Submitted:
        """Return what a forced apply would take, by a dry run of it, or what stands in its way."""
        try:
            applied = await self._applied(cluster, self.manifest, force=True)
        except KubeError as error:
            if self.applier.takes or not error.code:
                raise
            return Submitted(None, contested=tuple(self._contested(conflict, None)))
        held = tuple(self._contested(conflict, applied.object))
        if not self.applier.takes:
            return Submitted(None, contested=held)
        return replace(await self._migrated(cluster, applied), taken=held)

    def _contested(self, conflict: Conflict, forced: Object | None) -> Iterator[ContestedField]:
        """Yield the fields that a conflict names, with each of their holders.

        `forced` is the answer to a forced apply, if there is one: it tells the values.
        """
        found = difference(self.stored, forced, self.field_manager) if forced else ()
        lines = {line.path: line for line in found}
        for path in sorted({cause.field for cause in conflict.causes}):
            line = lines.get(path)
            named = [cause.manager for cause in conflict.causes if cause.field == path]
            if line is None:
                yield from (self._without_values(path, manager) for manager in named)
                continue
            held = [one for one in line.holders if not one.is_applier(self.field_manager, "")]
            holders = tuple(held or (Holder(manager, "") for manager in named))
            leaf = Leaf(path, line.field_path, "changed", line.new, line.old, holders, equal=False)
            yield from (held_by(self.ref, leaf, holder) for holder in holders)

    def _without_values(self, path: str, manager: str) -> ContestedField:
        name = str(self.ref)
        return ContestedField(object=name, path=path, reason=OTHER_VALUE, manager=manager or None)

    def _answered(self, applied: ApplyResult) -> Submitted:
        live, warnings = applied.object, applied.warnings
        if warnings and is_secret(self.ref.api.kind):
            warnings = (NOT_SHOWN,)
        size = len(encode(live)) + self._overhead()
        if size > STORED_LIMIT:
            return self._refused(
                f"request is too large: to store it takes {size} bytes, and etcd takes"
                f" {STORED_LIMIT} unless it is configured otherwise (a dry run does not store it)"
            )
        if self.stored is None:
            live = without_uid(live)
        return Submitted(live, warnings=warnings)

    def _overhead(self) -> int:
        """Return the bytes of a transaction besides the object: three times its key."""
        api = self.ref.api
        key = f"/registry/{api.group}/{api.plural}/{self.ref.namespace}/{self.ref.name}"
        return 3 * len(key) + 32

    async def _migrated(self, cluster: Cluster, applied: ApplyResult) -> Submitted:
        """Return what an apply comes to, with the fields of client-side apply taken over.

        They move to the applier, and those that are not declared any more are removed. kubectl does
        this after a successful apply: k8s.io/client-go, util/csaupgrade. What the server makes of
        the removal, such as a default in its place, a dry run of it says.
        """
        submitted, held = self._answered(applied), _by_client_side(applied.object)
        if submitted.live is None or not held:
            return submitted
        live = submitted.live
        moved = _moved(live, held, self.field_manager)
        merged = merge(moved, self.manifest, self.field_manager)
        if merged.get("spec") == live.get("spec") and _given(merged) == _given(live):
            return replace(submitted, live=merged)
        try:
            answer = await cluster.dry_run_patch(
                self.ref.api,
                self.ref.namespace,
                self.ref.name,
                _difference(_content(self.stored or {}), _content(merged)),
                manager=self.field_manager,
            )
        except KubeError:
            return replace(submitted, live=_counted(merged, self.stored or {}), merged=MIGRATED)
        return replace(submitted, live=_held_as(answer.object, merged))

    def _refused(self, *causes: str) -> Submitted:
        return Submitted(None, refusals=(WriteRefusal(str(self.ref), causes),))

    async def _may_apply(self, cluster: Cluster) -> bool:
        """Return whether we have the rights for the apply, so that it was forbidden otherwise."""
        verbs = ("patch",) if self.stored is not None else ("patch", "create")
        asked = [await cluster.allowed(v, self.ref.api, self.ref.namespace) for v in verbs]
        return all(asked)

    def merged(self, why: str) -> Submitted:
        """Return the result of the apply, computed here without the server."""
        if self.stored is None:
            born = f"{self.now:%Y-%m-%dT%H:%M:%SZ}"
            meta: Object = {"uid": PLACEHOLDER, "generation": 1, "creationTimestamp": born}
            base = identity(self.ref)
            base["metadata"] = {**base["metadata"], **meta}
            return Submitted(merge(base, self.manifest, self.field_manager), why)
        body = without_nulls(self.manifest)
        leaves = ownership.judge(body, self.stored, self.field_manager).contested
        held = tuple(held_by(self.ref, leaf, one) for leaf in leaves for one in leaf.holders)
        if held and not self.applier.takes:
            return Submitted(None, why, held)
        live = merge(self.stored, body, self.field_manager, taken=leaves)
        return Submitted(_counted(live, self.stored), why, taken=held)


def _given(live: Object) -> tuple[Any, Any]:
    """Return the parts of an object's metadata that users set: labels and annotations."""
    meta = metadata(live)
    return meta.get("labels") or {}, meta.get("annotations") or {}


def _content(obj: Object) -> Object:
    """Return what users set of an object, whose kind may have more than a spec."""
    meta = {name: metadata(obj)[name] for name in _SET_BY_USERS if name in metadata(obj)}
    left_out = ("apiVersion", "kind", "metadata")
    return {"metadata": meta, **{k: v for k, v in obj.items() if k not in left_out}}


def _held_as(live: Object, other: Object) -> Object:
    """Return the object with the managed fields of another version of it."""
    held_by = {"managedFields": metadata(other).get("managedFields")}
    return {**live, "metadata": {**metadata(live), **held_by}}


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
    return subtree(tree, COPY) is not None


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
    other_installation = {"manager": _KEEPER, "operation": "Apply", "fieldsV1": united({}, [COPY])}
    return {**live, "metadata": {**metadata(live), "managedFields": [*kept, other_installation]}}
