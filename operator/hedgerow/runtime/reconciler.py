"""Reconciler: one pass over a resource, from the caches to writes, Events and a status.

A pass makes one write, stores the response in the cache, and plans again, until nothing is left to
do. So every decision takes the last write into account, and a crash between two writes loses no
knowledge.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import structlog

from hedgerow.kube.errors import Forbidden, Invalid, KubeError, Missing
from hedgerow.objects import ObjectRef, annotation, metadata
from hedgerow.plan import installations
from hedgerow.plan import status as statuses
from hedgerow.plan.annotation import STATUS_ANNOTATION
from hedgerow.plan.conditions import Problem
from hedgerow.plan.input import Past
from hedgerow.plan.installations import kept_by
from hedgerow.plan.plan import WAITING, claims_of, plan_own
from hedgerow.plan.policy import CLAIM, YIELD
from hedgerow.plan.writes import ChildId, Deletion, Write
from hedgerow.runtime import refusals
from hedgerow.runtime.cache.caches import owner_key
from hedgerow.runtime.cache.store import version_of
from hedgerow.runtime.finalizers import Finalizers
from hedgerow.runtime.heavy import aside
from hedgerow.runtime.metrics import Meter, Meters
from hedgerow.runtime.refusals import STATUS, Backoff, Follow, Request
from hedgerow.runtime.state import MOST_REPEATS, RECHECK_NAME, Memory
from hedgerow_schemas.base import Object, Status

if TYPE_CHECKING:
    from datetime import timedelta

    from hedgerow.contract import Key
    from hedgerow.objects import Installation
    from hedgerow.runtime.applier import Applier
    from hedgerow.runtime.cache.store import Store
    from hedgerow.runtime.events.publisher import Announcer
    from hedgerow.runtime.observation import Look, Observer

MOST_LOOKS = 8
"""The most reads of one object in one pass; if it changes faster, the next pass goes on."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a pass ended: whether to retry it with backoff, and when the next one is due anyway.

    `refused`: a request was refused and has a backoff of its own, which `requeue_after` includes.
    """

    retry: bool = False
    requeue_after: timedelta | None = None
    refused: bool = False


@dataclass(slots=True)
class _Pass:
    """One pass: the resource's key and memory, the problems met, and the children created."""

    key: Key
    memory: Memory
    met: dict[ChildId, Problem] = field(default_factory=dict[ChildId, Problem])
    created: list[str] = field(default_factory=list[str])
    looks: Counter[ChildId] = field(default_factory=Counter[ChildId])

    def may_look(self, target: ChildId) -> bool:
        """Return whether a target may be read once more in this pass; count the read."""
        self.looks[target] += 1
        return self.looks[target] <= MOST_LOOKS


class Reconciler:
    """The passes of one controller."""

    def __init__(
        self,
        observer: Observer,
        applier: Applier,
        announcer: Announcer,
        meter: Meter | None = None,
    ) -> None:
        self._meter = meter or Meters().of(observer.controller.name)
        self._observer = observer
        self._applier = applier
        self._announcer = announcer
        self._controller = observer.controller
        self._cache = observer.cache
        self._clock = observer.clock
        self._memories: dict[Key, Memory] = {}
        self._backoff = Backoff(observer.clock, self._meter)
        self._finalizers = Finalizers(self._controller, self._cache, applier, self._backoff)
        self._keepers: set[Installation] = set()

    async def reconcile(self, key: Key) -> Outcome:
        """Make one pass over a resource, and return how it ended.

        Raises KubeError if the server cannot be reached or asks us to wait. A refused request or a
        user's mistake becomes a condition instead; `runtime/refusals.py` has the table.
        """
        guarded_for = await self._finalizers.take_off(key)
        live = self._cache.resource(key)
        if live is None:
            self._memories.pop(key, None)
            self._meter.contest(key, ())
            outcome = await self._after(key)
        else:
            outcome = await self._pass(key, live)
        if guarded_for is None:
            return outcome
        again = _soonest(outcome.requeue_after, guarded_for)
        return replace(outcome, requeue_after=again, refused=True)

    def rewind(self) -> None:
        """Forget which children were deleted and which Events were sent: a restore may undo both.

        Children that were created once stay known, so that no start of a CronJob is made again.
        """
        for memory in self._memories.values():
            memory.pruned.clear()
            memory.told.clear()
        self._announcer.rewind()

    async def _pass(self, key: Key, live: Object) -> Outcome:
        memory = self._memory(key, live)
        terms = f"{annotation(live, YIELD)}\n{annotation(live, CLAIM)}"
        # The generation of a built-in resource also changes by our claims and those who undo them.
        custom = self._controller.is_custom
        memory.renew(metadata(live).get("generation", 0) if custom else 0, terms)
        try:
            return await self._converge(_Pass(key, memory))
        except Forbidden as error:
            if not error.terminating:
                raise
            memory.barred = True
            return Outcome()
        except Missing as error:
            if not error.served:
                raise
            # The namespace is gone, and the resource with it: the watch will report it soon.
            return Outcome(retry=True)

    async def _after(self, key: Key) -> Outcome:
        """Read the unwatched children of a resource that is gone, until they are gone too."""
        for ref in self._observer.unwatched(key):
            try:
                await self._read(ref, key)
            except Forbidden:
                break  # without the right to read, keep what is known
        return Outcome(requeue_after=RECHECK_NAME if self._observer.unwatched(key) else None)

    async def _converge(self, made: _Pass) -> Outcome:
        try:
            await self._make_sure(made)
            await self._recheck_names(made)
            await self._take_in(made.key)
            return await self._looked_at(made)
        finally:
            self._cache.returned(made.key)

    async def _looked_at(self, made: _Pass) -> Outcome:
        memory = made.memory
        while look := await self._observer.look(made.key, memory, frozenset(made.met)):
            step = self._next(look, made)
            if step is None:
                custom = look.scene.is_custom
                conclude = self._conclude if custom else self._conclude_built_in
                outcome = await conclude(look, made)
                if outcome is None:
                    continue
                return outcome
            await self._carry_out(look, step, made)
        return self._left(made.key)

    def keeper(self, key: Key) -> Installation | None:
        """Return the other installation that manages a resource, if a pass has found one."""
        live = self._cache.resource(key)
        return self._observer.keeper(live, self._memory(key, live)) if live else None

    def _left(self, key: Key) -> Outcome:
        """Return the outcome for a resource of another installation; log that once.

        The watch reports if that installation gives up the resource, but not if it gives up a
        child: then the next pass is due after a while.
        """
        live, keeper = self._cache.resource(key), self.keeper(key)
        if live is None or keeper is None:
            return Outcome()
        if keeper not in self._keepers:
            self._keepers.add(keeper)
            kind = self._controller.resource.api.kind
            log.warning("resources are left alone", why=kept_by(f"{kind}/{key[1]}", keeper))
        program = self._observer.installation.program
        reported = installations.reporters(live, self._controller.name, program)
        return Outcome(requeue_after=None if reported else RECHECK_NAME)

    def _next(self, look: Look, made: _Pass) -> Write | Deletion | None:
        """Return the next write or deletion that has not failed in this pass and is not waiting.

        Children that were pruned before are skipped: they are being deleted already.
        """
        memory, now = made.memory, look.scene.now
        for step in look.plan.steps:
            if isinstance(step, Deletion) and memory.pruned.get(step.id) == step.ref.uid:
                continue
            if step.id in made.met or memory.refusals.waiting(step.id, step.mark, now):
                continue
            return step
        return None

    async def _carry_out(self, look: Look, step: Write | Deletion, made: _Pass) -> None:
        """Make one write or deletion, and record its problem, if any."""
        memory = made.memory
        if memory.is_tired(step.id, step.gist, look.scene.now):
            message = f"{step.ref}: written {MOST_REPEATS} times, and undone each time"
            made.met[step.id] = Problem("NotSettling", message)
            memory.refusals.drop(step.id)
            return
        try:
            if isinstance(step, Write):
                await self._write(look, step, made)
            else:
                await self._prune(step, memory)
        except KubeError as error:
            await self._refused(look, step, made, error)

    async def _write(self, look: Look, write: Write, made: _Pass) -> None:
        """Make one write and cache the response. Raises KubeError."""
        memory = made.memory
        if write.create and memory.wary and made.may_look(write.id):
            found = await self._look_at(write.ref, made)
            if found is not None:
                return
        applied = await self._applier.apply(
            write, look.scene.live.get(write.id), is_heavy=self._cache.is_heavy(made.key)
        )
        self._absorb(write.ref, applied.obj)
        memory.accept(write, look.scene.now, applied.mark)
        memory.note(write.id, write.gist, look.scene.now)
        if applied.action == "created":
            if write.once:
                self._meter.created(applied.obj, self._clock.now())
            else:
                made.created.append(str(write.ref))
        self._tell("claimed" if write.claims else applied.action, write.ref)
        await self._announcer.of_write(look, write, memory)

    async def _refused(
        self, look: Look, step: Write | Deletion, made: _Pass, error: KubeError
    ) -> None:
        """Do what the table says about a refusal. Raises the error if it ends the pass."""
        request = _request(step)
        rule = refusals.rule(request, error)
        if rule.follow is Follow.LOOK and made.may_look(step.id):
            try:
                if await self._is_news(look, step, made):
                    return
            except Forbidden as unread:
                error, rule = unread, refusals.rule(request, unread)
        if rule.follow in (Follow.PUT_OFF, Follow.END):
            if isinstance(step, Write) and step.create:
                made.memory.unsure[step.id] = step.ref
            raise error
        problem = Problem(rule.reason, f"{step.ref}: {error.message}", stalled=rule.stalled)
        made.met[step.id] = problem
        self._backoff.wait(
            made.memory.refusals,
            step.id,
            step.mark,
            request=request,
            ref=step.ref,
            error=error,
            problem=problem,
        )

    async def _is_news(self, look: Look, step: Write | Deletion, made: _Pass) -> bool:
        """Read a child, and return whether it differs from the one that was planned with."""
        before = look.scene.live.get(step.id)
        found = await self._look_at(step.ref, made)
        if found is None or before is None:
            return found is not before
        return version_of(found) != version_of(before)

    async def _look_at(self, ref: ObjectRef, made: _Pass) -> Object | None:
        """Read a child by name, remember whose it is, and return it, or None.

        This finds objects that no watch shows: our children without the label, and objects of
        others.
        """
        if self._is_foreign(ref):
            return await self._read_foreign(ref)
        found = await self._read(ref, made.key)
        memory, child = made.memory, (ref.api.kind, ref.name)
        keeper = self._keeper(found)
        # A child left by an earlier resource of this name is not taken: it will be deleted soon.
        ours = found is not None and made.key in owner_key(self._controller, found)
        taken = found is not None and (keeper is not None or not ours)
        past = memory.past.get(child, Past())
        memory.past[child] = replace(past, taken=taken, keeper=keeper)
        memory.wary = memory.wary or found is not None
        if taken:
            memory.may_read_names(self._clock.now())
        return found

    def _keeper(self, child: Object | None) -> Installation | None:
        """Return the other installation of hedgerow that manages a child of ours, if any."""
        if child is None or not owner_key(self._controller, child):
            return None
        return installations.keeper(child, self._controller.name, self._observer.installation)

    async def _read(self, ref: ObjectRef, key: Key) -> Object | None:
        """Read a child by name, cache it if a resource with this key controls it, and return it.

        A child of another resource is not cached. No watch shows it, so caching it here would make
        the other resource prune it.
        """
        found = await self._applier.read(ref)
        ours = found is not None and key in owner_key(self._controller, found)
        if found is not None and ours and self._keeper(found) is None:
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

    async def _make_sure(self, made: _Pass) -> None:
        """Read the children whose creation got no response: the watch may not show them yet.

        A plan without them might create one too many, such as another Job of a CronJob.
        """
        unsure = made.memory.unsure
        for child, ref in tuple(unsure.items()):
            with suppress(Forbidden):  # without the right to read, rely on the watch
                await self._read(ref, made.key)
            del unsure[child]

    async def _recheck_names(self, made: _Pass) -> None:
        """Read the objects that no watch shows, but not too often."""
        unseen = self._observer.unseen(made.memory, made.key)
        if not unseen or not made.memory.may_read_names(self._clock.now()):
            return
        try:
            for ref in unseen:
                await self._look_at(ref, made)
        except Forbidden:
            # Without the right to read, keep what is known.
            return

    async def _take_in(self, key: Key) -> None:
        """Read the partly cached objects for which there is room, at least during this pass."""
        for kind, obj in self._cache.returning(key):
            meta = metadata(obj)
            ref = ObjectRef(kind.api, meta.get("namespace", ""), meta["name"])
            found = await self._applier.find(ref)
            if found is not None:
                self._store(ref).adopt(found)

    async def _prune(self, deletion: Deletion, memory: Memory) -> None:
        await self._applier.delete(deletion)
        memory.refusals.drop(deletion.id)
        memory.pruned[deletion.id] = deletion.ref.uid
        memory.note(deletion.id, deletion.gist, self._clock.now())
        self._tell("deleted", deletion.ref)

    async def _conclude(self, look: Look, made: _Pass) -> Outcome | None:
        """Write Events and the status, unless the live status is up to date; return the outcome.

        Return None after a write: plan again. The response may contain changes of others, and the
        watch will not report them any more once the response is in the cache.
        """
        memory, owner, live = made.memory, look.scene.owner, look.live
        problems = list(dict.fromkeys((*self._problems(look, made).values(), *look.plan.problems)))
        rewritten = await self._announcer.rewritten(look)
        is_heavy = self._cache.is_heavy(made.key)
        report = await aside(
            is_heavy,
            statuses.report,
            look.scene,
            live,
            look.desired.status or Status(),
            look.plan.contested,
            problems,
            rewritten=rewritten,
            unmatched=look.plan.unmatched,
            ignored=look.plan.ignored,
            brief=memory.brief,
        )
        self._meter.contest(made.key, (field.manager or "" for field in report.contested))
        await self._announcer.resend(look, memory)
        if report.body is None:
            await self._announcer.of_children(look, memory, made.created)
            made.created.clear()
            memory.refusals.drop(STATUS)
            if not any(field.object == str(owner) for field in report.contested):
                memory.once.clear()  # kept if the status is contested: only this remembers them
            # The status is unchanged, so its Events were already sent.
            return self._outcome(look, made)
        await self._announcer.of_pass(look, memory, report, problems, rewritten)
        version: str = metadata(live)["resourceVersion"]
        waits = memory.refusals.waiting(STATUS, version, look.scene.now)
        if waits or self._observer.writable(made.key, memory) is None:
            return self._outcome(look, made)
        if memory.is_tired(STATUS, report.gist, look.scene.now):
            memory.refusals.drop(STATUS)
            return replace(self._outcome(look, made), retry=True)
        try:
            answer = await self._applier.apply_status(
                owner, report.body, version, is_large=is_heavy
            )
        except KubeError as error:
            if isinstance(error, Invalid) and error.too_large and not memory.brief:
                memory.brief = True  # still report the number of contested fields
                return None
            follow = refusals.rule(Request.STATUS, error).follow
            if follow in (Follow.PUT_OFF, Follow.END):
                raise
            self._backoff.wait(
                memory.refusals, STATUS, version, request=Request.STATUS, ref=owner, error=error
            )
            return self._outcome(look, made)
        memory.refusals.drop(STATUS)
        memory.note(STATUS, report.gist, look.scene.now)
        self._absorb(owner, answer)
        await self._announcer.of_progress(look, memory)
        return None

    async def _conclude_built_in(self, look: Look, made: _Pass) -> Outcome | None:
        """Write Events and the annotation of a built-in resource; return what `_conclude` does."""
        memory, key, live = made.memory, made.key, look.live
        problems = list(dict.fromkeys((*self._problems(look, made).values(), *look.plan.problems)))
        rewritten = await self._announcer.rewritten(look)
        composed = look.desired.status or Status()
        text, report = statuses.told(live, composed, look.plan, problems, rewritten)
        self._meter.contest(key, (field.manager or "" for field in report.contested))
        await self._announcer.resend(look, memory)
        if text != annotation(live, STATUS_ANNOTATION):
            await self._announcer.of_pass(look, memory, report, problems, rewritten)
        if (write := self._annotation(look, made, text)) is not None:
            try:
                await self._write(look, write, made)
            except KubeError as error:
                self._not_annotated(write, memory, error)
                return self._outcome(look, made)
            memory.refusals.drop(STATUS)
            return None
        await self._announcer.of_children(look, memory, made.created)
        made.created.clear()
        await self._announcer.of_progress(look, memory)
        return self._outcome(look, made)

    def _annotation(self, look: Look, made: _Pass, text: str) -> Write | None:
        """Return the write of a built-in resource's annotation, if it is due now.

        The annotation of a resource that cannot be read stays: an apply without what is claimed
        would give that back.
        """
        memory, scene = made.memory, look.scene
        if not look.is_readable or self._observer.writable(made.key, memory) is None:
            return None
        kinds = tuple(claimable.kind for claimable in self._controller.claims)
        own = plan_own(scene, claims_of(scene, look.desired, kinds), text)
        for write in own.writes:
            waits = memory.refusals.waiting(STATUS, write.mark, scene.now)
            return None if waits or memory.is_tired(write.id, write.gist, scene.now) else write
        memory.refusals.drop(STATUS)
        return None

    def _not_annotated(self, write: Write, memory: Memory, error: KubeError) -> None:
        """Delay an annotation that was refused. Raises the error if it ends the pass."""
        if refusals.rule(Request.APPLY, error).follow in (Follow.PUT_OFF, Follow.END):
            raise error
        self._backoff.wait(
            memory.refusals, STATUS, write.mark, request=Request.APPLY, ref=write.ref, error=error
        )

    def _problems(self, look: Look, made: _Pass) -> dict[ChildId, Problem]:
        """Return the problems of the plan's writes and deletions, in their order."""
        known = made.memory.refusals
        found = {
            step.id: made.met.get(step.id) or known.problem(step.id) for step in look.plan.steps
        }
        return {target: problem for target, problem in found.items() if problem}

    def _outcome(self, look: Look, made: _Pass) -> Outcome:
        """Return how the pass ended, and when the next one is due at the latest."""
        known, now = made.memory.refusals, self._clock.now()
        # No watch here reports the deletion of another owner's object that has a child's name.
        waits = any(problem.reason == WAITING for problem in look.plan.problems)
        unseen = waits or self._observer.unseen(made.memory, made.key)
        recheck = RECHECK_NAME if unseen else None
        return Outcome(
            retry=any(target not in known for target in self._problems(look, made)),
            requeue_after=_soonest(look.desired.requeue_after, recheck, known.due_in(now)),
            refused=bool(known),
        )

    def _absorb(self, ref: ObjectRef, answer: Object) -> None:
        foreign = self._is_foreign(ref)
        store, watched = self._store(ref), foreign or self._observer.is_watched(answer)
        (store.absorb if watched else store.adopt)(answer)

    def _store(self, ref: ObjectRef) -> Store:
        if ref.api.kind == self._controller.resource.api.kind:
            return self._cache.resource_store(ref.namespace)
        return self._cache.child_store(ref.api.kind, ref.namespace)

    def _tell(self, action: str, ref: ObjectRef) -> None:
        log.info(action, child=str(ref))

    def _memory(self, key: Key, live: Object) -> Memory:
        uid = metadata(live)["uid"]
        memory = self._memories.get(key)
        if memory is None or memory.uid != uid:
            memory = Memory.of(uid, live, custom=self._controller.is_custom)
            self._memories[key] = memory
        return memory


def _request(step: Write | Deletion) -> Request:
    if isinstance(step, Deletion):
        return Request.DELETE
    return Request.CREATE if step.create else Request.APPLY


def _soonest(*waits: timedelta | None) -> timedelta | None:
    return min((wait for wait in waits if wait is not None), default=None)
