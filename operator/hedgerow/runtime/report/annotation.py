"""Annotation: a built-in resource says in `hedgerow.dev/status` what a pass found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.kube.errors import KubeError
from hedgerow.objects import annotation
from hedgerow.plan import status as statuses
from hedgerow.plan.conditions import by_admission
from hedgerow.plan.plan import claims_of, plan_own
from hedgerow.plan.status_annotation import STATUS_ANNOTATION
from hedgerow.runtime.refusals import STATUS, RequestKind
from hedgerow.runtime.report.reporter import Reporter
from hedgerow.runtime.writer import Writer
from hedgerow_schemas.base import Status

if TYPE_CHECKING:
    from hedgerow.plan.writes import Write
    from hedgerow.runtime.resource_pass import Outcome, Pass
    from hedgerow_schemas.base import Object


class AnnotationReporter(Reporter):
    """Writes the annotation together with what is claimed of the resource: both are one apply."""

    writes_resource = True

    def generation(self, live: Object) -> int | None:  # noqa: ARG002 - as the interface has it
        """Return None: our claims and those who undo them change the generation too."""
        return None

    async def report(self, this: Pass) -> Outcome | None:
        """Write Events and the annotation."""
        observation, state, publisher = this.observation, this.state, this.context.publisher
        live, problems = observation.live, this.all_problems()
        rewritten = by_admission(observation.plan.rewritten)
        composed = observation.desired.status or Status()
        text, report = statuses.annotation_report(
            live, composed, observation.plan, problems, rewritten
        )
        this.context.meter.contest(this.key, (field.manager or "" for field in report.contested))
        this.context.meter.miss(this.key, observation.composed_status)
        if text != annotation(live, STATUS_ANNOTATION):
            await publisher.publish_warnings(this, report, problems, rewritten)
        if (write := self._due(this, text)) is not None:
            try:
                await Writer(this).write(write)
            except KubeError as error:
                self.refused(this, error, RequestKind.APPLY, write.ref, write.fingerprint)
                return this.outcome()
            state.refusals.clear(STATUS)
            return None
        await publisher.publish_created(this)
        await publisher.publish_normal(this)
        return this.outcome()

    def _due(self, this: Pass, text: str) -> Write | None:
        """Return the write of the annotation, if it is due now.

        Without one to send, no refusal waits for it either: it would bring the next pass forward.
        """
        write, state, now = self._planned(this, text), this.state, this.now
        if write is None or state.is_undone_too_often(write.id, write.intent_digest, now):
            state.refusals.clear(STATUS)
            return None
        return None if state.refusals.waiting(STATUS, write.fingerprint, now) else write

    def _planned(self, this: Pass, text: str) -> Write | None:
        """Return the write that the annotation and the claims need, or None.

        The annotation of a resource that cannot be read stays: an apply without what is claimed
        would give that back.
        """
        plan_input, controller = this.observation.plan_input, this.controller
        if not this.observation.has_declaration or not this.is_writable:
            return None
        claims = claims_of(plan_input, this.observation.desired, controller.claimed)
        return next(iter(plan_own(plan_input, claims, text).writes), None)
