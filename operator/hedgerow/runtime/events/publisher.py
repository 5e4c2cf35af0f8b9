"""Publisher: sends the Events of a pass, about its resource."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import structlog

from hedgerow.contract import Notice, SourceNotice
from hedgerow.fields.managed_fields import all_holders
from hedgerow.objects import ChildId, ObjectRef, metadata
from hedgerow.plan.writes import STATUS
from hedgerow.runtime.events import notices
from hedgerow.runtime.events.recorder import event_name
from hedgerow.runtime.passes.refusals import kind_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hedgerow.kube.errors import KubeError
    from hedgerow.plan.conditions import Problem
    from hedgerow.plan.status import StatusReport
    from hedgerow.plan.writes import Write
    from hedgerow.runtime.events.recorder import Recorder
    from hedgerow.runtime.events.source_warnings import SourceWarning
    from hedgerow.runtime.meters import Meter
    from hedgerow.runtime.passes.observation import Observation, ResourcePlanner
    from hedgerow.runtime.passes.resource_pass import Pass
    from hedgerow_schemas.base import ContestedField, View

LOGGED = ChildId("", "log")
"""The key in memory for logged conflicts: the status may be refused for a long time."""

log = structlog.get_logger(__name__)


class EventPublisher:
    """Publishes the Events of one controller's passes, as long as anything may be written."""

    def __init__(self, planner: ResourcePlanner, recorder: Recorder, meter: Meter) -> None:
        self._meter = meter
        self._planner = planner
        self._recorder = recorder

    def begin_anew(self) -> None:
        """Forget which Events were sent."""
        self._recorder.begin_anew()

    async def publish_write(self, current: Pass, write: Write) -> None:
        """Send an Event about the fields that a write restored, and one about those that it took.

        Each field and holder is told at most once in ten minutes.
        """
        ledger, now = current.state.ledger, current.now
        at = now.isoformat()
        restored = [
            leaf for leaf in write.restores if ledger.may_tell((write.id, leaf.path, ""), now)
        ]
        if restored:
            await self._publish(current, notices.restored(write.ref, restored), at)
        claimed = [
            leaf
            for leaf in write.claims
            if ledger.may_tell((write.id, leaf.path, notices.holders(leaf)), now)
        ]
        if claimed:
            await self._publish(current, notices.claimed(write.ref, claimed), at)

    async def publish_taken_over(self, current: Pass, write: Write, paths: Sequence[str]) -> None:
        """Send an Event about fields without holder that were taken over, to be removed.

        It is sent at most once in ten minutes.
        """
        now = current.now
        if current.state.ledger.may_tell((write.id, paths[0], notices.TAKEN_OVER), now):
            await self._publish(current, notices.taken_over(write.ref, paths), now.isoformat())

    async def publish_created(self, current: Pass) -> None:
        """Send one Event about all children that were created since the last one."""
        ledger = current.state.ledger
        created, ledger.untold = ledger.untold, {}
        if created:
            children = ", ".join(sorted(created))
            notice = Notice("Created", f"created {children}")
            await self._publish(current, notice, current.now.isoformat())

    async def publish_warnings(
        self, current: Pass, report: StatusReport, problems: Iterable[Problem], rewritten: str
    ) -> None:
        """Send the warning Events that the live status does not contain yet, and log conflicts.

        The status contains all of them afterwards, so each is tried now, also after a refused one.
        A refused one is due again as long as the status does not contain it.
        """
        observation, before = current.observation, current.observation.plan_input.before
        for field in notices.settled(report.contested, before):
            text = f"{field.object}: {field.path}"
            if current.state.ledger.may_tell((LOGGED, text, field.since), current.now):
                log.info("field no longer contested", told=text)
        await self._publish_conflicts(current, report)
        due = notices.due(
            observation.desired, tuple(problems), before, rewritten, observation.plan.ignored
        )
        for notice, occurrence in due:
            if notice.type == "Warning":
                await self._publish(current, notice, occurrence or _generation(observation))

    async def _publish_conflicts(self, current: Pass, report: StatusReport) -> None:
        """Log and send an Event about each child with newly contested fields."""
        observation, ledger = current.observation, current.state.ledger
        resource = observation.plan_input.resource
        events = notices.conflicts(
            resource,
            report,
            observation.live,
            observation.plan_input.before,
            partial(_is_dated, observation),
            program=self._planner.installation.program,
        )
        for event in tuple(events):
            if not ledger.may_tell((LOGGED, event.words, event.since), current.now):
                continue
            log.warning("field contested", told=event.words)
            # After a crash the version is still the same, so the Event gets the same name again.
            since = event.since or metadata(observation.live)["resourceVersion"]
            if not await self._publish(current, event.notice, since):
                ledger.untell((LOGGED, event.words, event.since))

    async def publish_source_warnings(
        self, current: Pass, warnings: Iterable[SourceWarning]
    ) -> None:
        """Log and count the problems of children of a Namespace, and send Events to their sources.

        A problem is sent again once the source has changed; otherwise each child and reason at most
        once in ten minutes.
        """
        namespace = current.controller.home(current.key)
        for warning in warnings:
            source, version = warning.source, ""
            note = f"in {namespace}: {warning.message}" if warning.child else warning.message
            notice = Notice(warning.reason, note, "Warning")
            if source is not None:
                notice = SourceNotice(warning.reason, note, "Warning", source=source)
                version = source.text("metadata", "resourceVersion")
                if self._recorder.is_published(event_name(_ref(source), notice, version)):
                    continue
            about = warning.child or ChildId("", warning.message)
            event = about, warning.reason, version
            if not current.state.ledger.may_tell(event, current.now):
                continue
            log.warning("problem", reason=warning.reason, told=note)
            self._meter.logged()
            if source is not None and not await self._publish(current, notice, version):
                current.state.ledger.untell(event)

    async def publish_status_refused(self, current: Pass, error: KubeError) -> None:
        """Send a warning Event about a status that the API server refused: nothing else shows it.

        It is sent at most once in ten minutes.
        """
        if current.state.ledger.may_tell((STATUS, "refused"), current.now):
            notice = Notice("StatusRefused", f"the status was refused: {error.message}", "Warning")
            await self._publish(current, notice, _generation(current.observation))

    async def publish_normal(self, current: Pass) -> None:
        """Send the Normal Events that compose returned.

        This comes after the status was written, so that the status does not wait for Events.
        """
        for notice in current.observation.desired.events:
            if notice.type == "Normal":
                await self._publish(current, notice, _generation(current.observation))

    async def _publish(self, current: Pass, notice: Notice, occurrence: str) -> bool:
        """Send an Event about the resource or another object, as long as anything may be written.

        There are none about a Namespace. Return whether it was not refused.
        """
        resource = current.observation.plan_input.resource
        if self._planner.writable(resource.key, current.state) is None:
            return True
        if isinstance(notice, SourceNotice):
            regarding = _ref(notice.source)
        elif current.controller.is_for_namespaces:
            return True
        else:
            regarding = resource
        error = await self._recorder.publish(regarding, notice, occurrence)
        if error is not None:
            self._meter.refused("event", kind_of(error).value)
            log.warning(
                "event not written", object=str(resource), reason=notice.reason, error=str(error)
            )
        return error is None


def _ref(obj: View) -> ObjectRef:
    return ObjectRef(obj.api, obj.namespace, obj.name, obj.uid)


def _generation(observation: Observation) -> str:
    return str(metadata(observation.live).get("generation", ""))


def _is_dated(observation: Observation, field: ContestedField) -> bool:
    """Return whether the holder of a field has a time; the API server records none for a scale."""
    kind, _, name = field.object.partition("/")
    live = (
        observation.live
        if field.object == str(observation.plan_input.resource)
        else observation.plan_input.live.get(ChildId(kind, name))
    )
    who = (field.manager, field.operation, field.subresource or "")
    return any(
        holder.time and (holder.manager, holder.operation, holder.subresource) == who
        for holder in all_holders(live or {})
    )
