"""Reconciler: one pass over a resource, from the caches to writes, Events and a status.

A pass makes the writes that do not wait for each other at the same time, stores the responses in
the cache, and plans again, until nothing is left to do. So every decision takes the last writes
into account, and a crash between two writes loses no knowledge.
"""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

import anyio
import structlog
from msgspec import Struct
from msgspec.structs import replace

from hedgerow.contract import Keep
from hedgerow.kube.errors import Forbidden, Invalid, KubeError, Missing
from hedgerow.objects import ObjectRef, annotation, controller_of, is_terminating, metadata
from hedgerow.plan import installations
from hedgerow.plan import status as statuses
from hedgerow.plan.conditions import Problem
from hedgerow.plan.declaration import NotPureError, compose_failed, difference, not_pure
from hedgerow.plan.field_patterns import TooManyComparisonsError
from hedgerow.plan.finalizers import finalizers_of
from hedgerow.plan.input import ChildHistory, SettledChild
from hedgerow.plan.installations import managed_elsewhere
from hedgerow.plan.plan import WAITING, claims_of, plan_own
from hedgerow.plan.status import Report as StatusReport
from hedgerow.plan.status_annotation import STATUS_ANNOTATION
from hedgerow.plan.writes import ChildId, Deletion, Write, checksum, wave
from hedgerow.plan.yield_and_claim import CLAIM, YIELD
from hedgerow.runtime import refusals
from hedgerow.runtime.cache.caches import owner_key
from hedgerow.runtime.cache.store import version_of
from hedgerow.runtime.finalizer_removal import Finalizers
from hedgerow.runtime.heavy import run_in_thread_if_large
from hedgerow.runtime.metrics import Meter, Meters
from hedgerow.runtime.refusals import STATUS, Backoff, Follow, Refusal, Request
from hedgerow.runtime.reports import reports_of
from hedgerow.runtime.state import MOST_REPEATS, RECHECK_NAME, ResourceState
from hedgerow_schemas.base import Object, Status

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Sequence
    from datetime import datetime

    from hedgerow.contract import Key
    from hedgerow.objects import Installation
    from hedgerow.runtime.applier import Applier
    from hedgerow.runtime.cache.store import Store
    from hedgerow.runtime.events.publisher import EventPublisher
    from hedgerow.runtime.observation import Observation, ResourcePlanner
    from hedgerow_schemas.base import ContestedField

AT_ONCE = 8
"""The most writes of one pass at a time."""
WAVES = 16
"""The most writes of all waves of a controller at a time, besides one for each pass."""
LOOKS = 16
"""The looks of one pass after which compose is called twice with the same, and must return it."""
AT_ONCE_AGAIN = timedelta(milliseconds=10)
"""A resource that asks to be called again sooner than that asks to be called at once."""
MOST_AT_ONCE = 64
"""The most passes in a row that ask for that."""
MOST_READS = 8
"""The most reads of one object in one pass; if it changes faster, the next pass goes on."""

log = structlog.get_logger(__name__)


class Outcome(Struct, frozen=True):
    """How a pass ended: whether to retry it with backoff, and when the next one is due anyway.

    `refused`: a request was refused and has a backoff of its own, which `requeue_after` includes.
    `is_due`: the controller asked for that time. `unfinished`: another pass must follow now.
    `failure`: what is wrong with compose or what it returned; the resource says so.
    """

    retry: bool = False
    requeue_after: timedelta | None = None
    refused: bool = False
    is_due: bool = False
    unfinished: bool = False
    failure: Exception | None = None


@dataclass(slots=True)
class _ReconcilePass:
    """One pass: the resource's key and state, the problems, and whether it has written."""

    key: Key
    state: ResourceState
    began: datetime
    looks: int = 0
    problems: dict[ChildId, Problem] = field(default_factory=dict[ChildId, Problem])
    has_written: bool = False
    reads: Counter[ChildId] = field(default_factory=Counter[ChildId])
    looked_for: set[ChildId] = field(default_factory=set[ChildId])

    def may_read(self, target: ChildId) -> bool:
        """Return whether a target may be read once more in this pass; count the read."""
        self.reads[target] += 1
        return self.reads[target] <= MOST_READS


class Reconciler:
    """The passes of one controller."""

    def __init__(
        self,
        planner: ResourcePlanner,
        applier: Applier,
        publisher: EventPublisher,
        meter: Meter | None = None,
        is_due_after: Callable[[Key], bool] = lambda _: False,
    ) -> None:
        """`is_due_after` tells if another resource, whose time has come, waits for this pass."""
        self._is_due_after = is_due_after
        self._in_flight: set[tuple[str, Key, Key]] = set()
        self._at_once = anyio.CapacityLimiter(WAVES)
        self._held_back: set[Key] = set()
        self._meter = meter or Meters().of(planner.controller.name)
        self._planner = planner
        self._applier = applier
        self._publisher = publisher
        self._controller = planner.controller
        self._cache = planner.cache
        self._clock = planner.clock
        self._states: dict[Key, ResourceState] = {}
        self._backoff = Backoff(planner.clock, self._meter)
        self._finalizers = Finalizers(self._controller, self._cache, applier, self._backoff)
        self._other_installations: set[Installation] = set()

    async def reconcile(self, key: Key) -> Outcome:
        """Make one pass over a resource, and return how it ended.

        Raises KubeError if the server cannot be reached or asks us to wait. A refused request or a
        user's mistake becomes a condition instead; `runtime/refusals.py` has the table.
        """
        guarded_for = await self._finalizers.take_off(key)
        live = self._cache.resource(key)
        if live is None:
            self._states.pop(key, None)
            self._cache.slow.discard(key)
            self._meter.contest(key, ())
            self._forget_reports(key)
            outcome = await self._after_deletion(key)
        else:
            outcome = await self._pass(key, live)
        if not outcome.unfinished:
            self._end_reports(key)
        if guarded_for is None:
            return outcome
        again = _soonest(outcome.requeue_after, guarded_for)
        return replace(outcome, requeue_after=again, refused=True)

    def holds_back(self, kind: str, target: Key, key: Key) -> bool:
        """Return whether a change of an object needs no pass of this resource.

        That is so while the running pass writes to the object: it looks again after the response,
        and nearly always the change is our own write.
        """
        if (kind, target, key) not in self._in_flight:
            return False
        self._held_back.add(key)
        return True

    def has_missed(self, key: Key) -> bool:
        """Return whether a change was held back that no look has taken in; forget it."""
        missed = key in self._held_back
        self._held_back.discard(key)
        return missed

    @contextmanager
    def _writing(self, ref: ObjectRef, key: Key) -> Generator[None]:
        write = ref.api.kind, (ref.namespace, ref.name), key
        self._in_flight.add(write)
        try:
            yield
        finally:
            self._in_flight.discard(write)

    def rewind(self) -> None:
        """Forget which children were deleted and which Events were sent: a restore may undo both.

        Children that were created once stay known, so that no start of a CronJob is made again.
        """
        for state in self._states.values():
            state.pruned.clear()
            state.events_sent.clear()
        self._publisher.rewind()

    async def _pass(self, key: Key, live: Object) -> Outcome:
        state = self._state(key, live)
        field_policy = f"{annotation(live, YIELD)}\n{annotation(live, CLAIM)}"
        # The generation of a built-in resource also changes by our claims and those who undo them.
        custom = self._controller.is_custom
        if self._controller.blind is not None:
            owned = self._cache.owned(state.uid, self._controller.home(key))
            children = [(kind.api.kind, metadata(obj)["name"]) for kind, obj in owned]
            state.expire(children, self._controller.blind, self._clock.now())
        state.renew(metadata(live).get("generation", 0) if custom else 0, field_policy)
        try:
            return await self._converge(_ReconcilePass(key, state, self._clock.now()))
        except Forbidden as error:
            if not error.terminating:
                raise
            state.namespace_terminating = True
            return Outcome()
        except Missing as error:
            if not error.served:
                raise
            # The namespace is gone, and the resource with it: the watch will report it soon.
            return Outcome(retry=True)

    async def _after_deletion(self, key: Key) -> Outcome:
        """Read the unwatched children of a resource that is gone, until they are gone too."""
        for ref in self._planner.unwatched(key):
            try:
                await self._read(ref, key)
            except Forbidden:
                break  # without the right to read, keep what is known
        return Outcome(requeue_after=RECHECK_NAME if self._planner.unwatched(key) else None)

    async def _converge(self, current_pass: _ReconcilePass) -> Outcome:
        try:
            await self._read_maybe_created(current_pass)
            await self._recheck_names(current_pass)
            await self._read_whole_again(current_pass.key)
            return await self._plan_and_write(current_pass)
        finally:
            self._cache.returned(current_pass.key)

    async def _plan_and_write(self, current_pass: _ReconcilePass) -> Outcome:
        while observation := await self._look(current_pass):
            if await self._find_kept(observation, current_pass):
                continue
            observation = await self._proved(observation, current_pass)
            steps = self._next(observation, current_pass)
            if not steps or not current_pass.has_written:
                self._inform(observation, current_pass)
            if not steps:
                custom = observation.plan_input.is_custom
                conclude = self._conclude if custom else self._conclude_built_in
                outcome = await conclude(observation, current_pass)
                if outcome is None:
                    continue
                return replace(outcome, failure=observation.failure)
            await self._carry_out_all(observation, steps, current_pass)
            may_wait = self._may_wait(observation, steps, current_pass)
            if may_wait and self._is_due_after(current_pass.key):
                # What is due there must not be late; what is left to do here may be.
                asked = observation.desired.requeue_after
                return Outcome(unfinished=True, requeue_after=asked, is_due=asked is not None)
        if self._planner.writable(current_pass.key, current_pass.state) is None:
            # Otherwise it is only not known yet what children there are.
            self._forget_reports(current_pass.key)
        return self._leave_alone(current_pass.key)

    async def _proved(self, observation: Observation, current_pass: _ReconcilePass) -> Observation:
        """Return a look, as failed if compose declares something else for the same objects.

        That is tried at every `LOOKS`th look of a pass, and at each one while it was so before.
        """
        if not observation.is_readable:
            return observation
        current_pass.looks += 1
        state, asked = current_pass.state, observation.desired.requeue_after
        if current_pass.looks == 1:
            at_once = asked is not None and asked <= AT_ONCE_AGAIN
            state.at_once = state.at_once + 1 if at_once else 0
        if state.at_once > MOST_AT_ONCE:
            told = "compose asks to be called again at once, each time: see requeue_after"
            return _not_pure(observation, told)
        if current_pass.looks % LOOKS and not state.is_impure:
            return observation
        is_heavy = self._cache.is_heavy(current_pass.key)
        try:
            again = await run_in_thread_if_large(is_heavy, observation.compose)
        except TooManyComparisonsError:
            return observation  # the plan has nearly taken all, which is no fault of compose
        except Exception as error:  # noqa: BLE001 - whatever the author's function raises
            state.is_impure = True
            return observation.failed(compose_failed(error), error)
        path = difference(observation.desired, again)
        state.is_impure = bool(path)
        told = f"compose returns another {path} for the same input: for the time, use observed.now"
        return _not_pure(observation, told) if path else observation

    def _inform(self, observation: Observation, current_pass: _ReconcilePass) -> None:
        """Report to the resources that children are made from, before they are and after."""
        informs = self._controller.informs
        if informs is None or not observation.is_readable:
            return  # what children there are is not known then: the last report holds
        problems = self._problems(observation, current_pass)
        found = reports_of(self._controller, informs, observation, problems)
        self._planner.reports.tell(informs.controller.name, current_pass.key, found)

    def _forget_reports(self, key: Key) -> None:
        if self._controller.informs is not None:
            self._planner.reports.forget(self._controller.informs.controller.name, key)

    def _end_reports(self, key: Key) -> None:
        if self._controller.informs is not None:
            self._planner.reports.ended(self._controller.informs.controller.name, key)

    def _may_wait(
        self,
        observation: Observation,
        steps: Sequence[Write | Deletion],
        current_pass: _ReconcilePass,
    ) -> bool:
        """Return whether a pass that has made these writes may be finished by a later one.

        It may not if it could not do everything, or has a child yet to create once, such as a Job.
        """
        made = {step.id for step in steps}
        starts = (
            step.id not in made
            for step in observation.plan.requests
            if isinstance(step, Write) and step.create and step.once
        )
        return current_pass.has_written and not current_pass.problems and not any(starts)

    async def _look(self, current_pass: _ReconcilePass) -> Observation | None:
        """Return the plan from what is cached now, which includes what was held back.

        If there is none, because the resource is gone or was made anew, only another pass can take
        that in.
        """
        key, was_held_back = current_pass.key, current_pass.key in self._held_back
        self._held_back.discard(key)
        failed = frozenset(current_pass.problems)
        found = await self._planner.observe(key, current_pass.state, failed, current_pass.began)
        if found is None and was_held_back:
            self._held_back.add(key)
        return found

    def other_installation(self, key: Key) -> Installation | None:
        """Return the other installation that manages a resource, if a pass has found one."""
        live = self._cache.resource(key)
        return self._planner.other_installation(live, self._state(key, live)) if live else None

    def _leave_alone(self, key: Key) -> Outcome:
        """Return the outcome for a resource of another installation; log that once.

        The watch reports if that installation gives up the resource, but not if it gives up a
        child: then the next pass is due after a while.
        """
        live, other_installation = self._cache.resource(key), self.other_installation(key)
        if live is None:
            self._states.pop(key, None)
        if live is None or other_installation is None:
            return Outcome()
        if other_installation not in self._other_installations:
            self._other_installations.add(other_installation)
            kind = self._controller.resource.api.kind
            log.warning(
                "resources are left alone",
                why=managed_elsewhere(f"{kind}/{key[1]}", other_installation),
            )
        program = self._planner.installation.program
        reported = installations.reporters(live, self._controller.name, program)
        return Outcome(requeue_after=None if reported else RECHECK_NAME)

    def _next(
        self, observation: Observation, current_pass: _ReconcilePass
    ) -> tuple[Write | Deletion, ...]:
        """Return the next writes or deletions, which have not failed in this pass and do not wait.

        Children that were pruned before are skipped: they are being deleted already.
        """
        state, now = current_pass.state, observation.plan_input.now
        due = [
            step
            for step in observation.plan.requests
            if not (isinstance(step, Deletion) and state.pruned.get(step.id) == step.ref.uid)
            if step.id not in current_pass.problems
            if not state.refusals.waiting(step.id, step.fingerprint, now)
        ]
        found = wave(due)
        # The first child decides which of two installations has the resource with all children.
        alone = _creates(found) and self._planner.is_new(observation.live, state)
        # Each large object takes several times its size in memory while it is written.
        return found[: 1 if alone or self._cache.is_heavy(current_pass.key) else AT_ONCE]

    async def _carry_out_all(
        self,
        observation: Observation,
        steps: Sequence[Write | Deletion],
        current_pass: _ReconcilePass,
    ) -> None:
        """Make writes or deletions at the same time; if any of them ends the pass, after all.

        All passes together make at most `WAVES` of them besides one each: a request would wait
        for its turn on its own time. Raises the error that matters most.
        """
        if len(steps) == 1:
            await self._carry_out(observation, steps[0], current_pass)
            return
        errors: dict[ChildId, Exception] = {}

        async def carry_out(step: Write | Deletion) -> None:
            try:
                async with self._at_once:
                    await self._carry_out(observation, step, current_pass)
            except Exception as error:  # noqa: BLE001 - no other write must be cancelled half-way
                errors[step.id] = error

        async with anyio.create_task_group() as tasks:
            for step in steps[1:]:
                tasks.start_soon(carry_out, step)
            await carry_out(steps[0])  # a task fewer
        if errors:
            raise max(errors.values(), key=_urgency)

    async def _carry_out(
        self, observation: Observation, step: Write | Deletion, current_pass: _ReconcilePass
    ) -> None:
        """Make one write or deletion, and record its problem, if any."""
        state = current_pass.state
        if state.is_undone_too_often(step.id, step.intent_digest, observation.plan_input.now):
            message = f"{step.ref}: written {MOST_REPEATS} times, and undone each time"
            current_pass.problems[step.id] = Problem("NotSettling", message, about=step.id)
            state.refusals.drop(step.id)
            return
        try:
            if isinstance(step, Write):
                await self._write(observation, step, current_pass)
            else:
                await self._prune(step, state)
        except KubeError as error:
            await self._refused(observation, step, current_pass, error)

    async def _write(
        self, observation: Observation, write: Write, current_pass: _ReconcilePass
    ) -> None:
        """Make one write and cache the response. Raises KubeError."""
        state = current_pass.state
        reads = state.read_before_create or write.absent or self._planner.is_behind
        # A create that is refused carries the whole child; to read its name does not.
        if write.create and reads and current_pass.may_read(write.id):
            found = await self._read_child(write.ref, current_pass)
            if found is not None:
                return
        if write.absent:
            state.history[write.id] = ChildHistory(missing=True)
            return
        with self._writing(write.ref, current_pass.key):
            applied = await self._applier.apply(
                write,
                observation.plan_input.live.get(write.id),
                is_heavy=self._cache.is_heavy(current_pass.key),
            )
        current_pass.has_written = True
        self._absorb(write.ref, applied.obj)
        plan_input = observation.plan_input
        # With yielded fields the next look decides: we may hold one together with its other holder.
        may_settle = applied.settled and not plan_input.field_policy.yields
        settled = self._settled(write, applied.obj) if may_settle else None
        state.accept(
            write,
            plan_input.now,
            applied.mark,
            settled=settled,
            field_policy=plan_input.field_policy,
        )
        state.note(write.id, write.intent_digest, observation.plan_input.now)
        if applied.action == "created":
            if write.once:
                self._meter.created(applied.obj, self._clock.now())
            else:
                state.note_created(write.ref)
        if applied.action != "unchanged" or self._controller.blind is None:
            self._tell("claimed" if write.claims else applied.action, write.ref)
        await self._publisher.publish_write(observation, write, state)

    def _settled(self, write: Write, answer: Object) -> SettledChild | None:
        """Return what to remember of a child that a write settled, if it is cached like that."""
        store, key = self._store(write.ref), (write.ref.namespace, write.ref.name)
        cached = store.get(key)
        if cached is None or version_of(cached) != version_of(answer):
            return None
        return SettledChild(write.intent_digest, store.content_version(key))

    async def _refused(
        self,
        observation: Observation,
        step: Write | Deletion,
        current_pass: _ReconcilePass,
        error: KubeError,
    ) -> None:
        """Do what the table says about a refusal. Raises the error if it ends the pass."""
        request = _request(step)
        rule = refusals.rule(request, error)
        if rule.follow is Follow.LOOK and current_pass.may_read(step.id):
            try:
                if await self._has_changed(observation, step, current_pass):
                    return
            except Forbidden as unread:
                error, rule = unread, refusals.rule(request, unread)
        if rule.follow in (Follow.PUT_OFF, Follow.END):
            if isinstance(step, Write) and step.create:
                current_pass.state.maybe_created[step.id] = step.ref
            raise error
        told = f"{step.ref}: {error.message}"
        problem = Problem(rule.reason, told, stalled=rule.stalled, about=step.id)
        current_pass.problems[step.id] = problem
        self._backoff.wait(
            current_pass.state.refusals,
            step.id,
            step.fingerprint,
            request=request,
            ref=step.ref,
            error=error,
            problem=problem,
        )

    async def _has_changed(
        self, observation: Observation, step: Write | Deletion, current_pass: _ReconcilePass
    ) -> bool:
        """Read a child, and return whether it differs from the one that was planned with."""
        before = observation.plan_input.live.get(step.id)
        found = await self._read_child(step.ref, current_pass)
        if found is None or before is None:
            return found is not before
        return version_of(found) != version_of(before)

    async def _read_child(self, ref: ObjectRef, current_pass: _ReconcilePass) -> Object | None:
        """Read a child by name, remember whose it is, and return it, or None.

        This finds objects that no watch shows: our children without the label, and objects of
        others.
        """
        if self._is_foreign(ref):
            return await self._read_foreign(ref)
        found = await self._read(ref, current_pass.key)
        state, child = current_pass.state, (ref.api.kind, ref.name)
        other_installation = self._other_installation(found)
        # A child left by an earlier resource of this name is not taken: it will be deleted soon.
        ours = found is not None and current_pass.key in owner_key(self._controller, found)
        taken = found is not None and (other_installation is not None or not ours)
        history = state.history.get(child, ChildHistory())
        state.history[child] = replace(history, taken=taken, other_installation=other_installation)
        state.read_before_create = state.read_before_create or found is not None
        if taken:
            state.may_read_names(self._clock.now())
        return found

    def _other_installation(self, child: Object | None) -> Installation | None:
        """Return the other installation of hedgerow that manages a child of ours, if any."""
        if child is None or not owner_key(self._controller, child):
            return None
        return installations.other_installation(
            child, self._controller.name, self._planner.installation
        )

    async def _read(self, ref: ObjectRef, key: Key) -> Object | None:
        """Read a child by name, cache it if a resource with this key controls it, and return it.

        A child of another resource is not cached. No watch shows it, so caching it here would make
        the other resource prune it.
        """
        found = await self._applier.read(ref)
        ours = found is not None and key in owner_key(self._controller, found)
        if found is not None and ours and self._other_installation(found) is None:
            self._absorb(ref, found)
        else:
            store = self._cache.child_store(ref.api.kind, ref.namespace)
            store.forget((ref.namespace, ref.name), ref.uid)
        return found

    def _is_foreign(self, ref: ObjectRef) -> bool:
        """Return whether an object is the resource itself, or one that may be claimed."""
        kind = ref.api.kind
        return kind == self._controller.resource.api.kind or self._cache.is_claimed(kind)

    async def _read_foreign(self, ref: ObjectRef) -> Object | None:
        """Read an object that the watches show anyway, cache it, and return it, or None."""
        found = await self._applier.read(ref)
        store = self._store(ref)
        if found is not None:
            store.absorb(found)
        elif ref.uid:
            store.forget((ref.namespace, ref.name), ref.uid)
        return found

    async def _read_maybe_created(self, current_pass: _ReconcilePass) -> None:
        """Read the children whose creation got no response: the watch may not show them yet.

        A plan without them might create one too many, such as another Job of a CronJob.
        """
        maybe_created = current_pass.state.maybe_created
        for child, ref in tuple(maybe_created.items()):
            with suppress(Forbidden):  # without the right to read, rely on the watch
                await self._read(ref, current_pass.key)
            del maybe_created[child]

    async def _find_kept(self, observation: Observation, current_pass: _ReconcilePass) -> bool:
        """Read what is to be kept and is not observed, once in a pass; return whether it is there.

        A child that has lost our label looks deleted to the watch. One that has lost its owner
        reference as well is a stray: it is never written.
        """
        plan_input, state, has_found = observation.plan_input, current_pass.state, False
        kept = [child for child in observation.desired.children if isinstance(child, Keep)]
        named = {(child.kind.api.kind, child.name) for child in kept}
        state.strays = {target: obj for target, obj in state.strays.items() if target in named}
        for child in kept:
            target = child.kind.api.kind, child.name
            if target in plan_input.live or target in current_pass.looked_for:
                continue
            current_pass.looked_for.add(target)
            try:
                found = await self._read(
                    plan_input.ref(child.kind.api, child.name), current_pass.key
                )
            except Forbidden:
                continue  # without the right to read, keep what is known
            before = state.strays.pop(target, None)
            if found is not None and not self._is_owned(found, state.uid):
                state.strays[target] = child.kind(found)
            has_found |= found is not None or before is not None
        return has_found

    def _is_owned(self, child: Object, uid: str) -> bool:
        return controller_of(child).get("uid") == uid and not self._other_installation(child)

    async def _recheck_names(self, current_pass: _ReconcilePass) -> None:
        """Read the objects that no watch shows, but not too often."""
        to_read_again = self._planner.to_read_again(current_pass.state, current_pass.key)
        if not to_read_again or not current_pass.state.may_read_names(self._clock.now()):
            return
        try:
            for ref in to_read_again:
                await self._read_child(ref, current_pass)
        except Forbidden:
            # Without the right to read, keep what is known.
            return

    async def _read_whole_again(self, key: Key) -> None:
        """Read the partly cached objects for which there is room, at least during this pass."""
        for kind, obj in self._cache.returning(key):
            meta = metadata(obj)
            ref = ObjectRef(kind.api, meta.get("namespace", ""), meta["name"])
            found = await self._applier.find(ref)
            if found is not None:
                self._store(ref).adopt(found)

    async def _prune(self, deletion: Deletion, state: ResourceState) -> None:
        await self._applier.delete(deletion)
        state.refusals.drop(deletion.id)
        state.pruned[deletion.id] = deletion.ref.uid
        state.note(deletion.id, deletion.intent_digest, self._clock.now())
        self._tell("deleted", deletion.ref)

    async def _conclude(
        self, observation: Observation, current_pass: _ReconcilePass
    ) -> Outcome | None:
        """Write Events and the status, unless the live status is up to date; return the outcome.

        Return None after a write: plan again. The response may contain changes of others, and the
        watch will not report them any more once the response is in the cache. Only if nothing can
        follow from the response, it is the end of the pass.
        """
        state, owner, live = current_pass.state, observation.plan_input.owner, observation.live
        problems = self._all_problems(observation, current_pass)
        rewritten = await self._publisher.rewritten(observation)
        is_heavy = self._cache.is_heavy(current_pass.key)
        report = await self._report(observation, state, problems, rewritten, is_heavy=is_heavy)
        self._meter.contest(current_pass.key, (field.manager or "" for field in report.contested))
        await self._publisher.resend(observation, state)
        if report.body is None:
            # The status is unchanged, so its Events were already sent.
            return await self._conclude_with(observation, current_pass, report.contested)
        await self._publisher.publish_warnings(observation, state, report, problems, rewritten)
        version: str = metadata(live)["resourceVersion"]
        waits = state.refusals.waiting(STATUS, version, observation.plan_input.now)
        if waits or self._planner.writable(current_pass.key, state) is None:
            return self._outcome(observation, current_pass)
        if state.is_undone_too_often(STATUS, report.intent_digest, observation.plan_input.now):
            state.refusals.drop(STATUS)
            return replace(self._outcome(observation, current_pass), retry=True)
        try:
            with self._writing(owner, current_pass.key):
                answer = await self._applier.apply_status(
                    owner, report.body, version, is_large=is_heavy
                )
        except KubeError as error:
            if isinstance(error, Invalid) and error.too_large and not state.status_too_large:
                state.status_too_large = True  # still report the number of contested fields
                return None
            refusal = self._status_refused(owner, version, state, error)
            # A conflict is reported in the status itself, once it has been seen; others pass.
            if refusal.attempts > 1 and isinstance(error, Forbidden | Invalid):
                await self._publisher.publish_status_refused(observation, state, error)
            return self._outcome(observation, current_pass)
        state.refusals.drop(STATUS)
        state.note(STATUS, report.intent_digest, observation.plan_input.now)
        self._absorb(owner, answer)
        await self._publisher.publish_normal(observation, state)
        ends = not problems and _ends_with(observation, report, answer)
        return await self._end(observation, current_pass, answer, rewritten) if ends else None

    async def _report(
        self,
        observation: Observation,
        state: ResourceState,
        problems: list[Problem],
        rewritten: str,
        *,
        is_heavy: bool,
    ) -> StatusReport:
        """Return the status to apply; one that is known to be settled is not judged again."""
        plan, known = observation.plan, ""
        if not (is_heavy or plan.contested):
            known = _digest(observation, observation.change, problems, rewritten, state)
            if known == state.settled_status:
                return StatusReport(None, ())
        report = await run_in_thread_if_large(
            is_heavy,
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

    async def _end(
        self,
        observation: Observation,
        current_pass: _ReconcilePass,
        answer: Object,
        rewritten: str,
    ) -> Outcome | None:
        """Return the outcome of a pass that has stored its status; None if it must look again.

        A change that was held back was our own status if nothing has come after it: while a status
        is written, no other change of the resource's content is held back.
        """
        key = current_pass.key
        if self._cache.is_heavy(key):
            return None  # with its status, it may be too large to be cached
        cached = self._cache.resource(key)
        if cached is not None and version_of(cached) == version_of(answer):
            self._held_back.discard(key)
            state, change = current_pass.state, self._cache.resource_store(key[0]).change(key)
            state.settled_status = _digest(observation, change, [], rewritten, state)
        return await self._conclude_with(observation, current_pass, ())

    def _status_refused(
        self, owner: ObjectRef, version: str, state: ResourceState, error: KubeError
    ) -> Refusal:
        """Delay a status that was refused. Raises the error if it ends the pass."""
        if refusals.rule(Request.STATUS, error).follow in (Follow.PUT_OFF, Follow.END):
            raise error
        return self._backoff.wait(
            state.refusals, STATUS, version, request=Request.STATUS, ref=owner, error=error
        )

    async def _conclude_with(
        self,
        observation: Observation,
        current_pass: _ReconcilePass,
        contested: Iterable[ContestedField],
    ) -> Outcome:
        """Return the outcome of a pass whose status is stored."""
        state, owner = current_pass.state, observation.plan_input.owner
        await self._publisher.publish_created(observation, state)
        state.refusals.drop(STATUS)
        if not any(field.object == str(owner) for field in contested):
            # If the status is contested, only this remembers them.
            state.created_once.clear()
        return self._outcome(observation, current_pass)

    async def _conclude_built_in(
        self, observation: Observation, current_pass: _ReconcilePass
    ) -> Outcome | None:
        """Write Events and the annotation of a built-in resource; return what `_conclude` does."""
        state, key, live = current_pass.state, current_pass.key, observation.live
        problems = self._all_problems(observation, current_pass)
        rewritten = await self._publisher.rewritten(observation)
        composed = observation.desired.status or Status()
        new_text, report = statuses.told(live, composed, observation.plan, problems, rewritten)
        # An earlier process may have said more: that stays until all is known.
        text = new_text if observation.is_informed else None
        self._meter.contest(key, (field.manager or "" for field in report.contested))
        await self._publisher.resend(observation, state)
        if text is not None and text != annotation(live, STATUS_ANNOTATION):
            await self._publisher.publish_warnings(observation, state, report, problems, rewritten)
        if (write := self._annotation(observation, current_pass, text)) is not None:
            try:
                await self._write(observation, write, current_pass)
            except KubeError as error:
                self._not_annotated(write, state, error)
                return self._outcome(observation, current_pass)
            state.refusals.drop(STATUS)
            return None
        await self._publisher.publish_created(observation, state)
        await self._publisher.publish_normal(observation, state)
        return self._outcome(observation, current_pass)

    def _annotation(
        self, observation: Observation, current_pass: _ReconcilePass, text: str | None
    ) -> Write | None:
        """Return the write of a built-in resource's annotation, if it is due now.

        The annotation of a resource that cannot be read stays: an apply without what is claimed
        would give that back.
        """
        state, plan_input = current_pass.state, observation.plan_input
        if not observation.is_readable or self._planner.writable(current_pass.key, state) is None:
            return None
        if self._controller.informs is not None:
            return None  # it is reported elsewhere
        claims = claims_of(plan_input, observation.desired, self._controller.claimed)
        own = plan_own(plan_input, claims, text)
        for write in own.writes:
            waits = state.refusals.waiting(STATUS, write.fingerprint, plan_input.now)
            return (
                None
                if waits or state.is_undone_too_often(write.id, write.intent_digest, plan_input.now)
                else write
            )
        state.refusals.drop(STATUS)
        return None

    def _not_annotated(self, write: Write, state: ResourceState, error: KubeError) -> None:
        """Delay an annotation that was refused. Raises the error if it ends the pass."""
        if refusals.rule(Request.APPLY, error).follow in (Follow.PUT_OFF, Follow.END):
            raise error
        self._backoff.wait(
            state.refusals,
            STATUS,
            write.fingerprint,
            request=Request.APPLY,
            ref=write.ref,
            error=error,
        )

    def _problems(
        self, observation: Observation, current_pass: _ReconcilePass
    ) -> dict[ChildId, Problem]:
        """Return the problems of the plan's writes and deletions, in their order."""
        known = current_pass.state.refusals
        found = {
            step.id: current_pass.problems.get(step.id) or known.problem(step.id)
            for step in observation.plan.requests
        }
        return {target: problem for target, problem in found.items() if problem}

    def _all_problems(
        self, observation: Observation, current_pass: _ReconcilePass
    ) -> list[Problem]:
        """Return the problems of the writes and deletions, then those of the plan, each once."""
        of_requests = self._problems(observation, current_pass).values()
        return list(dict.fromkeys((*of_requests, *observation.plan.problems)))

    def _outcome(self, observation: Observation, current_pass: _ReconcilePass) -> Outcome:
        """Return how the pass ended, and when the next one is due at the latest."""
        known, now = current_pass.state.refusals, self._clock.now()
        # No watch here reports the deletion of another owner's object that has a child's name.
        waits = any(problem.reason == WAITING for problem in observation.plan.problems)
        to_read_again = waits or self._planner.to_read_again(current_pass.state, current_pass.key)
        recheck = current_pass.state.recheck_in(now) if to_read_again else None
        asked = observation.desired.requeue_after
        if asked is not None:  # it is asked from when the pass began
            asked = max(asked - (now - current_pass.began), timedelta())
        soonest = _soonest(asked, recheck, known.due_in(now), self._controller.blind)
        return Outcome(
            retry=any(target not in known for target in self._problems(observation, current_pass)),
            requeue_after=soonest,
            refused=bool(known),
            is_due=observation.is_readable and asked is not None and soonest == asked,
        )

    def _absorb(self, ref: ObjectRef, answer: Object) -> None:
        foreign = self._is_foreign(ref)
        if not foreign and not owner_key(self._controller, answer):
            # A child that was given back is not ours any more, and no watch shows it.
            self._store(ref).forget((ref.namespace, ref.name), ref.uid)
            return
        if self._has_let_go(ref, answer):
            # It is gone with this write, and the answer has no new version.
            self._store(ref).forget((ref.namespace, ref.name), metadata(answer)["uid"])
            return
        store, watched = self._store(ref), foreign or self._planner.is_watched(answer)
        (store.absorb if watched else store.adopt)(answer)

    def _has_let_go(self, ref: ObjectRef, answer: Object) -> bool:
        """Return whether the resource itself was kept by our finalizer alone."""
        is_own = ref.api.kind == self._controller.resource.api.kind and self._controller.finalizer
        return bool(is_own) and is_terminating(answer) and not finalizers_of(answer)

    def _store(self, ref: ObjectRef) -> Store:
        if ref.api.kind == self._controller.resource.api.kind:
            return self._cache.resource_store(ref.namespace)
        return self._cache.child_store(ref.api.kind, ref.namespace)

    def _tell(self, action: str, ref: ObjectRef) -> None:
        log.info(action, child=str(ref))

    def _state(self, key: Key, live: Object) -> ResourceState:
        uid = metadata(live)["uid"]
        state = self._states.get(key)
        if state is None or state.uid != uid:
            state = ResourceState.of(uid, live, custom=self._controller.is_custom)
            self._states[key] = state
        return state


def _not_pure(observation: Observation, told: str) -> Observation:
    error = NotPureError(told)
    return observation.failed(not_pure(error), error)


def _creates(steps: Iterable[Write | Deletion]) -> bool:
    return any(isinstance(step, Write) and step.create for step in steps)


def _digest(
    observation: Observation,
    change: int,
    problems: list[Problem],
    rewritten: str,
    state: ResourceState,
) -> str:
    """Return a digest of what the status of a resource is made from, as of this `change` of it."""
    plan = observation.plan
    found = (problems, rewritten, plan.unmatched, plan.ignored, state.status_too_large)
    return checksum(change, observation.desired.status, found)


def _ends_with(observation: Observation, report: StatusReport, answer: Object) -> bool:
    """Return whether another look would find nothing new after this answer to a status.

    Nobody else can have changed the resource, for the status was for exactly its version. It is
    stored as it was sent, nothing is contested, which the next look may settle, and compose said
    that nothing waits for the status. When it asked for another pass, that look says how soon.
    """
    stored: Object = answer.get("status") or {}
    written: Object = (report.body or {}).get("status") or {}
    return (
        observation.desired.final
        and observation.desired.requeue_after is None
        and not (report.contested or observation.plan_input.reported)
        and all(stored.get(name) == value for name, value in written.items())
    )


def _urgency(error: Exception) -> tuple[bool, float]:
    """Return how much an error matters: a defect first, then who asks us to wait longest."""
    return not isinstance(error, KubeError), getattr(error, "after", 0.0)


def _request(step: Write | Deletion) -> Request:
    if isinstance(step, Deletion):
        return Request.DELETE
    return Request.CREATE if step.create else Request.APPLY


def _soonest(*waits: timedelta | None) -> timedelta | None:
    return min((wait for wait in waits if wait is not None), default=None)
