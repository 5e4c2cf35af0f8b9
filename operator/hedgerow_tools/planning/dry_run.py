"""Dry run: an object of a file as the API server would store it, if the user applied it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from msgspec import UNSET

from hedgerow.encoding import encode
from hedgerow.fields import ownership
from hedgerow.fields.applyconfiguration import without_nulls
from hedgerow.fields.managed_fields import Holder, all_holders, entries
from hedgerow.fields.ownership import Leaf
from hedgerow.fields.redaction import is_secret
from hedgerow.fields.sets import subtree, with_places
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
from hedgerow.kube.reviews import may_we
from hedgerow.objects import PLACEHOLDER, ObjectRef, annotation, identity, metadata
from hedgerow.plan.conflict_messages import OTHER_VALUE
from hedgerow.plan.yield_and_claim import place_of
from hedgerow_schemas.base import ContestedField
from hedgerow_tools.fields.allocated import without_uid
from hedgerow_tools.fields.diff import difference, writes_status
from hedgerow_tools.fields.forecast import ObjectForecast, WriteRefusal, details, held_by
from hedgerow_tools.fields.identity import named
from hedgerow_tools.fields.merge import merge
from hedgerow_tools.fields.relabelling import BEFORE_FIRST_APPLY, COPY, KUBECTL
from hedgerow_tools.fields.selection import Dispute
from hedgerow_tools.fields.sets import union
from hedgerow_tools.planning import obstacles
from hedgerow_tools.planning.client_side import patched
from hedgerow_tools.planning.simulated_cluster import NO_NAMESPACE, NO_RIGHTS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from datetime import datetime

    from hedgerow.fields.paths import Tree
    from hedgerow.fields.sets import FieldPath
    from hedgerow.kube.cluster import Cluster
    from hedgerow.kube.object_api import ApplyResult
    from hedgerow_schemas.base import Object
    from hedgerow_tools.fields.diff import Line
    from hedgerow_tools.fields.forecast import PlannedAction
    from hedgerow_tools.fields.structure import Structure
    from hedgerow_tools.planning.helm import Release

STORED_LIMIT = 1536 * 1024
"""The most bytes of a write that etcd accepts by default (--max-request-bytes)."""
MIGRATED = "{} takes over what client-side apply held, which was worked out here"
MANAGED_FIELDS = (
    "metadata.managedFields: the server takes no apply with it; leave it out of the file, as"
    " `kubectl get -o yaml` does"
)
NOT_SHOWN = "a warning of the server that may repeat values, and is not shown"
_NAMESPACES = "namespaces"
EXISTING = "default"
"""A namespace that every cluster has."""
_NO_DRY_RUN = "does not support dry run"
"""What the server says of an admission webhook that may have side effects."""
_SET_BY_USERS = ("annotations", "finalizers", "labels", "ownerReferences")
FLUX = "kustomize-controller"
"""Who applies Flux's Kustomizations."""
_FLUX_SSA = "kustomize.toolkit.fluxcd.io/ssa"
_KEEPER = "kubectl-last-applied"
"""The manager under which `kubectl apply --server-side` keeps client-side apply's copy."""


@dataclass(frozen=True, slots=True)
class UserApply:
    """How a user applies objects: by `kubectl apply --server-side`, or a `release` by Helm 4.

    `takes`: by force, so that contested fields change hands.
    """

    manager: str = KUBECTL
    takes: bool = False
    release: Release | None = None

    @property
    def tool(self) -> str:
        """The program that applies."""
        return "Helm" if self.release else "Flux" if self.manager == FLUX else KUBECTL

    def marked(self, manifest: Object) -> Object:
        """Return an object of the files with what the tool adds to it."""
        return self.release.marked(manifest) if self.release else manifest

    def past(self, live: Object) -> frozenset[tuple[str, str]]:
        """Return whose entries the tool makes its own applies, each by manager and operation.

        kubectl makes the updates that have the manifest's copy, Helm those of its own name. Flux
        makes those of all kubectl's names, and more (fluxcd/kustomize-controller,
        internal/controller/kustomization_controller.go).
        """
        if self.release:
            past = (holder for holder in _updaters(live) if holder.manager == self.manager)
        elif self.manager == FLUX:
            merges = annotation(live, _FLUX_SSA) == "merge"
            past = () if merges else filter(_is_past_of_flux, all_holders(live))
        else:
            past = _updaters(live, COPY)
        return frozenset((holder.manager, holder.operation) for holder in past)


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

    @property
    def disputes(self) -> tuple[Dispute, ...]:
        """The contested fields; the user, who applies them, settles them by the manifest."""
        return tuple(map(Dispute, self.contested))


def planned_object(
    ref: ObjectRef, action: PlannedAction, lines: tuple[Line, ...], submitted: Submitted
) -> ObjectForecast:
    """Return the forecast of an object that was submitted."""
    return ObjectForecast(
        **named(ref),
        action=action,
        merged=submitted.merged or None,
        forced=submitted.forced,
        warnings=submitted.warnings,
        lines=lines,
    )


@dataclass(frozen=True, slots=True)
class Submission:
    """A manifest to apply to the `stored` object.

    `made` are the objects that would be created first if they do not exist, each by its group,
    plural and name. `structure` is that of the object's kind, if known.
    """

    ref: ObjectRef
    manifest: Object
    stored: Object | None
    applier: UserApply
    now: datetime
    made: Collection[tuple[str, str, str]] = ()
    structure: Structure | None = None

    @property
    def field_manager(self) -> str:
        """The user's field manager."""
        return self.applier.manager

    @property
    def coming(self) -> bool:
        """Whether its namespace is one of those that would be created first."""
        return ("", _NAMESPACES, self.ref.namespace) in self.made

    async def dry_run(self, cluster: Cluster, *, absent: bool) -> Submitted:
        """Return what the server would store; `absent`: the namespace does not exist yet.

        Raises Missing if the server does not serve the kind, and KubeError.
        """
        if metadata(self.manifest).get("managedFields") is not None:
            return self._refused(MANAGED_FIELDS)
        if problem := self._not_imported():
            return self._refused(problem)
        if absent and self.coming:
            return await self._elsewhere(cluster)
        try:
            return await self._tried(cluster)
        except (ConfigError, Unauthenticated, Unreachable):
            raise
        except KubeError as error:
            return await self._instead(cluster, error)

    def _not_imported(self) -> str:
        """Return why Helm leaves the object alone before it applies it; empty if it does not."""
        release = self.applier.release
        return release.obstacle(self.stored) if release and self.stored is not None else ""

    async def _instead(self, cluster: Cluster, error: KubeError) -> Submitted:
        """Return what an error means: a refusal, or that the server could not be asked."""
        match error:
            case Forbidden() if not await self._may_apply(cluster):
                return self.merged(NO_RIGHTS)
            case Invalid() if _NO_DRY_RUN in error.message:
                return self.merged(f"{error.message}, and so cannot be asked")
            case Missing() if not error.served:
                raise error
            case Missing() if self._is_made(error):
                return self.merged(f"{error.message}: it is made earlier in the files")
            case Missing() if self.coming:
                return await self._elsewhere(cluster)
            case Missing():
                return self._refused(f"{error.message}: make it first, or earlier in the files")
            case _:
                return self._refused(*self._causes(error), *self._obstacles(error))

    def _is_made(self, error: Missing) -> bool:
        """Return whether an object is missing, such as a Role, that would be created first."""
        about: Object = error.status["details"]
        named = (about.get("group", ""), about.get("kind", ""), about["name"])
        return named[1] != _NAMESPACES and named in self.made

    def _obstacles(self, error: KubeError) -> Iterable[str]:
        """Return what is in the way of an apply, beside the server's words."""
        if self.stored is None:
            return ()
        return obstacles.sentences(self.ref, error, self.manifest, self.stored, self.field_manager)

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
        return details(error)

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
        """Return what a forced apply would take, by a dry run of it, or what stands in its way.

        What the tool itself holds by updates is in nobody's way: it takes that over before.
        """
        held = tuple(self._contested(conflict, None))
        try:
            applied = await self._applied(cluster, self.manifest, force=True)
        except KubeError as error:
            if self.applier.takes or not held or not error.code:
                raise
            return Submitted(None, contested=held)
        held = tuple(self._contested(conflict, applied.object))
        if held and not self.applier.takes:
            return Submitted(None, contested=held)
        return replace(await self._migrated(cluster, applied), taken=held)

    @property
    def _past(self) -> Collection[tuple[str, str]]:
        """Who is in nobody's way by updates: Helm takes its own over first, kubectl afterwards."""
        return self.applier.past(self.stored or {}) if self.applier.release else ()

    def _contested(self, conflict: Conflict, forced: Object | None) -> Iterator[ContestedField]:
        """Yield the fields that a conflict names, with each of their holders.

        `forced` is the answer to a forced apply, if there is one: it tells the values.
        """
        past = self._past
        causes = [cause for cause in conflict.causes if (cause.manager, "Update") not in past]
        differing = (
            difference(self.stored, forced, self.field_manager, self.structure) if forced else ()
        )
        lines = {line.path: line for line in differing}
        for path in sorted({cause.field for cause in causes}):
            line = lines.get(path)
            named = [cause.manager for cause in causes if cause.field == path]
            if line is None:
                yield from (self._without_values(path, manager) for manager in named)
                continue
            held = [
                holder
                for holder in line.holders
                if holder.manager in named and not holder.is_applier(self.field_manager, "")
            ]
            holders = tuple(held or (Holder(manager, "") for manager in named))
            new, old = (None if value is UNSET else value for value in (line.new, line.old))
            leaf = Leaf(path, place_of(path), "changed", new, old, holders, equal=False)
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
        """Return what an apply comes to, with the fields of the tool's own updates taken over.

        They move to the applier, and those that are not declared any more are removed. kubectl does
        this after a successful apply, Helm before: k8s.io/client-go, util/csaupgrade. What the
        server makes of the removal, such as a default in its place, a dry run of it says.
        """
        submitted, past = self._answered(applied), self.applier.past(applied.object)
        if submitted.live is None or not past:
            return submitted
        live = submitted.live
        looked_at = self.stored if self.applier.release and self.stored else live
        moved = _moved(live, past, self.applier, looked_at)
        merged = self._merge(moved, self._declared(live))
        if _content(merged) == _content(live):
            return replace(submitted, live=merged)
        try:
            answer = await cluster.send(
                patched(
                    self.ref.api,
                    self.ref.namespace,
                    self.ref.name,
                    _difference(_content(self.stored or {}), _content(merged)),
                    manager=self.field_manager,
                )
            )
        except KubeError:
            why = MIGRATED.format(self.applier.tool)
            return replace(submitted, live=_counted(merged, self.stored or {}), merged=why)
        return replace(submitted, live=_held_as(answer, merged))

    def _declared(self, live: Object) -> Object:
        """Return the manifest as the server takes it: without a status that has an endpoint."""
        if writes_status(live):
            return self.manifest
        return {name: value for name, value in self.manifest.items() if name != "status"}

    def _merge(self, live: Object, body: Object, taken: Iterable[Leaf] = ()) -> Object:
        return merge(live, body, self.field_manager, taken=taken, structure=self.structure)

    def _refused(self, *causes: str) -> Submitted:
        return Submitted(None, refusals=(WriteRefusal(str(self.ref), causes),))

    async def _may_apply(self, cluster: Cluster) -> bool:
        """Return whether we have the rights for the apply, so that it was forbidden otherwise."""
        verbs = ("patch",) if self.stored is not None else ("patch", "create")
        api, namespace = self.ref.api, self.ref.namespace
        asked = [await may_we(cluster, v, api.group, api.plural, namespace) for v in verbs]
        return all(asked)

    def merged(self, why: str) -> Submitted:
        """Return the result of the apply, computed here without the server."""
        if self.stored is None:
            born = f"{self.now:%Y-%m-%dT%H:%M:%SZ}"
            meta: Object = {"uid": PLACEHOLDER, "generation": 1, "creationTimestamp": born}
            base = identity(self.ref)
            base["metadata"] = {**base["metadata"], **meta}
            return Submitted(self._merge(base, self._declared(base)), why)
        body = without_nulls(self._declared(self.stored))
        leaves = ownership.judge(body, self.stored, self.field_manager).contested
        held = tuple(
            held_by(self.ref, leaf, holder)
            for leaf in leaves
            for holder in leaf.holders
            if (holder.manager, "Update") not in self._past
        )
        if held and not self.applier.takes:
            return Submitted(None, why, held)
        live = self._merge(self.stored, body, leaves)
        return Submitted(_counted(live, self.stored), why, taken=held)


def _updaters(live: Object, *held: FieldPath) -> Iterator[Holder]:
    """Yield those who hold something of the object itself by updates, with these places."""
    for holder, _, tree in entries(live):
        is_update = (holder.operation, holder.subresource) == ("Update", "")
        if is_update and all(subtree(tree, place) is not None for place in held):
            yield holder


def _is_past_of_flux(holder: Holder) -> bool:
    """Return whether Flux makes an entry its own: of kubectl's, also what was applied."""
    past = KUBECTL if holder.operation == "Apply" else (KUBECTL, BEFORE_FIRST_APPLY, FLUX)
    return not holder.subresource and holder.manager.startswith(past)


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


def _moved(
    live: Object, past: Collection[tuple[str, str]], applier: UserApply, before: Object
) -> Object:
    """Return the object with what these entries hold held by the applier.

    `before` is what the tool looks at. client-go moves what is recorded in the version of the
    applier's entry, and drops the rest; Flux moves all. kubectl leaves the copy of the manifest to
    `_KEEPER`, for its own applies only.
    """
    own = {(applier.manager, "Apply")}
    updates = [entry for entry in _managed(live) if _is_of(entry, past)]
    ours = [entry for entry in _managed(live) if _is_of(entry, own)]
    kept = [entry for entry in _managed(live) if entry not in (*updates, *ours)]
    applied = (entry for entry in _managed(before) if _is_of(entry, own))
    version = next(applied, updates[0]).get("apiVersion")
    tree: Tree = ours[0].get("fieldsV1") or {} if ours else {}
    for entry in updates:
        if applier.tool == "Flux" or entry["apiVersion"] == version:
            tree = union(tree, entry.get("fieldsV1") or {})
    label = {"manager": applier.manager, "operation": "Apply"}
    kept.append({**(*ours, *updates)[0], **label, "fieldsV1": tree})
    if applier.manager == KUBECTL and not applier.release:
        kept.append({"manager": _KEEPER, "operation": "Apply", "fieldsV1": with_places({}, [COPY])})
    return {**live, "metadata": {**metadata(live), "managedFields": kept}}


def _managed(live: Object) -> list[Object]:
    return metadata(live).get("managedFields") or []


def _is_of(entry: Object, writers: Collection[tuple[str, str]]) -> bool:
    """Return whether an entry is of such writes to the object itself."""
    writer = entry.get("manager"), entry.get("operation")
    return writer in writers and not entry.get("subresource")
