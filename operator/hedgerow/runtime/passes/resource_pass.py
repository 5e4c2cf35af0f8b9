"""Pass: one pass over a resource: observe, plan, carry out, report.

A pass makes the planned writes one after another, stores the responses in the cache, and plans
again, until nothing is left to do. So every decision takes the last writes into account, and a
crash between two writes loses no knowledge.
"""

from __future__ import annotations

import dataclasses
import math
from datetime import timedelta
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from hedgerow.contract import CLOCKS_DIFFER, Apply, Copy
from hedgerow.objects import ChildId, annotation, metadata
from hedgerow.plan.children import WAITING
from hedgerow.plan.ledger import RECHECK_NAME, EntryState
from hedgerow.plan.status import user_generation
from hedgerow.plan.writes import STATUS, Deletion, Write, next_steps
from hedgerow.plan.yield_and_claim import CLAIM, YIELD
from hedgerow.runtime.passes.reads import Reads
from hedgerow.runtime.passes.report import report
from hedgerow.runtime.passes.writer import Writer

if TYPE_CHECKING:
    from collections.abc import Container, Sequence
    from datetime import datetime

    from hedgerow.contract import Controller, Desired, Key
    from hedgerow.plan.conditions import Problem
    from hedgerow.runtime.namespaces import Permission
    from hedgerow.runtime.passes.context import PassContext
    from hedgerow.runtime.passes.observation import Observation
    from hedgerow.runtime.passes.state import ResourceState
    from hedgerow_schemas.base import Resource

MOST_OBSERVATIONS = 128
"""The most observations of one pass; it goes on after a backoff, lest it has no end."""

MOST_DROPPED = 8
"""The most plans of one pass that are dropped because a cached object has changed meanwhile.

The next one is carried out, lest children that change all the time keep all others from being
written: a change after that has another pass, as after any write.
"""


class Outcome(Struct, frozen=True):
    """How a pass ended: whether to retry it with backoff, and when the next one is due anyway.

    The earlier of the two counts. `refused`: a request that was refused, now or before, still waits
    for a backoff of its own, which `requeue_after` includes. `is_requested`: the controller asked
    for that time. `failure`: the error of compose, or of its result; the resource reports it.
    """

    retry: bool = False
    requeue_after: timedelta | None = None
    refused: bool = False
    is_requested: bool = False
    failure: Exception | None = None

    def combined(self, other: Outcome) -> Outcome:
        """Return the outcome of this pass and another one over the same key together."""
        again = soonest(self.requeue_after, other.requeue_after)
        return replace(
            self,
            retry=self.retry or other.retry,
            requeue_after=again,
            refused=self.refused or other.refused,
            is_requested=self.is_requested and again == self.requeue_after,
        )


class Pass:
    """One pass over the resource with this key, and its memory until it ends."""

    observation: Observation
    """The last observation, with its declaration and plan; see `decide`."""

    def __init__(self, context: PassContext, key: Key, state: ResourceState) -> None:
        self.context = context
        self.key = key
        self.state = state
        self.times = context.planner.times()
        self.failed: set[ChildId] = set()
        """The targets that this pass leaves alone: refused, or of a kind that is not shown."""
        self.taken_over: set[ChildId] = set()
        """The children of which fields without holder were taken over; see `Writer`."""
        self.reads = Reads(context, key, state)
        self._permission: Permission | None = None
        self._dropped = 0
        """The number of plans that were out of date before they were made."""

    async def run(self) -> Outcome | None:
        """Return the outcome; None if nothing may be written for the resource, or not yet.

        Raises KubeError if the server cannot be reached or asks us to wait, or if the namespace is
        being deleted or is gone.
        """
        await self.reads.read_uncached()
        for _ in range(MOST_OBSERVATIONS):
            observation = await self.observe()
            if observation is None:
                return None
            steps = await self.decide(observation)
            if steps is None:
                continue
            if steps:
                await self.write(steps)
            elif (outcome := await self.report()) is not None:
                return outcome
        return Outcome(retry=True)

    async def observe(self) -> Observation | None:
        """Return the objects cached now; None if nothing may be written, or not yet.

        This pass takes in all changes until now, so they need no other pass. Only another pass can
        notice that the resource is gone or was created again.
        """
        planner = self.context.planner
        self._permission = await planner.claim_permission(self.key)
        if (live := planner.writable(self.key, self.state)) is not None:
            field_policy = f"{annotation(live, YIELD)}\n{annotation(live, CLAIM)}"
            self.state.renew(user_generation(self.controller, live) or 0, field_policy)
        observation = planner.observe(
            self.key,
            self.state,
            permission=self._permission,
            failed=frozenset(self.failed),
            times=self.times,
            unwatched=self.reads.unwatched,
        )
        if observation is not None:
            self.context.on_observed(self.key)
        return observation

    async def decide(self, observation: Observation) -> tuple[Write | Deletion, ...] | None:
        """Plan from an observation; return the next steps, or None to observe again.

        A new observation is needed if the caches changed while other work had its turn, or if a
        child that is to be kept was read.
        """
        planned = await self.context.planner.decide(observation, self.state, self._drops)
        if planned is None:
            return None
        if await self.reads.read_kept_children(planned):
            return None
        self.observation = planned
        return self._next_steps()

    def _drops(self) -> bool:
        """Return whether a plan is dropped after a turn of other work, to observe again."""
        if not self.is_writable:
            return True
        is_dropped = self._dropped < MOST_DROPPED and self.context.has_changed(self.key)
        self._dropped += is_dropped
        return is_dropped

    def _next_steps(self) -> tuple[Write | Deletion, ...]:
        """Return the next writes or deletions: those that have not failed and do not wait.

        A child that is declared no more stays while one of its kind that is declared is missing.
        """
        due = [
            step
            for step in self.observation.plan.requests
            if step.id not in self.failed and not self.state.ledger.waits(step, self.now)
        ]
        surplus = {s.id for s in due if isinstance(s, Deletion) and not s.replacement}
        missing = self._missing_kinds({step.id for step in due}) if surplus else ()
        return next_steps(s for s in due if s.id not in surplus or s.id.kind not in missing)

    def _missing_kinds(self, due: Container[ChildId]) -> set[str]:
        """Return the kinds of applied children that are missing, and are not created now.

        A copy replaces no other one.
        """
        applied = (
            ChildId(child.kind.api.kind, child.name)
            for child in self.observation.desired.children
            if isinstance(child, Apply) and not isinstance(child, Copy)
        )
        live = self.observation.plan_input.live
        return {child.kind for child in applied if child not in live and child not in due}

    async def write(self, steps: Sequence[Write | Deletion]) -> None:
        """Make writes and deletions one after another, as long as the resource does not change.

        Once it has changed, the steps that are left may not be declared any more.
        """
        version = metadata(self.observation.live).get("resourceVersion")
        for step in steps:
            await Writer(self).make(step)
            live = self.context.planner.cache.resource(self.key) or {}
            if metadata(live).get("resourceVersion") != version:
                return

    async def report(self) -> Outcome | None:
        """Report, and return the outcome; return None to observe again, after a write."""
        outcome = await report(self)
        return None if outcome is None else replace(outcome, failure=self.observation.failure)

    async def is_done(self) -> bool:
        """Return whether a pass is done after a write of the status that its answer has settled.

        It is if the objects have not changed since the plan was made, and compose, called again,
        declares the same. Compose may have waited for the status to be stored. The Events of this
        second call are not sent.
        """
        before = self.observation
        if before.plan.requests or before.plan.problems or not before.has_declaration:
            return False
        after = await self.observe()
        if after is None or after.resource is None or not after.has_same_content(before):
            return False
        if metadata(after.live).get("resourceVersion") != self.state.ledger.entry(STATUS).content:
            return False  # the resource has changed since its status was written
        try:
            again = self.context.planner.compose(after.resource, after, self.state)
        except Exception:  # noqa: BLE001 - the next observation reports it
            return False
        if _lasting(again) != _lasting(before.desired):
            return False
        self.observation = replace(before, desired=again, observed=after.observed)
        return True

    @property
    def controller(self) -> Controller[Resource]:
        """The controller of the resource."""
        return self.context.planner.controller

    @property
    def now(self) -> datetime:
        """The time of the last observation."""
        return self.observation.plan_input.now

    @property
    def is_writable(self) -> bool:
        """Whether anything may be written for the resource; see `ResourcePlanner.writable`."""
        return self.context.planner.writable(self.key, self.state) is not None

    def request_problems(self) -> dict[ChildId, Problem]:
        """Return why planned writes and deletions are not made: refused before, or waiting.

        By target, in the order of the plan; the ledger knows the reasons.
        """
        ledger = self.state.ledger
        steps = self.observation.plan.requests
        problems = {step.id: ledger.problem(step, self.now) for step in steps}
        return {target: problem for target, problem in problems.items() if problem}

    def all_problems(self) -> list[Problem]:
        """Return the problems of the writes and deletions, then those of the plan, each once."""
        of_requests = self.request_problems().values()
        return list(dict.fromkeys((*of_requests, *self.observation.plan.problems)))

    def outcome(self, *waiting: ChildId) -> Outcome:
        """Return how the pass ended, and when the next one is due at the latest.

        `waiting` are targets that wait besides those of the plan.
        """
        ledger, now = self.state.ledger, self.context.planner.clock.now()
        observation = self.observation
        # No watch here reports the deletion of another owner's object that has a child's name.
        waits = any(problem.reason == WAITING for problem in observation.plan.problems)
        asked = observation.desired.requeue_after
        if asked is not None:  # it is asked from when the pass began
            asked = max(asked - (now - self.times.now), timedelta())
            if observation.observed.clocks_differ:  # either may be set right
                asked = min(asked, CLOCKS_DIFFER)
        refused = ledger.in_state(EntryState.REFUSED)
        again = ledger.due_in({*refused, *waiting, *self.request_problems()}, now)
        next_due = soonest(asked, RECHECK_NAME if waits else None, again, self._permission_due_in())
        # A write that was refused, and is another one since: the pass has observed again meanwhile.
        changed = (
            step.id in self.failed
            and not ledger.waits(step, now)
            and not self.context.planner.is_unread(step.ref)
            for step in observation.plan.requests
        )
        return Outcome(
            retry=any(changed),
            requeue_after=next_due,
            refused=bool(refused),
            is_requested=observation.has_declaration and asked is not None and next_due == asked,
        )

    def _permission_due_in(self) -> timedelta | None:
        """Return the time until the namespace is asked again whether it allows claims."""
        if self._permission is None or math.isinf(self._permission.until):
            return None
        left = self._permission.until - self.context.planner.clock.monotonic()
        return timedelta(seconds=max(left, 0.0))


def soonest(*waits: timedelta | None) -> timedelta | None:
    """Return the shortest of these waits; None if there is none."""
    return min((wait for wait in waits if wait is not None), default=None)


def _lasting(desired: Desired) -> Desired:
    """Return a declaration without its Events and time, which each call of compose may change."""
    return dataclasses.replace(desired, events=(), requeue_after=None)
