"""Publisher: sends the Events of a pass, about the resource and about the child concerned."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import structlog
from msgspec.structs import replace

from hedgerow.contract import Notice
from hedgerow.fields.managed_fields import managers
from hedgerow.objects import ChildId, ObjectRef, metadata
from hedgerow.plan.conditions import REWRITTEN
from hedgerow.runtime.events import mutations, notices
from hedgerow.runtime.events.recorder import PutOff, event_name
from hedgerow.runtime.metrics import Meter, Meters
from hedgerow.runtime.refusals import EVENTS, RefusalLog, RequestKind
from hedgerow.runtime.state import Unsent

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hedgerow.kube.cluster import Cluster
    from hedgerow.kube.errors import KubeError
    from hedgerow.plan.conditions import Problem
    from hedgerow.plan.status import StatusReport
    from hedgerow.plan.writes import Write
    from hedgerow.runtime.events.recorder import Recorder
    from hedgerow.runtime.observation import Observation, ResourcePlanner
    from hedgerow.runtime.resource_pass import Pass
    from hedgerow.runtime.state import ResourceState
    from hedgerow_schemas.base import ContestedField, Object

LOGGED = ChildId("", "log")
"""The key in memory for logged conflicts: the status may be refused for a long time."""
MOST_UNSENT = 32
"""The most Events of one resource that wait to be written."""
MOST_ATTEMPTS = 16
"""Attempts to write an Event, which take most of an hour; the server keeps Events for an hour."""

log = structlog.get_logger(__name__)


class EventPublisher:
    """Publishes the Events of one controller's passes, as long as anything may be written."""

    def __init__(
        self,
        cluster: Cluster,
        planner: ResourcePlanner,
        recorder: Recorder,
        meter: Meter | None = None,
    ) -> None:
        self._meter = meter or Meters().of(planner.controller.name)
        self._refusal_log = RefusalLog(planner.clock, self._meter)
        self._cluster = cluster
        self._planner = planner
        self._recorder = recorder

    def rewind(self) -> None:
        """Forget which Events were sent."""
        self._recorder.rewind()

    async def publish_write(self, this: Pass, write: Write) -> None:
        """Send Events about the fields that a write restored, and those that it took by force.

        Each field and holder gets an Event at most once in ten minutes; more than ten fields share
        one Event.
        """
        state, now = this.state, this.now
        at = now.isoformat()
        restored = [
            leaf for leaf in write.restores if state.may_send_event(write.id, leaf.path, "", now)
        ]
        for notice in notices.of_each(write.ref, restored, notices.restored, notices.many_restored):
            await self._publish(this, notice, at)
        claimed = [
            leaf
            for leaf in write.claims
            if state.may_send_event(write.id, leaf.path, notices.holders(leaf), now)
        ]
        for notice in notices.of_each(write.ref, claimed, notices.claimed, notices.many_claimed):
            await self._publish(this, notice, at)
            await self._publish(this, notice, at, about=str(write.ref))

    async def publish_taken_over(self, this: Pass, write: Write, paths: Sequence[str]) -> None:
        """Send an Event about fields without holder that were taken over, to be removed.

        It is sent at most once in ten minutes.
        """
        now = this.now
        if this.state.may_send_event(write.id, paths[0], notices.TAKEN_OVER, now):
            await self._publish(this, notices.taken_over(write.ref, paths), now.isoformat())

    async def publish_created(self, this: Pass) -> None:
        """Send one Event about all children that were created since the last one."""
        created, this.state.created = this.state.created, {}
        if created:
            children = ", ".join(sorted(created))
            notice = Notice("Created", f"created {children}")
            await self._publish(this, notice, this.now.isoformat())

    async def publish_warnings(
        self, this: Pass, report: StatusReport, problems: Iterable[Problem], rewritten: str
    ) -> None:
        """Send warning Events about what the live status does not say yet, and log conflicts."""
        observation, before = this.observation, this.observation.plan_input.before
        await self._publish_conflicts(this, report)
        for field in notices.settled(report.contested, before):
            told = f"{field.object}: {field.path}"
            if this.state.may_send_event(LOGGED, told, str(field.since), this.now):
                log.info("field no longer contested", told=told)
        due = notices.due(
            observation.desired, tuple(problems), before, rewritten, observation.plan.ignored
        )
        for notice, occurrence in due:
            if notice.type == "Warning":
                await self._warn(this, notice, occurrence or _generation(observation))

    async def _publish_conflicts(self, this: Pass, report: StatusReport) -> None:
        """Send an Event about each field that is contested since the last report, and log it."""
        observation, state = this.observation, this.state
        owner = observation.plan_input.owner
        told = notices.conflicts(
            owner,
            report,
            observation.live,
            observation.plan_input.before,
            partial(_is_dated, observation),
            program=self._planner.installation.program,
        )
        for event in tuple(told):
            if not state.may_send_event(LOGGED, event.words, event.since, this.now):
                continue
            log.warning("field contested", told=event.words)
            # After a crash the version is still the same, so the Event gets the same name again.
            since = event.since or metadata(observation.live)["resourceVersion"]
            await self._publish(this, event.notice, since)
            if event.object != str(owner):
                await self._publish_about(this, event.notice, since, event.object)

    async def _publish_about(self, this: Pass, notice: Notice, occurrence: str, about: str) -> None:
        """Send an Event about a contested child."""
        await self._publish(this, notice, occurrence, about=about)

    async def _warn(self, this: Pass, notice: Notice, occurrence: str) -> None:
        """Send a warning Event about the resource."""
        await self._publish(this, notice, occurrence)

    async def publish_status_refused(self, this: Pass, error: KubeError) -> None:
        """Send a warning Event about a status that the API server refused: nothing else shows it.

        It is sent at most once in ten minutes.
        """
        owner = this.observation.plan_input.owner
        if this.state.may_send_event(ChildId(owner.api.kind, owner.name), "status", "", this.now):
            notice = Notice("StatusRefused", f"the status was refused: {error.message}", "Warning")
            await self._publish(this, notice, _generation(this.observation))

    async def publish_normal(self, this: Pass) -> None:
        """Send the Normal Events that compose returned.

        This comes after the status was written, so that the status does not wait for Events.
        """
        for notice in this.observation.desired.events:
            if notice.type == "Normal":
                await self._publish(this, notice, _generation(this.observation))

    async def rewritten(self, observation: Observation) -> str:
        """Return what mutating admission changed, and who may have done it; empty for no change.

        The names are read only once: for the same fields, the live status's message is used again.
        """
        told = "; ".join(observation.plan.rewritten)
        if not told:
            return ""
        conditions = observation.plan_input.before.conditions
        before = next((c for c in conditions if c.type == REWRITTEN), None)
        if before and before.message.startswith(told):
            return before.message
        first = observation.plan.rewritten[0].partition(":")[0]
        ref = self._child(observation, first)
        suspects = await mutations.candidates(self._cluster, ref) if ref else ""
        if not suspects:
            return (
                f"{told}, by the API server, which fills in defaults: declare the value it stores"
            )
        return f"{told}, by mutating admission: {suspects}"

    async def _publish(self, this: Pass, notice: Notice, occurrence: str, about: str = "") -> None:
        """Send an Event, or keep it for later; without `about`, it regards the resource."""
        observation, state = this.observation, this.state
        owner = observation.plan_input.owner
        regarding = self._child(observation, about) if about else owner
        if regarding is None or self._planner.writable(owner.key, state) is None:
            return
        event = Unsent(regarding, notice, occurrence)
        if state.refusals.waiting(EVENTS, "", self._refusal_log.now()):
            # It would be refused too, and each attempt may take many seconds.
            if not self._recorder.is_published(event_name(*event)):
                self._keep(state, event)
            return
        error = await self._recorder.publish(*event)
        if error is not None:
            self._put_aside(state, event, error)

    def _put_aside(self, state: ResourceState, event: Unsent, error: KubeError) -> None:
        """Keep an Event that was not written for a later attempt."""
        self._keep(state, event)
        if isinstance(error, PutOff):
            self._meter.held_back["put_off"].inc()
            draw, now = self._planner.clock.jitter(), self._refusal_log.now()
            refusal = state.refusals.record(EVENTS, "", None, now, draw=draw, after=error.after)
        else:
            refusal = self._refusal_log.record(
                state.refusals,
                EVENTS,
                "",
                request=RequestKind.EVENT,
                ref=event.regarding,
                error=error,
            )
        if refusal.attempts > MOST_ATTEMPTS:
            log.warning("events given up", object=str(event.regarding), number=len(state.unsent))
            self._meter.held_back["left_out"].inc(len(state.unsent))
            state.unsent.clear()
            state.refusals.clear(EVENTS)

    def _keep(self, state: ResourceState, event: Unsent) -> None:
        """Keep an Event for later; if there are too many, leave the oldest out."""
        state.unsent[event_name(*event)] = event
        while len(state.unsent) > MOST_UNSENT:
            del state.unsent[next(iter(state.unsent))]
            self._meter.held_back["left_out"].inc()

    async def resend(self, this: Pass) -> None:
        """Write the Events that could not be written before, once their backoff is over."""
        state, now = this.state, self._refusal_log.now()
        if not state.unsent or state.refusals.waiting(EVENTS, "", now):
            return
        for name, event in tuple(state.unsent.items()):
            if self._planner.writable(this.key, state) is None:
                return
            error = await self._recorder.publish(*event)
            if error is not None:
                self._put_aside(state, event, error)
                return
            state.unsent.pop(name, None)
        state.refusals.clear(EVENTS)

    def _child(self, observation: Observation, about: str) -> ObjectRef | None:
        """Return the live child that a text such as `Deployment/demo` names, or None."""
        kind, _, name = about.partition("/")
        live: Object | None = observation.plan_input.live.get(ChildId(kind, name))
        apis = {owned.api.kind: owned.api for owned in self._planner.controller.written}
        if live is None or kind not in apis:
            return None
        return replace(observation.plan_input.ref(apis[kind], name), uid=metadata(live)["uid"])


def _generation(observation: Observation) -> str:
    return str(metadata(observation.live).get("generation", ""))


def _is_dated(observation: Observation, field: ContestedField) -> bool:
    """Return whether the holder of a field has a time; the API server records none for a scale."""
    kind, _, name = field.object.partition("/")
    live = (
        observation.live
        if field.object == str(observation.plan_input.owner)
        else observation.plan_input.live.get(ChildId(kind, name))
    )
    who = (field.manager, field.operation, field.subresource or "")
    return any(
        holder.time and (holder.manager, holder.operation, holder.subresource) == who
        for holder in managers(live or {})
    )
