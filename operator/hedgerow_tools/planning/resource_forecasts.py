"""Resource forecasts: what applying one of the operator's resources, and its passes, would do."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from hedgerow.cli.program import program_name, typed
from hedgerow.kube.errors import Forbidden
from hedgerow.objects import (
    PLACEHOLDER,
    Installation,
    ObjectRef,
    annotation,
    is_terminating,
    metadata,
)
from hedgerow.plan.status import said
from hedgerow.plan.yield_and_claim import ALLOW_CLAIMS, CLAIM, allows_claims
from hedgerow.runtime.namespaces import NAMESPACES
from hedgerow.serving.admission import review as admission
from hedgerow.serving.admission.review import Review, ReviewedKind, ReviewedResource
from hedgerow_tools.fields.allocated import foreseen
from hedgerow_tools.fields.diff import is_held_otherwise
from hedgerow_tools.fields.forecast import (
    Forecast,
    ObjectForecast,
    Planned,
    WriteRefusal,
    further,
    held_by,
    judged,
    yielded,
)
from hedgerow_tools.fields.identity import named
from hedgerow_tools.fields.selection import settled
from hedgerow_tools.objects.structures import Structures
from hedgerow_tools.planning.dry_run import Submission, Submitted, UserApply, planned_object
from hedgerow_tools.planning.simulated_cluster import SimulatedCluster, is_gone
from hedgerow_tools.planning.simulation import Simulation

if TYPE_CHECKING:
    from collections.abc import Collection

    from hedgerow.contract import Controller
    from hedgerow.kube.cluster import Cluster
    from hedgerow.runtime.clock import Clock
    from hedgerow_schemas.base import ContestedField, CustomResource, Object
    from hedgerow_tools.fields.structure import Structure
    from hedgerow_tools.planning.simulated_cluster import SimulatedObject


@dataclass(slots=True)
class ResourceForecaster:
    """Makes forecasts of resources of one cluster, with one user's rights; writes nothing."""

    cluster: Cluster
    clock: Clock
    installation: Installation = field(default_factory=Installation)
    applier: UserApply = field(default_factory=UserApply)
    structures: Structures = field(init=False)

    def __post_init__(self) -> None:
        """Begin without having read what the server publishes of its kinds."""
        self.structures = Structures(self.cluster)

    async def of_name(
        self, controller: Controller[CustomResource], name: str, namespace: str
    ) -> Forecast | None:
        """Return what the operator would do for the stored resource; None if there is none.

        Raises KubeError; Missing if the kind is not served.
        """
        stored = await self.cluster.read_object(controller.resource.api, name, namespace)
        if stored is None:
            return None
        return await self._simulate(controller, stored, Submitted(stored), absent=False)

    async def of_manifest(
        self,
        controller: Controller[CustomResource],
        manifest: Object,
        *,
        made: Collection[tuple[str, str, str]] = (),
    ) -> Forecast:
        """Return what would happen if a resource, with its namespace, were applied.

        `made` are the objects that would be created first: see `Submission`. Raises KubeError.
        """
        meta = metadata(manifest)
        ref = ObjectRef(controller.resource.api, meta["namespace"], meta["name"])
        absent = await self.namespace(ref.namespace) is None
        stored = await self.cluster.read_object(ref.api, ref.name, ref.namespace)
        now = self.clock.now()
        structure = await self.structures.of(ref.api)
        submission = Submission(
            ref, manifest, stored, self.applier, now, made=made, structure=structure
        )
        submitted = await submission.dry_run(self.cluster, absent=absent)
        submitted = _judged(controller, stored, submitted)
        if submitted.live is None:
            return self._stopped(controller, ref, stored, submitted)
        return await self._simulate(controller, stored, submitted, absent=absent)

    async def namespace(self, name: str) -> Object | None:
        """Return a namespace; without the right to read it, assume that it exists."""
        try:
            return await self.cluster.read_object(NAMESPACES, name)
        except Forbidden:
            return {}

    def _stopped(
        self,
        controller: Controller[CustomResource],
        ref: ObjectRef,
        stored: Object | None,
        submitted: Submitted,
    ) -> Forecast:
        """Return the forecast of a resource that would not even be stored."""
        conditions = said(stored or {}).conditions
        return judged(
            Forecast(
                **named(ref),
                controller=controller.name,
                field_manager=self.installation.field_manager(controller.name),
                objects=(planned_object(ref, "refused", (), submitted),),
                contested=submitted.disputes,
                refusals=submitted.refusals,
                conditions=Planned(conditions, conditions),
            )
        )

    async def _simulate(
        self,
        controller: Controller[CustomResource],
        stored: Object | None,
        submitted: Submitted,
        *,
        absent: bool,
    ) -> Forecast:
        live = submitted.live or {}
        meta = metadata(live)
        ref = ObjectRef(controller.resource.api, meta.get("namespace", ""), meta["name"])
        cluster = SimulatedCluster(self.cluster, absent=absent)
        simulation = Simulation(controller, self.installation, cluster, self.clock, ref)
        place = await self.namespace(ref.namespace)
        if place:
            simulation.allows_claims = allows_claims(place)
        elif annotation(live, CLAIM):
            simulation.unchecked.append(
                f"whether namespace {ref.namespace} allows {CLAIM} (label {ALLOW_CLAIMS}=true):"
                " assumed so"
            )
        if is_terminating(place or {}):
            simulation.unchecked.append("the namespace is being deleted: nothing is created in it")
        if is_terminating(live):
            simulation.unchecked.append("the resource is being deleted, so hedgerow writes nothing")
        await simulation.fill(cluster.add(ref, stored, live))
        outcome = await simulation.run()
        observation = await simulation.observe()
        if observation and observation.resource and not cluster.refusals:
            cluster.refusals += await simulation.try_templates(observation.resource)
        result = cluster.objects[ref].live if ref in cluster.objects else None
        after = said(result or {})
        disputes = settled(after.contested, live, ref, program_name(), typed())
        again_in = outcome.requeue_after
        return judged(
            Forecast(
                **named(ref),
                controller=controller.name,
                field_manager=self.installation.field_manager(controller.name),
                objects=(await self._own(ref, stored, submitted), *await self._written(simulation)),
                contested=disputes.all,
                together=disputes.together,
                claims=(*submitted.taken, *_claims(simulation)),
                yields=tuple(yielded(observation.plan_input, observation.desired))
                if observation
                else (),
                refusals=tuple(dict.fromkeys(cluster.refusals)),
                conditions=Planned(said(stored or {}).conditions, after.conditions),
                status=Planned(further(stored), further(result)),
                events=tuple(dict.fromkeys(cluster.events)),
                unchecked=tuple(dict.fromkeys(simulation.unchecked)),
                looks_again_in_seconds=again_in.total_seconds() if again_in else None,
                later=await self._later(simulation),
            )
        )

    async def _own(
        self, ref: ObjectRef, stored: Object | None, submitted: Submitted
    ) -> ObjectForecast:
        """Return the forecast of the resource itself."""
        structure = await self.structures.of(ref.api)
        lines = foreseen(stored, submitted.live, self.applier.manager, structure)
        # Changed holders alone do not count: they depend on how the user applies the resource.
        changed = submitted.taken or any(line.is_change for line in lines)
        action = "created" if stored is None else "configured" if changed else "unchanged"
        return planned_object(ref, action, lines, submitted)

    async def _written(self, simulation: Simulation) -> list[ObjectForecast]:
        return [
            _forecast(obj, simulation.field_manager, await self.structures.of(ref.api))
            for ref, obj in simulation.cluster.objects.items()
            if ref.api != simulation.ref.api
            and (obj.written or obj.refused)
            and not (obj.stored is None and obj.live is None and not obj.refused)
        ]

    async def _later(self, simulation: Simulation) -> tuple[ObjectForecast, ...]:
        """Return what more would be written if every Deployment rolled out."""
        objects = simulation.cluster.objects
        if simulation.cluster.refusals or not simulation.roll_out():
            return ()
        before = {ref: obj.live for ref, obj in objects.items()}
        for obj in objects.values():
            obj.written = False
        await simulation.run()
        return tuple(
            [
                _further(
                    obj,
                    before.get(ref, obj.stored),
                    simulation.field_manager,
                    await self.structures.of(ref.api),
                )
                for ref, obj in objects.items()
                if ref.api != simulation.ref.api and obj.written
            ]
        )


def _judged(
    controller: Controller[CustomResource], stored: Object | None, submitted: Submitted
) -> Submitted:
    """Return the submission, validated with the webhook's rules here if no server did."""
    if submitted.live is None or not submitted.merged:
        return submitted
    api = controller.resource.api
    review = Review(
        uid=PLACEHOLDER,
        kind=ReviewedKind(group=api.group, version=api.version, kind=api.kind),
        resource=ReviewedResource(group=api.group, version=api.version, resource=api.plural),
        operation="UPDATE" if stored else "CREATE",
        object=submitted.live,
        old_object=stored,
    )
    answer = admission.validate(review, controller)["response"]
    if answer["allowed"]:
        return replace(submitted, warnings=tuple(answer.get("warnings", ())))
    target = f"{api.kind}/{metadata(submitted.live)['name']}"
    return Submitted(None, refusals=(WriteRefusal(target, (answer["status"]["message"],)),))


def _forecast(
    obj: SimulatedObject, field_manager: str, structure: Structure | None
) -> ObjectForecast:
    if is_gone(obj):
        lines = foreseen(obj.stored, None, field_manager, structure)
        return ObjectForecast(**named(obj.ref), action="deleted", lines=lines)
    if obj.refused:
        return ObjectForecast(**named(obj.ref), action="refused", warnings=obj.warnings)
    lines = foreseen(obj.stored, obj.live, field_manager, structure)
    changed = lines or is_held_otherwise(obj.stored, obj.live)
    return ObjectForecast(
        **named(obj.ref),
        action="created" if obj.stored is None else "configured" if changed else "unchanged",
        merged=obj.merged or None,
        forced=tuple(leaf.path for leaf in obj.claims),
        warnings=obj.warnings,
        lines=lines,
    )


def _claims(simulation: Simulation) -> list[ContestedField]:
    return [
        held_by(ref, leaf) for ref, obj in simulation.cluster.objects.items() for leaf in obj.claims
    ]


def _further(
    obj: SimulatedObject, before: Object | None, field_manager: str, structure: Structure | None
) -> ObjectForecast:
    goes = obj.live is None or is_terminating(obj.live)
    return ObjectForecast(
        **named(obj.ref),
        action="deleted" if goes else "configured" if before else "created",
        merged=None if goes else obj.merged or None,
        lines=foreseen(before, None if goes else obj.live, field_manager, structure),
    )
