"""Publisher: sends the Events of a pass, about the resource and about the child concerned."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import structlog

from hedgerow.contract import Notice
from hedgerow.fields.managed import managers
from hedgerow.objects import ObjectRef, metadata
from hedgerow.plan.conditions import REWRITTEN
from hedgerow.plan.status import said
from hedgerow.runtime.events import mutations, notices
from hedgerow.runtime.events.recorder import event_name
from hedgerow.runtime.metrics import Meter, Meters
from hedgerow.runtime.refusals import EVENTS, Backoff, Request
from hedgerow.runtime.state import Unsent

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hedgerow.kube.client import Cluster
    from hedgerow.kube.errors import KubeError
    from hedgerow.plan.conditions import Problem
    from hedgerow.plan.status import Report
    from hedgerow.plan.writes import Write
    from hedgerow.runtime.events.recorder import Recorder
    from hedgerow.runtime.observation import Look, Observer
    from hedgerow.runtime.state import Memory
    from hedgerow_schemas.base import ContestedField, Object

LOGGED = ("", "log")
"""The key in memory for logged conflicts: the status may be refused for a long time."""
MOST_UNSENT = 32
"""The most Events of one resource that wait to be written."""
MOST_ATTEMPTS = 16
"""Attempts to write an Event, which take most of an hour; the server keeps Events for an hour."""

log = structlog.get_logger(__name__)


class Announcer:
    """Publishes the Events of one controller's passes, as long as anything may be written."""

    def __init__(
        self, cluster: Cluster, observer: Observer, recorder: Recorder, meter: Meter | None = None
    ) -> None:
        self._backoff = Backoff(observer.clock, meter or Meters().of(observer.controller.name))
        self._cluster = cluster
        self._observer = observer
        self._recorder = recorder

    def rewind(self) -> None:
        """Forget which Events were sent."""
        self._recorder.rewind()

    async def of_write(self, look: Look, write: Write, memory: Memory) -> None:
        """Send Events about the fields that a write restored, and those that it took by force.

        Each field and holder gets an Event at most once in ten minutes; more than ten fields share
        one Event.
        """
        now = look.scene.now
        at = now.isoformat()
        restored = [
            leaf for leaf in write.restores if memory.may_tell(write.id, leaf.path, "", now)
        ]
        for notice in notices.of_each(write.ref, restored, notices.restored, notices.many_restored):
            await self._publish(look, memory, notice, at)
        claimed = [
            leaf
            for leaf in write.claims
            if memory.may_tell(write.id, leaf.path, notices.holders(leaf), now)
        ]
        for notice in notices.of_each(write.ref, claimed, notices.claimed, notices.many_claimed):
            await self._publish(look, memory, notice, at)
            await self._publish(look, memory, notice, at, about=str(write.ref))

    async def of_children(self, look: Look, memory: Memory, created: Iterable[str]) -> None:
        """Send one Event about all children that a pass created."""
        children = ", ".join(created)
        if children:
            notice = Notice("Created", f"created {children}")
            await self._publish(look, memory, notice, look.scene.now.isoformat())

    async def of_pass(
        self,
        look: Look,
        memory: Memory,
        report: Report,
        problems: Iterable[Problem],
        rewritten: str,
    ) -> None:
        """Send warning Events about what the live status does not say yet, and log conflicts."""
        meta = metadata(look.live)
        generation = str(meta.get("generation", ""))
        custom = look.scene.is_custom
        told = notices.conflicts(
            look.scene.owner,
            report,
            look.live,
            partial(_is_dated, look),
            self._observer.installation.program,
            custom=custom,
        )
        for news in tuple(told):
            if not memory.may_tell(LOGGED, news.words, news.since, look.scene.now):
                continue
            log.warning("field contested", told=news.words)
            # After a crash the version is still the same, so the Event gets the same name again.
            since = news.since or meta["resourceVersion"]
            await self._publish(look, memory, news.notice, since)
            if news.object != str(look.scene.owner):
                await self._publish(look, memory, news.notice, since, about=news.object)
        for field in notices.settled(report.contested, look.live, custom=custom):
            told = f"{field.object}: {field.path}"
            if memory.may_tell(LOGGED, told, str(field.since), look.scene.now):
                log.info("field no longer contested", told=told)
        ignored = look.plan.ignored
        due = notices.due(look.desired, problems, look.live, rewritten, ignored, custom=custom)
        for notice, occurrence in due:
            if notice.type == "Warning":
                await self._publish(look, memory, notice, occurrence or generation)

    async def of_progress(self, look: Look, memory: Memory) -> None:
        """Send the Normal Events that compose returned.

        This comes after the status was written, so that the status does not wait for Events.
        """
        generation = str(metadata(look.live).get("generation", ""))
        for notice in look.desired.events:
            if notice.type == "Normal":
                await self._publish(look, memory, notice, generation)

    async def rewritten(self, look: Look) -> str:
        """Return what mutating admission changed, and who may have done it; empty for no change.

        The names are read only once: for the same fields, the live status's message is used again.
        """
        told = "; ".join(look.plan.rewritten)
        if not told:
            return ""
        conditions = said(look.live, custom=look.scene.is_custom).conditions
        before = next((c for c in conditions if c.type == REWRITTEN), None)
        if before and before.message.startswith(told):
            return before.message
        first = look.plan.rewritten[0].partition(":")[0]
        ref = self._child(look, first)
        suspects = await mutations.candidates(self._cluster, ref) if ref else ""
        return f"{told}, by mutating admission: {suspects}"

    async def _publish(
        self, look: Look, memory: Memory, notice: Notice, occurrence: str, about: str = ""
    ) -> None:
        owner = look.scene.owner
        regarding = self._child(look, about) if about else owner
        key = owner.namespace, owner.name
        if regarding is None or self._observer.writable(key, memory) is None:
            return
        event = Unsent(regarding, notice, occurrence)
        if memory.refusals.waiting(EVENTS, "", self._backoff.now()):
            # It would be refused too, and each attempt may take many seconds.
            if not self._recorder.is_told(event_name(*event)):
                _keep(memory, event)
            return
        error = await self._recorder.publish(*event)
        if error is not None:
            self._put_aside(memory, event, error)

    def _put_aside(self, memory: Memory, event: Unsent, error: KubeError) -> None:
        """Keep an Event that could not be written for a later attempt."""
        _keep(memory, event)
        refusal = self._backoff.wait(
            memory.refusals,
            EVENTS,
            "",
            request=Request.EVENT,
            ref=event.regarding,
            error=error,
        )
        if refusal.attempts > MOST_ATTEMPTS:
            log.warning("events given up", object=str(event.regarding), number=len(memory.unsent))
            memory.unsent.clear()
            memory.refusals.drop(EVENTS)

    async def resend(self, look: Look, memory: Memory) -> None:
        """Write the Events that could not be written before, once their backoff is over."""
        now = self._backoff.now()
        if not memory.unsent or memory.refusals.waiting(EVENTS, "", now):
            return
        key = look.scene.owner.namespace, look.scene.owner.name
        for name, event in tuple(memory.unsent.items()):
            if self._observer.writable(key, memory) is None:
                return
            error = await self._recorder.publish(*event)
            if error is not None:
                self._put_aside(memory, event, error)
                return
            del memory.unsent[name]
        memory.refusals.drop(EVENTS)

    def _child(self, look: Look, about: str) -> ObjectRef | None:
        """Return the live child that a text such as `Deployment/demo` names, or None."""
        kind, _, name = about.partition("/")
        live: Object | None = look.scene.live.get((kind, name))
        apis = {owned.api.kind: owned.api for owned in self._observer.controller.written}
        if live is None or kind not in apis:
            return None
        return ObjectRef(apis[kind], look.scene.owner.namespace, name, metadata(live)["uid"])


def _is_dated(look: Look, field: ContestedField) -> bool:
    """Return whether the holder of a field has a time; the API server records none for a scale."""
    kind, _, name = field.object.partition("/")
    live = look.live if field.object == str(look.scene.owner) else look.scene.live.get((kind, name))
    who = (field.manager, field.operation, field.subresource or "")
    return any(
        holder.time and (holder.manager, holder.operation, holder.subresource) == who
        for holder in managers(live or {})
    )


def _keep(memory: Memory, event: Unsent) -> None:
    """Keep an Event for later; if there are too many, drop the oldest."""
    memory.unsent[event_name(*event)] = event
    while len(memory.unsent) > MOST_UNSENT:
        del memory.unsent[next(iter(memory.unsent))]
