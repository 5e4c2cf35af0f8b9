"""Simulation: the operator's own passes over one resource, on a simulated cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from hedgerow.kube.errors import (
    UNDECODABLE,
    AlreadyExists,
    Conflict,
    Forbidden,
    Invalid,
    Missing,
    Unavailable,
)
from hedgerow.objects import ObjectRef, metadata
from hedgerow.plan.status import reader_of
from hedgerow.plan.writes import declare
from hedgerow.runtime.cache.caches import build
from hedgerow.runtime.cache.intake import CacheIntake
from hedgerow.runtime.events.publisher import EventPublisher
from hedgerow.runtime.events.recorder import Recorder
from hedgerow.runtime.meters import Meters
from hedgerow.runtime.namespaces import Permission
from hedgerow.runtime.passes.applier import AppliedWrite, Applier
from hedgerow.runtime.passes.context import PassContext
from hedgerow.runtime.passes.observation import ResourcePlanner
from hedgerow.runtime.passes.reconciler import Reconciler
from hedgerow.runtime.passes.resource_pass import Outcome
from hedgerow.runtime.passes.state import ResourceState
from hedgerow_tools.fields.forecast import rolled_out
from hedgerow_tools.planning.simulated_cluster import EndlessError, SimulatedCluster

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hedgerow.contract import Controller, Create
    from hedgerow.fields.sets import FieldPath
    from hedgerow.objects import Installation
    from hedgerow.plan.writes import Write
    from hedgerow.runtime.cache.caches import Source
    from hedgerow.runtime.clock import Clock
    from hedgerow.runtime.meters import Meter
    from hedgerow.runtime.passes.observation import Observation
    from hedgerow_schemas.base import Object, Resource
    from hedgerow_tools.fields.forecast import WriteRefusal

QUOTA: Final = "exceeded quota"
"""The words of the server's refusal of what would be accepted at another time."""


class _RecordingApplier(Applier):
    """Writes like the operator, but first records what it would take by force."""

    def __init__(self, cluster: SimulatedCluster, field_manager: str, meter: Meter) -> None:
        super().__init__(cluster, field_manager, meter)
        self._cluster = cluster

    async def apply(self, write: Write, before: Object | None) -> AppliedWrite:
        await self._cluster.claim(write.ref, write.claims)
        return await super().apply(write, before)

    async def take_over(self, ref: ObjectRef, live: Object, places: Iterable[FieldPath]) -> Object:
        answer = await super().take_over(ref, live, places)
        self._cluster.take_over(ref)
        return answer


class Simulation:
    """One resource, its live children, and the real reconciler on a simulated cluster.

    `ref` is the resource as it would be. `allows_claims`: its namespace allows claims. `unchecked`
    collects what could not be checked.
    """

    def __init__(
        self,
        controller: Controller[Any],
        installation: Installation,
        cluster: SimulatedCluster,
        clock: Clock,
        ref: ObjectRef,
    ) -> None:
        self.cluster = cluster
        self.ref = ref
        self.field_manager = installation.field_manager(controller.name)
        self.allows_claims = True
        self.unchecked: list[str] = []
        self._cache = build(controller, installation, (ref.namespace,))
        self._planner = ResourcePlanner(
            controller=controller,
            installation=installation,
            cache=self._cache,
            clock=clock,
            permission=self._permission,
            server_time=cluster.cluster.server_time,
        )
        meter = Meters().of_controller(controller.name)
        recorder = Recorder(cluster, clock, self.field_manager)
        self._reconciler = Reconciler(
            PassContext(
                planner=self._planner,
                applier=_RecordingApplier(cluster, self.field_manager, meter),
                publisher=EventPublisher(self._planner, recorder, meter),
                meter=meter,
                intake=CacheIntake(self._planner),
            )
        )

    @property
    def uid(self) -> str:
        """The resource's uid, which may be a placeholder."""
        live = self._cache.resource(self.ref.key)
        return str(metadata(live or {}).get("uid", ""))

    async def _permission(self, _namespace: str) -> Permission:
        return Permission(self.allows_claims)

    async def fill(self, resource: Object) -> None:
        """Fill the caches with what the operator's watches would have shown. Raises KubeError."""
        self._cache.store(self.ref.api.kind, self.ref.namespace).put_read(resource)
        for source in (*self._cache.children, *self._cache.related):
            if not self.cluster.absent:
                await self._list(source)

    async def _list(self, source: Source) -> None:
        try:
            listing = await self.cluster.list(
                source.api, source.namespace, labels=source.labels, reduce=source.reduce
            )
        except Forbidden:
            what = (
                "what would be pruned is not known" if source.relation is None else "assumed none"
            )
            self.unchecked.append(f"{source.api.plural} may not be listed: {what}")
            return
        except Missing as error:
            source.store.refused = error  # as the operator's watch is: the resource says so
            return
        for item in listing.undecoded:
            self.unchecked.append(f"{source.api.kind} {item.key.name} {UNDECODABLE}")
        for _ in source.store.replacing(listing.items, listing.version):
            pass

    async def run(self) -> Outcome:
        """Make passes until one has nothing left to do; return its outcome. Raises KubeError."""
        try:
            while True:
                before = self._written()
                outcome = await self._reconciler.reconcile(self.ref.key)
                self._watch()
                if outcome.failure or self._written() == before:
                    return outcome
        except EndlessError:
            self.unchecked.append(
                "the plan does not settle: the operator would write again and again, without end"
            )
            return Outcome()

    async def try_templates(self, resource: Resource) -> tuple[WriteRefusal, ...]:
        """Return why the server would refuse what the resource makes later. Raises KubeError.

        Each is the operator's own create, as a dry run that nothing else is planned from.
        """
        templates = self._planner.controller.templates
        trial = SimulatedCluster(self.cluster.cluster, absent=self.cluster.absent)
        for child in templates(resource) if templates else ():
            await self._try(trial, child)
        return tuple(trial.refusals)

    async def _try(self, trial: SimulatedCluster, child: Create) -> None:
        installation, name = self._planner.installation, self._planner.controller.name
        owner, label = replace(self.ref, uid=self.uid), installation.label(name)
        body = declare(child, owner, label, key=installation.label_key)
        body["metadata"]["resourceVersion"] = "1"
        api = child.kind.api
        ref = ObjectRef(api, self.ref.namespace, child.name)
        untried = f"whether the API server would create {ref}, of its template"
        try:
            await trial.apply(api, body, manager=self.field_manager)
        except AlreadyExists:
            return  # so the server took it before
        except Forbidden as error:
            if ref not in trial.objects:
                self.unchecked.append(f"{untried}: you may not read it")
            elif QUOTA in error.message:
                trial.refusals.pop()
                self.unchecked.append(f"{untried}: a quota is used up at present")
            return
        except (Invalid, Conflict, Unavailable):
            return
        if why := trial.objects[ref].merged:
            self.unchecked.append(f"{untried}: {why}")

    async def observe(self) -> Observation | None:
        """Return the final plan, as an operator that has just started would see it."""
        key, planner = self.ref.key, self._planner
        before = reader_of(planner.controller)(self._cache.resource(key) or {})
        state = ResourceState.from_status(self.uid, before)
        while True:
            permission = await planner.claim_permission(key)
            observation = planner.observe(key, state, permission=permission)
            if observation is None:
                return None
            if (planned := await planner.decide(observation, state)) is not None:
                return planned

    def roll_out(self) -> bool:
        """Pretend that every Deployment has rolled out; return False if all had already."""
        owned = self._cache.owned(self.uid, self.ref.namespace)
        due = [
            (ObjectRef(kind.api, self.ref.namespace, metadata(obj)["name"]), rolled_out(obj))
            for kind, obj in owned
            if kind.api.kind == "Deployment" and _counts(obj) != _counts(rolled_out(obj))
        ]
        for ref, after in due:
            store = self._cache.store(ref.api.kind, ref.namespace)
            store.put_read(self.cluster.advance(ref, after))
        return bool(due)

    def _written(self) -> tuple[object, ...]:
        return tuple(
            metadata(obj.live or {}).get("resourceVersion") for obj in self.cluster.objects.values()
        )

    def _watch(self) -> None:
        """Update the caches with what would have been written or deleted, as watches would."""
        for ref, obj in self.cluster.objects.items():
            if ref.api.kind == self.ref.api.kind or not obj.written:
                continue
            store = self._cache.store(ref.api.kind, ref.namespace)
            cached = store.get(ref.key)
            if obj.live is not None:
                store.absorb(obj.live)
            elif cached is not None:
                store.forget_object(ref.key, metadata(cached)["uid"])


def _counts(deployment: Object) -> tuple[object, ...]:
    """Return the progress of a Deployment; its generation is only a guess in a dry run."""
    status: Object = deployment.get("status") or {}
    names = ("replicas", "updatedReplicas", "availableReplicas", "observedGeneration")
    return tuple(status.get(name, 0) for name in names)
