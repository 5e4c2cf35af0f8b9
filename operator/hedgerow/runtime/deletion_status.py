"""Deletion status: a custom resource that is being deleted says so in its `Ready`.

Nothing else is written for it; see docs/adr/0049-a-resource-that-is-being-deleted-says-so.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hedgerow.kube.errors import KubeError
from hedgerow.objects import metadata
from hedgerow.plan import status as statuses
from hedgerow.plan.conditions import Problem
from hedgerow.plan.finalizers import finalizers_of
from hedgerow.runtime import refusals
from hedgerow.runtime.heavy import run_in_thread_if_large
from hedgerow.runtime.refusals import STATUS, Backoff, Follow, Request

if TYPE_CHECKING:
    from datetime import timedelta

    from hedgerow.contract import Key
    from hedgerow.runtime.applier import Applier
    from hedgerow.runtime.observation import ResourcePlanner
    from hedgerow.runtime.state import ResourceState
    from hedgerow_schemas.base import Object

TERMINATING: Final = "Terminating"


async def report_deletion(
    planner: ResourcePlanner, applier: Applier, backoff: Backoff, key: Key, state: ResourceState
) -> timedelta | None:
    """Write that a resource is being deleted, if it is and its status does not say so yet.

    Return the time until a refused write is sent again, or None. Raises KubeError if the server
    cannot be reached or asks us to wait.
    """
    if (plan_input := planner.deleted(key, state)) is None:
        return None
    live: Object = planner.cache.resource(key) or {}
    version: str = metadata(live)["resourceVersion"]
    if state.refusals.waiting(STATUS, version, plan_input.now):
        return state.refusals.due_in(plan_input.now)
    is_heavy, manager = planner.cache.is_heavy(key), applier.field_manager
    problem = Problem(TERMINATING, _message(live), stalled=False)
    report = await run_in_thread_if_large(
        is_heavy,
        statuses.report,
        plan_input,
        live,
        statuses.kept(live, manager),
        (),
        (problem,),
        shortened=state.status_too_large,
    )
    digest = report.intent_digest
    if report.body is None or state.is_undone_too_often(STATUS, digest, plan_input.now):
        return None
    owner = plan_input.owner
    try:
        answer = await applier.apply_status(owner, report.body, version, is_large=is_heavy)
    except KubeError as error:
        if refusals.rule(Request.STATUS, error).follow in (Follow.PUT_OFF, Follow.END):
            raise
        backoff.wait(
            state.refusals, STATUS, version, request=Request.STATUS, ref=owner, error=error
        )
        return state.refusals.due_in(plan_input.now)
    state.refusals.drop(STATUS)
    state.note(STATUS, digest, plan_input.now)
    planner.cache.resource_store(key[0]).absorb(answer)
    return None


def _message(live: Object) -> str:
    held = ", ".join(finalizers_of(live))
    return "it is being deleted, and nothing is done for it any more" + (
        f"; it goes once these finalizers are removed: {held}" if held else ""
    )
