"""Writer: makes the writes and deletions of one pass, and reacts to refusals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from hedgerow.fields.paths import path_of
from hedgerow.fields.refused import refused_places
from hedgerow.fields.unions import in_the_way
from hedgerow.kube.errors import (
    Forbidden,
    Garbled,
    Invalid,
    KubeError,
    Unavailable,
    Undecodable,
    Unreachable,
)
from hedgerow.objects import ChildId, metadata
from hedgerow.plan.conditions import Problem
from hedgerow.plan.writes import Deletion, Write
from hedgerow.runtime.cache.store import version_of
from hedgerow.runtime.passes import refusals
from hedgerow.runtime.passes.refusals import Reaction, RequestKind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hedgerow.fields.refused import Place
    from hedgerow.runtime.passes.resource_pass import Pass
    from hedgerow_schemas.base import Object

UNANSWERED = (Garbled, Unavailable, Unreachable)

log = structlog.get_logger(__name__)


class Writer:
    """Makes the writes and deletions of one pass."""

    def __init__(self, current: Pass) -> None:
        self._pass = current
        self._context, self._state = current.context, current.state

    async def make(self, step: Write | Deletion) -> None:
        """Make one write or deletion, and record its problem, if any.

        Raises the error if that ends the pass.
        """
        if self._context.planner.is_unread(step.ref):
            self._pass.failed.add(step.id)
            return
        reads = self._pass.reads
        try:
            if isinstance(step, Deletion):
                await self._delete(step)
                return
            # A create that is refused carries the whole child; to read its name does not.
            looks = step.create and self._state.ledger.reads_names and reads.may_read(step.id)
            if not looks or await reads.child(step.ref) is None:
                await self.write(step)
        except KubeError as error:
            await self._refused(step, error)

    async def write(self, write: Write) -> bool:
        """Make one write, cache the response, and return whether that settles it.

        Raises KubeError.
        """
        current, context, state = self._pass, self._context, self._state
        plan_input = current.observation.plan_input
        before = current.observation.live if write.is_status else plan_input.live.get(write.child)
        applied = await context.applier.apply(write, before)
        context.intake.absorb(write.ref, applied.obj, before)
        current.reads.note(write.ref, applied.obj)
        # With yielded fields the next plan decides: we may hold one together with its other holder.
        is_settled = applied.settled and not plan_input.field_policy.yields
        content = self._content(write, applied.obj)
        state.ledger.carry(write.child, content)
        state.ledger.succeed(
            write,
            plan_input.now,
            content if is_settled else "",
            rewritten=applied.rewritten,
            admitted=applied.admitted,
        )
        if applied.action == "created":
            if write.once:
                state.note_created_once(write.id, metadata(applied.obj).get("uid", ""))
                context.meter.created(applied.obj, context.planner.clock.now())
            else:
                state.ledger.note_created(str(write.ref))
        if not write.is_status:
            log.info("claimed" if write.claims else applied.action, child=str(write.ref))
        await context.publisher.publish_write(current, write)
        return is_settled and bool(content)

    def _content(self, write: Write, answer: Object) -> str:
        """Return the content version of an answer; empty if it is not cached in that version."""
        intake, ref = self._context.intake, write.ref
        if not intake.has_cached(ref, answer):
            return ""
        if write.is_status:
            return metadata(answer)["resourceVersion"]
        number = intake.store(ref).content_version(ref.key)
        return self._pass.observation.plan_input.content_of(number)

    async def _delete(self, deletion: Deletion) -> None:
        if deletion.replacement is not None:
            await self._context.applier.would_create(deletion.ref, deletion.replacement)
        await self._context.applier.delete(deletion)
        self._state.ledger.deleted(deletion, self._context.planner.clock.now())
        log.info("deleted", child=str(deletion.ref))
        await self._pass.reads.deleted(deletion.ref)

    async def _refused(self, step: Write | Deletion, error: KubeError) -> None:
        """React to a refusal as the table says. Raises the error if it ends the pass."""
        if isinstance(error, Invalid) and isinstance(step, Write):
            try:
                if await self._take_over(step, error):
                    return
            except KubeError as second:
                error = second
        rule, ledger = refusals.rule(error), self._state.ledger
        is_silent = isinstance(error, UNANSWERED) and rule.reaction is Reaction.PUT_OFF
        if is_silent and isinstance(step, Write) and step.create:
            ledger.unknown.add(step.id)
        if ledger.note_answer(step.id, is_silent=is_silent):
            rule = refusals.UNANSWERED_AGAIN
        if rule.reaction is Reaction.REREAD and self._pass.reads.may_read(step.id):
            try:
                if await self._reread(step):
                    return
            except (Forbidden, Undecodable) as unread:
                error, rule = unread, refusals.rule(unread)
        if rule.reaction in (Reaction.PUT_OFF, Reaction.END):
            raise error
        blocked = _blocked(step, error)
        message = f"{step.ref}{_stays(step)}: {error.message}{_unchanged(blocked)}"
        problem = Problem(rule.reason, message, stalled=rule.stalled, about=step.id)
        self._pass.failed.add(step.id)
        refusals.record(
            ledger,
            step,
            error,
            request=_request(step),
            clock=self._context.planner.clock,
            meter=self._context.meter,
            problem=problem,
            blocked=blocked,
        )

    async def _take_over(self, write: Write, refused: Invalid) -> bool:
        """Take over the fields without holder for which a write was refused, if there are any.

        We hold these fields then without declaring them, so the next plan removes them, be it in a
        pass after a crash. A pass takes over fields of a child only once.
        """
        current, context = self._pass, self._context
        plan_input = current.observation.plan_input
        live = plan_input.live.get(write.child)
        if live is None or write.create or write.once or write.foreign:
            return False
        if write.id in self._pass.taken_over:
            return False
        manager = context.applier.field_manager
        causes = [cause.field for cause in refused.causes]
        places = in_the_way(causes, write.body, live, manager)
        if not places or any(plan_input.field_policy.yielded(*write.child, at) for at in places):
            return False
        answer = await context.applier.take_over(write.ref, live, places)
        context.intake.absorb(write.ref, answer, live)
        current.reads.note(write.ref, answer)
        current.taken_over.add(write.id)
        paths = tuple(map(path_of, places))
        log.info("taken over", child=str(write.ref), fields=paths)
        await context.publisher.publish_taken_over(current, write, paths)
        return True

    async def _reread(self, step: Write | Deletion) -> bool:
        """Read a child, and return whether it differs from the one that was planned with."""
        child = ChildId(step.ref.api.kind, step.ref.name)
        before = self._pass.observation.plan_input.live.get(child)
        live = await self._pass.reads.child(step.ref)
        if live is None or before is None:
            return live is not before
        return version_of(live) != version_of(before)


def _stays(step: Write | Deletion) -> str:
    is_replaced = isinstance(step, Deletion) and step.replacement is not None
    return " cannot be replaced by what is declared, and stays as it is" if is_replaced else ""


def _blocked(step: Write | Deletion, error: KubeError) -> tuple[Place, ...]:
    """Return the fields for which a change was refused: the other fields do not wait for them."""
    if not isinstance(error, Invalid) or not isinstance(step, Write):
        return ()
    if step.create or step.once or step.foreign or step.target is not None:
        return ()
    return refused_places(step.body, (cause.field for cause in error.causes))


def _unchanged(blocked: Iterable[Place]) -> str:
    paths = ", ".join(f".{'.'.join(place)}" for place in blocked)
    return f"; {paths} stays as it is, what else is declared is applied" if paths else ""


def _request(step: Write | Deletion) -> RequestKind:
    if isinstance(step, Deletion):
        return RequestKind.DELETE
    return RequestKind.CREATE if step.create else RequestKind.APPLY
