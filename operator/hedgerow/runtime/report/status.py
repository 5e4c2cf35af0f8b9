"""Status: a custom resource says in its status what a pass found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from hedgerow.fields.ownership import covers
from hedgerow.kube.errors import Forbidden, Invalid, KubeError
from hedgerow.objects import metadata
from hedgerow.plan import status as statuses
from hedgerow.plan.conditions import Problem, by_admission
from hedgerow.plan.status import StatusReport
from hedgerow.plan.writes import checksum
from hedgerow.runtime.refusals import STATUS, RequestKind
from hedgerow.runtime.report.reporter import Reporter
from hedgerow_schemas.base import Status

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hedgerow.objects import ObjectRef
    from hedgerow.runtime.resource_pass import Outcome, Pass
    from hedgerow_schemas.base import ContestedField, Object


class StatusReporter(Reporter):
    """Writes the status for exactly the version of the resource that was observed."""

    writes_resource = False

    def generation(self, live: Object) -> int | None:
        """Return the generation, which changes with the spec."""
        return metadata(live).get("generation", 0)

    async def report(self, this: Pass) -> Outcome | None:
        """Write Events and the status, unless the live status is up to date.

        After a write the answer may contain changes of others, and the watch will not report them
        any more once the answer is in the cache; also, the next step may wait for the status.
        """
        observation, state, publisher = this.observation, this.state, this.context.publisher
        owner, now, problems = observation.plan_input.owner, this.now, this.all_problems()
        rewritten = by_admission(observation.plan.rewritten)
        report = await _judged(this, problems, rewritten)
        this.context.meter.contest(this.key, (field.manager or "" for field in report.contested))
        this.context.meter.miss(this.key, observation.composed_status)
        if report.body is None:
            # The status is unchanged, so its Events were already sent.
            return await _stored(this, report.contested)
        await publisher.publish_warnings(this, report, problems, rewritten)
        version: str = metadata(observation.live)["resourceVersion"]
        waits = state.refusals.waiting(STATUS, version, now)
        if waits or not this.is_writable:
            return this.outcome()
        digest = report.intent_digest
        if state.is_undone_too_often(STATUS, digest, now):
            state.refusals.clear(STATUS)
            return replace(this.outcome(), retry=True)
        try:
            answer = await _apply(this, owner, version, report.body, digest)
        except KubeError as error:
            return await self._refused(this, version, error)
        if not report.contested and covers(report.body["status"], answer.get("status")):
            state.settled_status = _settled_by(this, answer, problems, rewritten)
        await publisher.publish_normal(this)
        return None

    async def _refused(self, this: Pass, version: str, error: KubeError) -> Outcome | None:
        """Delay a status that was refused. Raises the error if it ends the pass."""
        state = this.state
        if isinstance(error, Invalid) and error.too_large and not state.status_too_large:
            state.status_too_large = True  # still report the number of contested fields
            return None
        owner = this.observation.plan_input.owner
        refusal = self.refused(this, error, RequestKind.STATUS, owner, version)
        # A conflict is reported in the status itself, once it has been seen; others pass.
        if refusal.attempts > 1 and isinstance(error, Forbidden | Invalid):
            await this.context.publisher.publish_status_refused(this, error)
        return this.outcome()


async def _judged(this: Pass, problems: list[Problem], rewritten: str) -> StatusReport:
    """Return the status to apply; one that is known to be settled is not judged again."""
    observation, state = this.observation, this.state
    plan, known = observation.plan, _digest(this, observation.change, problems, rewritten)
    if known and known == state.settled_status:
        return StatusReport(None, ())
    report = await this.limits.compute(
        statuses.report,
        observation.plan_input,
        observation.live,
        observation.desired.status or Status(),
        plan.contested,
        problems,
        rewritten=rewritten,
        unmatched=plan.unmatched,
        ignored=plan.ignored,
        shortened=state.status_too_large,
    )
    is_settled = report.body is None and not report.contested
    state.settled_status = known if is_settled else ""
    return report


async def _apply(this: Pass, owner: ObjectRef, version: str, body: Object, digest: str) -> Object:
    """Apply the status to exactly this version of the resource; return it. Raises KubeError.

    `digest` is that of what is meant, see `StatusReport.intent_digest`.
    """
    context, state = this.context, this.state
    with context.in_flight.writing(owner, this.key):
        answer = await context.applier.apply_status(owner, body, version, this.limits)
    state.refusals.clear(STATUS)
    state.note(STATUS, digest, context.clock.now())
    context.responses.absorb(owner, answer)
    return answer


def _settled_by(this: Pass, answer: Object, problems: list[Problem], rewritten: str) -> str:
    """Return what the next look need not judge: the server stored the status as it was sent.

    It is empty if the resource is cached in another version than that of the answer.
    """
    responses, owner = this.context.responses, this.observation.plan_input.owner
    if not responses.has_cached(owner, answer):
        return ""
    return _digest(this, responses.store(owner).change(owner.key), problems, rewritten)


async def _stored(this: Pass, contested: Iterable[ContestedField]) -> Outcome:
    """Return the outcome of a pass whose status is stored."""
    state, owner = this.state, this.observation.plan_input.owner
    await this.context.publisher.publish_created(this)
    state.refusals.clear(STATUS)
    if not any(field.object == str(owner) for field in contested):
        # If the status is contested, only this remembers them.
        state.created_once.clear()
    return this.outcome()


def _digest(this: Pass, change: int, problems: list[Problem], rewritten: str) -> str:
    """Return a digest of what the status of a resource is made from, as of this `change` of it.

    It is empty where it would take as long as to judge the status.
    """
    plan, status = this.observation.plan, this.observation.desired.status
    if this.limits.is_large or plan.contested:
        return ""
    found = (problems, rewritten, plan.unmatched, plan.ignored, this.state.status_too_large)
    return checksum(change, status, found)
