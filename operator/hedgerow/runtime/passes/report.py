"""Report: the end of a pass: the resource reports its contested fields and problems.

A custom resource has them in its status, a built-in one in an annotation. Nothing is written to a
Namespace: Events on the sources of its children report them. The report is one more write, made
once no other one is due.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.kube.errors import Forbidden, Invalid, KubeError
from hedgerow.plan import status as statuses
from hedgerow.plan.children import contributions_of
from hedgerow.plan.conditions import by_admission
from hedgerow.plan.writes import STATUS
from hedgerow.runtime.events.source_warnings import source_warnings
from hedgerow.runtime.passes import refusals
from hedgerow.runtime.passes.refusals import Reaction, RequestKind
from hedgerow.runtime.passes.writer import Writer
from hedgerow_schemas.base import Status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hedgerow.plan.conditions import Problem
    from hedgerow.plan.status import StatusReport
    from hedgerow.plan.writes import Write
    from hedgerow.runtime.passes.resource_pass import Outcome, Pass


async def report(current: Pass) -> Outcome | None:
    """Write the report, send Events, and return the outcome of the pass.

    Return None if the pass is to observe again: the answer does not settle the report, or compose
    has waited for it. Raises KubeError.
    """
    if current.controller.is_for_namespaces:
        return await _on_sources(current)
    publisher, ledger = current.context.publisher, current.state.ledger
    problems, rewritten = current.all_problems(), by_admission(current.observation.plan.rewritten)
    wanted = _wanted(current, problems, rewritten)
    current.context.meter.contest(current.key, (field.manager or "" for field in wanted.contested))
    observation = current.observation
    composed = observation.desired.status if observation.has_declaration else None
    current.context.meter.miss(current.key, composed)
    if wanted.is_news:
        await publisher.publish_warnings(current, wanted, problems, rewritten)
    write = wanted.write if current.is_writable else None
    if wanted.entry is not None:
        ledger.entries[STATUS] = wanted.entry
    elif write is None:
        ledger.clear(STATUS)
    elif not ledger.waits(write, current.now):
        return await _write(current, write, wanted)
    if not (wanted.is_news and current.controller.is_custom):
        await _stored(current, wanted)
    return current.outcome(*([write.id] if write else []))


def _wanted(current: Pass, problems: Sequence[Problem], rewritten: str) -> StatusReport:
    observation, controller = current.observation, current.controller
    plan_input, desired = observation.plan_input, observation.desired
    arguments = plan_input, observation.live, desired.status or Status(), observation.plan, problems
    if controller.is_custom:
        return statuses.report(*arguments, rewritten=rewritten)
    contributions = None
    if observation.has_declaration:
        contributions, _ = contributions_of(plan_input, desired, controller.contributed)
    return statuses.annotation_report(*arguments, rewritten=rewritten, contributions=contributions)


async def _write(current: Pass, write: Write, wanted: StatusReport) -> Outcome | None:
    try:
        is_settled = await Writer(current).write(write)
    except KubeError as error:
        await _refused(current, write, error)
        return current.outcome()
    if write.is_status:
        await current.context.publisher.publish_normal(current)
    if is_settled and await current.is_done():
        await _stored(current, wanted)
        return current.outcome()
    return None


async def _refused(current: Pass, write: Write, error: KubeError) -> None:
    """Delay the next attempt of a refused report. Raises the error if it ends the pass.

    No condition follows: the status would report itself.
    """
    if refusals.rule(error).reaction in (Reaction.PUT_OFF, Reaction.END):
        raise error
    entry = refusals.record(
        current.state.ledger,
        write,
        error,
        request=RequestKind.STATUS,
        clock=current.context.planner.clock,
        meter=current.context.meter,
    )
    # A conflict is reported in the status itself, once it has been seen; others pass.
    if write.is_status and entry.attempts > 1 and isinstance(error, Forbidden | Invalid):
        await current.context.publisher.publish_status_refused(current, error)


async def _stored(current: Pass, stored: StatusReport) -> None:
    """Send the other Events, and forget the children that the stored status has recorded."""
    resource, publisher = str(current.observation.plan_input.resource), current.context.publisher
    await publisher.publish_created(current)
    if not current.controller.is_custom:
        await publisher.publish_normal(current)
    elif current.observation.has_declaration and not any(
        field.object == resource for field in stored.contested
    ):
        # If the status is contested, or could not record them, only this remembers them.
        current.state.created_once.clear()


async def _on_sources(current: Pass) -> Outcome:
    """Log, count and publish the problems of a pass; nothing is written to a Namespace."""
    observation, publisher = current.observation, current.context.publisher
    contested = observation.plan.contested
    current.context.meter.contest(current.key, (field.manager or "" for field in contested))
    program = current.context.planner.installation.program
    warnings = source_warnings(observation, current.all_problems(), program)
    await publisher.publish_source_warnings(current, warnings)
    await publisher.publish_created(current)
    await publisher.publish_normal(current)
    return current.outcome()
