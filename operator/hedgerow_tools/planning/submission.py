"""Submission: an object of a file as the API server would store it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from hedgerow.encoding import encode
from hedgerow.fields import ownership
from hedgerow.fields.applyconfiguration import without_nulls
from hedgerow.fields.managed_fields import entries
from hedgerow.fields.redaction import is_secret
from hedgerow.fields.sets import subtree, union, united
from hedgerow.kube.cluster import ApplyResult
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
from hedgerow.objects import PLACEHOLDER, ObjectRef, annotation, identity, metadata
from hedgerow.plan.conflict_messages import OTHER_VALUE
from hedgerow_schemas.base import ContestedField
from hedgerow_tools.fields import client_side_apply
from hedgerow_tools.fields.client_side_apply import ANNOTATIONS_LIMIT, LAST_APPLIED
from hedgerow_tools.fields.forcing import contested, names_all_keys
from hedgerow_tools.fields.forecast import WriteRefusal, held_by
from hedgerow_tools.fields.merge import merge, taken
from hedgerow_tools.planning import obstacles
from hedgerow_tools.planning.dry_run import NO_NAMESPACE, NO_RIGHTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from hedgerow.fields.ownership import Leaf
    from hedgerow.fields.paths import Tree
    from hedgerow.kube.cluster import Cluster
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
MANAGED_FIELDS = (
    "metadata.managedFields: the server takes no apply with it; leave it out of the file, as"
    " `kubectl get -o yaml` does"
)
FORCED = "what --force takes was worked out here, since an apply that takes nothing is refused"
NOT_SHOWN = "a warning of the server that may repeat values, and is not shown"
_NO_DRY_RUN = "does not support dry run"
"""What the server says of an admission webhook that may have side effects."""
_SET_BY_USERS = ("annotations", "finalizers", "labels", "ownerReferences")
_COPY = ("f:metadata", "f:annotations", f"f:{LAST_APPLIED}")
_KEEPER = "kubectl-last-applied"
"""The manager under which `kubectl apply --server-side` keeps client-side apply's copy."""


@dataclass(frozen=True, slots=True)
class UserApply:
    """How a user applies objects: in which way, and as which field manager (empty: kubectl's).

    `migrates`: what client-side apply held is taken over afterwards, as kubectl does. `takes`: by
    force, so that contested fields change hands.
    """

    field_manager: str = ""
    server_side: bool = False
    migrates: bool = True
    takes: bool = False

    @property
    def manager(self) -> str:
        """The field manager that the API server records."""
        return self.field_manager or ("kubectl" if self.server_side else client_side_apply.MANAGER)


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
    """A manifest to apply to the `stored` object, in the way of its user.

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
        size = (
            0
            if self.applier.server_side
            else client_side_apply.annotations_size(self.stored, self.manifest)
        )
        if size > ANNOTATIONS_LIMIT:
            return self._refused(_too_long(size))
        if self.applier.server_side and metadata(self.manifest).get("managedFields") is not None:
            return self._refused(MANAGED_FIELDS)
        if absent and self.coming:
            return self.merged(NO_NAMESPACE)
        try:
            by_server = self.applier.server_side
            return await (self._by_server(cluster) if by_server else self._by_client(cluster))
        except (ConfigError, Unauthenticated, Unreachable):
            raise
        except KubeError as error:
            return await self._instead(cluster, error)

    async def _instead(self, cluster: Cluster, error: KubeError) -> Submitted:
        """Return what an error means: a refusal, or that the server could not be asked."""
        match error:
            case Conflict():
                return await self._contested(cluster, error)
            case Forbidden() if not await self._may_apply(cluster):
                return self.merged(NO_RIGHTS)
            case Invalid() if _NO_DRY_RUN in error.message:
                return self.merged(f"{error.message}, and so cannot be asked")
            case Missing() if not error.served:
                raise error
            case Missing() if self.coming:
                return self.merged(NO_NAMESPACE)
            case Missing():
                return self._refused(f"{error.message}: make it first, or earlier in the files")
            case _:
                return self._refused(*self._causes(error), *self._obstacles(error))

    def _obstacles(self, error: KubeError) -> Iterable[str]:
        """Return what is in the way of a server-side apply, beside the server's words."""
        if not self.applier.server_side or self.stored is None:
            return ()
        return obstacles.told(self.ref, error, self.manifest, self.stored, self.field_manager)

    def _causes(self, error: KubeError) -> tuple[str, ...]:
        """Return why the server refuses a write; for a Secret without what may repeat values."""
        if is_secret(self.ref.api.kind):
            error.withhold()
        return error.details

    async def _by_server(self, cluster: Cluster) -> Submitted:
        try:
            applied = await self._applied(cluster, self.manifest)
        except Conflict as error:
            if not self.applier.takes:
                raise
            return await self._forced(cluster, error)
        submitted = self._answered(applied)
        held: Tree = _by_client_side(applied.object) if self.applier.migrates else {}
        return await self._migrated(cluster, submitted, held) if held else submitted

    async def _applied(self, cluster: Cluster, body: Object) -> ApplyResult:
        return await cluster.apply(self.ref.api, body, manager=self.field_manager, dry_run=True)

    async def _forced(self, cluster: Cluster, error: Conflict) -> Submitted:
        """Return what a forced apply would do, without one."""
        causes = sorted({cause.field for cause in error.causes})
        tracked = await self._tracked(cluster)
        found = contested(self.manifest, tracked, self.field_manager, causes)
        if len(found) < len(causes):
            raise error
        leaves = tuple(found.values())
        body = ownership.with_live(self.manifest, leaves)
        try:
            applied = await self._applied(cluster, body)
        except Invalid as refused:
            return await self._worked_out(cluster, body, leaves, refused)
        return await self._taking(cluster, applied, leaves)

    async def _worked_out(
        self, cluster: Cluster, body: Object, leaves: Sequence[Leaf], refused: Invalid
    ) -> Submitted:
        """Return the same where what is taken may make the apply valid, or else raise `refused`."""
        if not names_all_keys(self.manifest, self.stored or {}):
            raise refused
        merged = merge(self.stored or {}, without_nulls(body), self.field_manager)
        try:
            found = await self._taking(cluster, ApplyResult(merged, created=False), leaves)
        except Invalid:
            raise refused from None
        return replace(found, merged=f"{FORCED}: {'; '.join(self._causes(refused))}")

    async def _taking(
        self, cluster: Cluster, applied: ApplyResult, leaves: Sequence[Leaf]
    ) -> Submitted:
        """Return the result of an apply with these leaves taken as well; the server judges it.

        It does so as a patch in a dry run, which needs no force to change fields of others.
        """
        after = taken(applied.object, leaves, self.field_manager)
        answer = await self._patched_to(cluster, after)
        trees = [tree for _, _, tree in entries(answer.object)]  # with what the patch added
        after = taken(applied.object, leaves, self.field_manager, shapes=trees)
        live = _held_as(answer.object, after)
        warnings = tuple(dict.fromkeys((*applied.warnings, *answer.warnings)))
        found = self._answered(ApplyResult(live, created=False, warnings=warnings))
        return replace(found, taken=self._held(leaves))

    async def _patched_to(self, cluster: Cluster, after: Object) -> ApplyResult:
        """Return what the server would make of the stored object if it were changed to this."""
        patch = _difference(_content(self.stored or {}), _content(after))
        return await cluster.dry_run_patch(
            self.ref.api, self.ref.namespace, self.ref.name, patch, manager=self.field_manager
        )

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
            live = {**live, "metadata": {**metadata(live), "uid": PLACEHOLDER}}
        return Submitted(live, warnings=warnings)

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
        try:
            answer = await self._patched_to(cluster, merged)
        except KubeError:
            return replace(submitted, live=_counted(merged, self.stored or {}), merged=MIGRATED)
        return replace(submitted, live=_held_as(answer.object, merged))

    def _refused(self, *causes: str) -> Submitted:
        return Submitted(None, refusals=(WriteRefusal(str(self.ref), causes),))

    async def _may_apply(self, cluster: Cluster) -> bool:
        """Return whether we have the rights for the apply, so that it was forbidden otherwise."""
        made = ("patch", "create") if self.applier.server_side else ("create",)
        verbs = ("patch",) if self.stored is not None else made
        asked = [await cluster.allowed(v, self.ref.api, self.ref.namespace) for v in verbs]
        return all(asked)

    async def _contested(self, cluster: Cluster, error: Conflict) -> Submitted:
        """Return the contested fields with their holders."""
        causes = {one.field: one for one in sorted(error.causes, key=lambda one: one.field)}
        known = contested(self.manifest, await self._tracked(cluster), self.field_manager, causes)
        held: list[ContestedField] = []
        for path, cause in causes.items():
            if path in known:
                held += self._held([known[path]])
            else:
                by, name = cause.manager or None, str(self.ref)
                held += [ContestedField(object=name, path=path, reason=OTHER_VALUE, manager=by)]
        return Submitted(None, contested=tuple(held))

    async def _tracked(self, cluster: Cluster) -> Object:
        """Return the stored object as an apply sees it, with managed fields.

        If they were emptied, the server first gives all fields to `before-first-apply`, which it
        shows in the answer to an apply of nothing.
        """
        if self.stored is None or metadata(self.stored).get("managedFields"):
            return self.stored or {}
        try:
            return (await self._applied(cluster, identity(self.ref))).object
        except KubeError:
            return self.stored

    def _held(self, leaves: Iterable[Leaf]) -> tuple[ContestedField, ...]:
        """Return leaves with each of their holders."""
        return tuple(held_by(self.ref, leaf, holder) for leaf in leaves for holder in leaf.holders)

    def merged(self, why: str) -> Submitted:
        """Return the result of an apply, computed here without the server.

        Of a client-side apply the server leaves out each null, as if the field were not there.
        """
        body = without_nulls(self.manifest)
        if self.stored is None:
            born = f"{self.now:%Y-%m-%dT%H:%M:%SZ}"
            meta: Object = {"uid": PLACEHOLDER, "generation": 1, "creationTimestamp": born}
            base = identity(self.ref)
            base["metadata"] = {**base["metadata"], **meta}
            given = self.manifest if self.applier.server_side else body
            return Submitted(merge(base, given, self.field_manager), why)
        if not self.applier.server_side:
            live = merge(self._patched(), body, self.field_manager)
            return Submitted(_counted(live, self.stored), why)
        leaves = ownership.judge(body, self.stored, self.field_manager).contested
        held = self._held(leaves)
        if held and not self.applier.takes:
            return Submitted(None, why, held)
        live = taken(merge(self.stored, body, self.field_manager), leaves, self.field_manager)
        return Submitted(_counted(live, self.stored), why, taken=held)

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
