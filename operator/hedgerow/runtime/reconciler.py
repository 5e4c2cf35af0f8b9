"""Reconciler: one pass, from what the caches show to writes, Events and a status.

A pass makes one write, takes in its answer, and looks again, until nothing is left to do: every
decision rests on what the last write brought about, and a crash between two writes leaves
nothing half-known.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import structlog

from hedgerow.core import status as statuses
from hedgerow.core.conditions import Problem
from hedgerow.core.meta import ObjectRef, annotation, controller_of, metadata
from hedgerow.core.plan import Past, Plan
from hedgerow.core.steps import ChildId, Deletion, Write
from hedgerow.core.terms import CLAIM, YIELD
from hedgerow.kube.errors import AlreadyExists, Conflict, Forbidden, Invalid, Missing, Stale
from hedgerow.runtime import finalizers
from hedgerow.runtime.memory import MOST_REPEATS, RECHECK_NAME, STATUS, Memory
from hedgerow.runtime.metrics import Meter, Meters
from hedgerow_schemas.base import Object, Status

if TYPE_CHECKING:
    from collections.abc import Container, Iterable
    from datetime import timedelta

    from hedgerow.core.contract import Key
    from hedgerow.runtime.announcer import Announcer
    from hedgerow.runtime.applier import Applier
    from hedgerow.runtime.observer import Look, Observer

RETRIED = frozenset({"Forbidden", "NotSettling"})

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a pass ended: whether to retry it with backoff, and when to look again anyway."""

    retry: bool = False
    requeue_after: timedelta | None = None


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

    async def reconcile(self, key: Key) -> Outcome:
        """Make one pass over a resource.

        Raises KubeError when the server cannot be reached or asks for patience; what a server
        refuses or a user got wrong becomes a condition.
        """
        live = self._cache.resource(key)
        await finalizers.take_off(self._controller, self._cache, self._applier, key)
        if live is None:
            self._memories.pop(key, None)
            self._meter.contest(key, ())
            return Outcome()
        memory = self._memory(key, live)
        terms = f"{annotation(live, YIELD)}\n{annotation(live, CLAIM)}"
        memory.renew(metadata(live).get("generation", 0), terms)
        try:
            return await self._converge(key, memory)
        except Missing as error:
            if not error.served:
                raise
            # The namespace is gone, and the resource with it: the watch is about to tell.
            return Outcome()
        except Forbidden as error:
            if not error.terminating:
                raise
            memory.barred = True
            return Outcome()

    async def _converge(self, key: Key, memory: Memory) -> Outcome:
        await self._recheck_names(memory, key[0])
        met: dict[ChildId, Problem] = {}
        while look := self._observer.look(key, memory, frozenset(met)):
            step = _next(look.plan, memory, met)
            if step is None:
                outcome = await self._conclude(look, memory, met.values())
                if outcome is None:
                    continue
                return outcome
            problem = await self._carry_out(look, step, memory)
            if problem is not None:
                met[step.id] = problem
        return Outcome()

    async def _carry_out(
        self, look: Look, step: Write | Deletion, memory: Memory
    ) -> Problem | None:
        """Make one write or deletion; give the problem met, if any."""
        now, problem = look.scene.now, None
        if memory.is_tired(step.id, step.gist, now):
            message = f"{step.ref}: written {MOST_REPEATS} times, and undone each time"
            return Problem("NotSettling", message)
        try:
            if isinstance(step, Write):
                problem = await self._write(look, step, memory)
            else:
                await self._prune(step, memory)
        except Invalid as error:
            return Problem("Rejected", f"{step.ref}: {error}")
        except Forbidden as error:
            if error.terminating:
                raise
            return Problem("Forbidden", f"{step.ref}: {error}")
        return problem

    async def _write(self, look: Look, write: Write, memory: Memory) -> Problem | None:
        """Make one write and take in its answer; give the problem met, if any."""
        try:
            if write.create and memory.wary and await self._met(write.ref, memory):
                return None
            applied = await self._applier.apply(write, look.scene.live.get(write.id))
        except (AlreadyExists, Stale):
            # The cache was wrong about the object: it is there, is gone, or is another one.
            if await self._met(write.ref, memory):
                return None
            raise
        except Conflict as error:
            # To an object that should not have been there, the server may answer so as well.
            if write.create and await self._met(write.ref, memory):
                return None
            # A race: the watch is about to show who took the field, and that is then reported.
            return memory.refuse(write, Problem("FieldConflict", str(error), stalled=False))
        except Invalid as error:
            return memory.refuse(write, Problem("Rejected", f"{write.ref}: {error}"))
        self._absorb(write.ref, applied.obj)
        memory.accept(write, look.scene.now)
        memory.note(write.id, write.gist, look.scene.now)
        if write.once and applied.action == "created":
            self._meter.created(applied.obj, self._clock.now())
        self._tell("claimed" if write.claims else applied.action, write.ref)
        await self._announcer.of_write(look, write, memory)
        return None

    async def _met(self, ref: ObjectRef, memory: Memory) -> bool:
        """Read a child by name and note what is there; False when that is no news.

        What no watch told of is found this way: a child of ours without its label, and objects
        of others.
        """
        found = await self._applier.read(ref)
        store = self._cache.child_store(ref.api.kind, ref.namespace)
        child = (ref.api.kind, ref.name)
        if found is None:
            store.forget((ref.namespace, ref.name), ref.uid)
            return bool(ref.uid)
        memory.wary = True
        if controller_of(found).get("uid") == memory.uid:
            store.adopt(found)
            memory.past[child] = replace(memory.past.get(child, Past()), taken=False)
            return True
        store.forget((ref.namespace, ref.name), ref.uid)
        memory.past[child] = Past(taken=True)
        memory.may_read_names(self._clock.now())
        return True

    async def _recheck_names(self, memory: Memory, namespace: str) -> None:
        """Look again, now and then, at what no watch shows."""
        unseen = self._observer.unseen(memory, namespace)
        if not unseen or not memory.may_read_names(self._clock.now()):
            return
        try:
            for ref in unseen:
                if not await self._met(ref, memory):
                    del memory.past[(ref.api.kind, ref.name)]
        except Forbidden:
            # Without the right to look, what was known stands.
            return

    async def _prune(self, deletion: Deletion, memory: Memory) -> None:
        try:
            await self._applier.delete(deletion)
        except Stale:
            # It changed since it was observed; whether it is still to go is decided anew.
            await self._met(deletion.ref, memory)
            return
        memory.pruned[deletion.id] = deletion.ref.uid
        memory.note(deletion.id, deletion.gist, self._clock.now())
        self._tell("deleted", deletion.ref)

    async def _conclude(self, look: Look, memory: Memory, met: Iterable[Problem]) -> Outcome | None:
        """Write what the pass found into Events and the status, unless it is there already.

        None after a write: its answer may show what the watch, being behind, will not tell anew.
        """
        problems = list(dict.fromkeys((*met, *look.plan.problems)))
        live, owner, composed = look.live, look.scene.owner, look.desired.status or Status()
        outcome = Outcome(
            retry=any(problem.reason in RETRIED for problem in problems),
            requeue_after=self._requeue_after(look, memory),
        )
        rewritten = await self._announcer.rewritten(look)
        report = statuses.report(
            look.scene,
            live,
            composed,
            look.plan.contested,
            problems,
            rewritten=rewritten,
            unmatched=look.plan.unmatched,
        )
        key = owner.namespace, owner.name
        self._meter.contest(key, (field.manager for field in report.contested))
        if report.body is None:
            if not any(field.object == str(owner) for field in report.contested):
                memory.once.clear()  # what a status leaves out, nothing but this remembers
            return outcome  # whatever there is to tell was told when the status came to say it
        await self._announcer.of_pass(look, memory, report.contested, problems, rewritten)
        version = metadata(live)["resourceVersion"]
        if memory.status_refused == version or not self._is_writable(owner, memory):
            return outcome
        if memory.is_tired(STATUS, report.gist, look.scene.now):
            return replace(outcome, retry=True)
        try:
            answer = await self._applier.apply_status(owner, report.body, version)
        except (Conflict, Invalid, Stale) as error:
            memory.status_refused = version
            # A stale one is in the order of things: the watch is about to tell of what changed.
            tell = log.debug if isinstance(error, Stale) else log.warning
            tell("status not written", error=str(error))
            return outcome
        memory.note(STATUS, report.gist, look.scene.now)
        self._absorb(owner, answer)
        return None

    def _requeue_after(self, look: Look, memory: Memory) -> timedelta | None:
        unseen = self._observer.unseen(memory, look.scene.owner.namespace)
        waits = (look.desired.requeue_after, RECHECK_NAME if unseen else None)
        return min((wait for wait in waits if wait is not None), default=None)

    def _is_writable(self, owner: ObjectRef, memory: Memory) -> bool:
        return self._observer.writable((owner.namespace, owner.name), memory) is not None

    def _absorb(self, ref: ObjectRef, answer: Object) -> None:
        kind, cache = ref.api.kind, self._cache
        if kind == self._controller.resource.api.kind:
            store, watched = cache.resource_store(ref.namespace), True
        else:
            store = cache.child_store(kind, ref.namespace)
            watched = self._observer.is_watched(answer)
        (store.absorb if watched else store.adopt)(answer)

    def _tell(self, action: str, ref: ObjectRef) -> None:
        log.info(action, child=str(ref))

    def _memory(self, key: Key, live: Object) -> Memory:
        uid = metadata(live)["uid"]
        memory = self._memories.get(key)
        if memory is None or memory.uid != uid:
            memory = self._memories[key] = Memory.of(uid, live)
        return memory


def _next(plan: Plan, memory: Memory, met: Container[ChildId]) -> Write | Deletion | None:
    """Give the next thing to carry out; what was pruned is on its way out already."""
    due = (gone for gone in plan.deletions if memory.pruned.get(gone.id) != gone.ref.uid)
    return next((step for step in (*plan.writes, *due) if step.id not in met), None)
