"""Object forecasts: what applying any objects of files would do, as some field manager.

The objects are planned one after another, as they would be applied: an earlier object may create
the namespace or define the kind of a later one. hedgerow's own kinds go on with the operator's
passes.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

from hedgerow.cli.connecting import elsewhere
from hedgerow.cli.program import registry, typed
from hedgerow.cli.targets import not_installed
from hedgerow.fields.canonical import builtin
from hedgerow.kube.errors import KubeError, Unreachable
from hedgerow.objects import ObjectRef, is_terminating, metadata
from hedgerow.texts import command_line, within
from hedgerow_schemas.base import ApiResource
from hedgerow_tools.fields.allocated import foreseen
from hedgerow_tools.fields.diff import is_held_otherwise
from hedgerow_tools.fields.forecast import Forecast, ObjectForecast, WriteRefusal, details, judged
from hedgerow_tools.fields.identity import named
from hedgerow_tools.fields.unserved import unserved
from hedgerow_tools.planning.dry_run import Submission, Submitted, planned_object
from hedgerow_tools.planning.files import flaw
from hedgerow_tools.planning.helm import release_of
from hedgerow_tools.planning.kinds import DEFINITION, KnownKinds

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hedgerow.contract import Controller
    from hedgerow_schemas.base import Object
    from hedgerow_tools.fields.structure import Structure
    from hedgerow_tools.planning.dry_run import UserApply
    from hedgerow_tools.planning.helm import Release
    from hedgerow_tools.planning.resource_forecasts import ResourceForecaster

MOST_SILENT = 3
"""Objects in turn about which the server gives no answer: it hangs, and no more is asked."""
NO_NAME = "(no name)"
"""Stands for the name of an object that has none."""
NO_KIND = "its kind is defined earlier in the files, and is not there yet"
NO_VERSION = "its version is defined earlier in the files, and is not there yet"
CHANGED_KIND = "its definition is changed earlier in the files, and the present one refuses it"
BY_PRESENT_KIND = "its definition is changed earlier in the files: the server knows the present one"
BEING_DELETED = "it is being deleted, whatever is applied to it"


@dataclass(slots=True)
class ObjectForecaster:
    """Makes the forecasts of a sequence of objects; `namespace` is that of those without one."""

    forecaster: ResourceForecaster
    namespace: str
    kinds: KnownKinds = field(init=False)
    _made: set[tuple[str, str, str]] = field(default_factory=set[tuple[str, str, str]])
    _absent: dict[str, bool] = field(default_factory=dict[str, bool])
    _silent: int = 0

    def __post_init__(self) -> None:
        """Begin without knowing any kind."""
        self.kinds = KnownKinds(self.forecaster.cluster)

    @property
    def applier(self) -> UserApply:
        """How the objects are applied."""
        return self.forecaster.applier

    async def forecast(self, manifest: Object) -> Forecast:
        """Return what would happen if the next object were applied.

        Raises KubeError if no server answers, or not in time about several objects in turn.
        """
        if problem := flaw(manifest):
            return self._refused(_unknown(manifest), problem)
        group_version, kind = str(manifest["apiVersion"]), str(manifest["kind"])
        ref = _unknown(manifest)
        try:
            served = await self.kinds.served(group_version, kind)
            api = served or self.kinds.defined.get((group_version, kind))
            if api is None:
                return self._refused(ref, self._unserved(group_version, kind))
            # Helm, unlike kubectl, has objects in other namespaces than the release's.
            place = metadata(manifest).get("namespace") if api.namespaced else ""
            if not self.applier.release and (problem := elsewhere(place)):
                return self._refused(ref, problem)
            ref = self._ref(api, manifest)
            body = self.applier.marked(_placed(manifest, ref))
            return await (self._planned(ref, body) if served else self._defined(ref, body))
        except Unreachable as error:
            if not error.sent or ref.api.plural == "":
                raise
            return self._unanswered(ref, error)
        except KubeError as error:
            if not error.code:
                raise
            return self._refused(ref, *details(error))

    async def release(self, manifests: Iterable[Object]) -> Release | None:
        """Return the release of Helm that one of the objects is of, as it is in the cluster."""
        for manifest in manifests:
            if not flaw(manifest) and (release := release_of(await self._stored(manifest))):
                return release
        return None

    async def _stored(self, manifest: Object) -> Object:
        """Return an object as it is in the cluster; empty if it is not there or may not be read."""
        try:
            api = await self.kinds.served(str(manifest["apiVersion"]), str(manifest["kind"]))
            if api is None:
                return {}
            ref = self._ref(api, manifest)
            return await self.forecaster.cluster.read_object(api, ref.name, ref.namespace) or {}
        except KubeError as error:
            if not error.code:
                raise
            return {}

    async def _planned(self, ref: ObjectRef, manifest: Object) -> Forecast:
        """Return the forecast of an object whose kind is served. Raises KubeError."""
        controller = _controller_of(ref.api.group_version, ref.api.kind)
        if controller is not None:
            return await self.forecaster.of_manifest(controller, manifest, made=self._made)
        cluster = self.forecaster.cluster
        stored = await cluster.read_object(ref.api, ref.name, ref.namespace)
        absent = stored is None and await self._is_absent(ref.namespace)
        structure = await self.forecaster.structures.of(ref.api)
        submission = self._submission(ref, manifest, stored, structure)
        submitted = await submission.dry_run(cluster, absent=absent)
        unchecked: list[str] = []
        if (ref.api.group, ref.api.kind) in self.kinds.changed:
            if submitted.refusals:
                causes = "; ".join(submitted.refusals[0].causes)
                submitted = submission.merged(f"{CHANGED_KIND}: {causes}")
            else:
                unchecked.append(BY_PRESENT_KIND)
        if is_terminating(stored or {}):
            unchecked.append(BEING_DELETED)
        if submitted.refusals and stored is not None:
            submitted = await self._with_remedy(ref, stored, submitted)
        result = self._forecast(ref, stored, submitted, structure, unchecked)
        self._remember(ref, manifest, result)
        self._silent = 0
        return result

    def _unanswered(self, ref: ObjectRef, error: Unreachable) -> Forecast:
        """Return that nothing is known of an object. Raises the error if that is so of several."""
        self._silent += 1
        if self._silent >= MOST_SILENT:
            raise error
        return judged(
            Forecast(
                **named(ref),
                field_manager=self.applier.manager,
                objects=(ObjectForecast(**named(ref), action="unknown"),),
                unanswered=f"{error}; --request-timeout waits longer",
            )
        )

    async def _defined(self, ref: ObjectRef, manifest: Object) -> Forecast:
        """Return the forecast of an object whose kind, or version of it, the files define.

        Raises KubeError.
        """
        stored, why = None, NO_KIND
        other = await self.kinds.in_other_version(ref.api)
        if other is not None:
            live = await self.forecaster.cluster.read_object(other, ref.name, ref.namespace)
            stored, why = live and {**live, "apiVersion": ref.api.group_version}, NO_VERSION
        submitted = self._submission(ref, manifest, stored).merged(why)
        return self._forecast(ref, stored, submitted)

    async def _is_absent(self, namespace: str) -> bool:
        if namespace and namespace not in self._absent:
            self._absent[namespace] = await self.forecaster.namespace(namespace) is None
        return self._absent.get(namespace, False)

    async def _with_remedy(self, ref: ObjectRef, stored: Object, submitted: Submitted) -> Submitted:
        """Add the remedy if managed fields of versions that are not served are in the way.

        Those of Kubernetes's own kinds are not: the server drops them by itself.
        """
        written: list[Object] = metadata(stored).get("managedFields") or []
        own = ref.api.group_version
        if builtin(own) or not unserved(written, {own}):
            return submitted
        try:
            gone = unserved(written, await self.kinds.versions(ref.api.group))
        except KubeError:
            return submitted
        if not gone:
            return submitted
        versions = ", ".join(sorted({str(entry["apiVersion"]) for entry in gone}))
        target = f"{ref.api.kind.lower()}.{ref.api.group}/{ref.name}"
        words = ("adopt", "--repair", target, *within(ref.namespace), "--yes")
        remedy = (
            f"fields are recorded in {versions}, which the server does not serve, and which may"
            f" block every apply: `{command_line(typed(), *words)}`"
        )
        refusals = (WriteRefusal(r.object, (*r.causes, remedy)) for r in submitted.refusals)
        return replace(submitted, refusals=tuple(refusals))

    def _ref(self, api: ApiResource, manifest: Object) -> ObjectRef:
        meta = metadata(manifest)
        place = str(meta.get("namespace") or self.namespace) if api.namespaced else ""
        return ObjectRef(api, place, str(meta["name"]))

    def _submission(
        self,
        ref: ObjectRef,
        manifest: Object,
        stored: Object | None,
        structure: Structure | None = None,
    ) -> Submission:
        now, made = self.forecaster.clock.now(), self._made
        return Submission(ref, manifest, stored, self.applier, now, made=made, structure=structure)

    def _forecast(
        self,
        ref: ObjectRef,
        stored: Object | None,
        submitted: Submitted,
        structure: Structure | None = None,
        unchecked: Iterable[str] = (),
    ) -> Forecast:
        lines = foreseen(stored, submitted.live, self.applier.manager, structure)
        changed = lines or submitted.taken or is_held_otherwise(stored, submitted.live)
        action = "created" if stored is None else "configured" if changed else "unchanged"
        if submitted.live is None:
            action, lines = "refused", ()
        return judged(
            Forecast(
                **named(ref),
                field_manager=self.applier.manager,
                objects=(planned_object(ref, action, lines, submitted),),
                contested=submitted.disputes,
                claims=submitted.taken,
                refusals=submitted.refusals,
                unchecked=tuple(unchecked),
            )
        )

    @staticmethod
    def _unserved(group_version: str, kind: str) -> str:
        """Return what to do about a kind that is not served."""
        controller = _controller_of(group_version, kind)
        if controller is not None:
            return not_installed(controller, typed())
        return (
            f"the server does not serve {kind} of {group_version}: install its definition first,"
            " or earlier in the files"
        )

    def _refused(self, ref: ObjectRef, *causes: str) -> Forecast:
        refusals = (WriteRefusal(str(ref), causes),)
        return self._forecast(ref, None, Submitted(None, refusals=refusals))

    def _remember(self, ref: ObjectRef, manifest: Object, forecast: Forecast) -> None:
        """Remember what the object makes way for."""
        if forecast.refusals:
            return
        self._made.add((ref.api.group, ref.api.plural, ref.name))
        if (manifest.get("apiVersion"), manifest.get("kind")) == DEFINITION:
            changed = any(line.is_change for obj in forecast.objects for line in obj.lines)
            self.kinds.define(manifest, changed=changed)


def _controller_of(group_version: str, kind: str) -> Controller[Any] | None:
    """Return the controller of a custom resource, or None."""
    custom = (controller for controller in registry().controllers if controller.is_custom)
    named = ((each, each.resource.api) for each in custom)
    asked = group_version, kind
    return next((each for each, api in named if (api.group_version, api.kind) == asked), None)


def unreadable(error: Exception) -> Forecast:
    """Return the forecast of a file that cannot be read, which says why."""
    ref = ObjectRef(ApiResource("", "a file", "", False), "", "that cannot be read")
    return judged(
        Forecast(
            **named(ref),
            field_manager="",
            objects=(ObjectForecast(**named(ref), action="refused"),),
            refusals=(WriteRefusal("file", (str(error),)),),
        )
    )


def _placed(manifest: Object, ref: ObjectRef) -> Object:
    """Return the manifest with the namespace that it is in, if any."""
    meta = {name: value for name, value in metadata(manifest).items() if name != "namespace"}
    place = {"namespace": ref.namespace} if ref.namespace else {}
    return {**manifest, "metadata": {**meta, **place}}


def _unknown(manifest: Object) -> ObjectRef:
    """Return a reference for messages to an object that cannot be placed."""
    given: Any = manifest.get("metadata")
    meta = cast("Object", given) if isinstance(given, dict) else {}
    named, place = meta.get("name"), meta.get("namespace")
    kind = str(manifest.get("kind") or "an object without a kind")
    api = ApiResource(str(manifest.get("apiVersion") or ""), kind, "", bool(place))
    return ObjectRef(api, str(place or ""), str(named or NO_NAME))
