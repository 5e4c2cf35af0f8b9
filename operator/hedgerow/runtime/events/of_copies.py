"""Events of copies: where children are copies, their sources say what is wrong, not the resource.

So the resource gets no Events. What no source says is logged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog
from msgspec.structs import replace

from hedgerow.objects import ChildId, metadata
from hedgerow.runtime.events.publisher import LOGGED, EventPublisher
from hedgerow.runtime.events.recorder import event_name
from hedgerow.runtime.source_reports import reported_elsewhere

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hedgerow.contract import Copies, Notice
    from hedgerow.objects import ObjectRef
    from hedgerow.plan.conditions import Problem
    from hedgerow.plan.status import StatusReport
    from hedgerow.runtime.events.notices import ConflictEvent
    from hedgerow.runtime.events.recorder import Recorder
    from hedgerow.runtime.metrics import Meter
    from hedgerow.runtime.observation import Observation, ResourcePlanner
    from hedgerow.runtime.resource_pass import Pass

log = structlog.get_logger(__name__)


class CopiesPublisher(EventPublisher):
    """Publishes the Events about children that are copies, and none about their resource."""

    def __init__(
        self,
        planner: ResourcePlanner,
        recorder: Recorder,
        copies: Copies,
        meter: Meter | None = None,
    ) -> None:
        super().__init__(planner, recorder, meter)
        self._copies = copies

    async def publish_warnings(
        self, this: Pass, report: StatusReport, problems: Iterable[Problem], rewritten: str
    ) -> None:
        """Log what no source says, and send Events about contested children."""
        elsewhere = reported_elsewhere(this.controller, self._copies, this.observation)
        left = [problem for problem in problems if problem.about not in elsewhere]
        await super().publish_warnings(this, report, left, rewritten)

    async def _publish_conflict(self, this: Pass, event: ConflictEvent, since: str) -> bool:
        """Send an Event about a contested child, unless an earlier process may have sent it.

        What says that a child is contested is a source. After a start it says what is new itself.
        """
        child = self._child(this.observation, event.object)
        if child is None:
            return True
        if self._planner.may_lack_reports:
            self._recorder.remember(event_name(child, event.notice, since))
        return await super()._publish(this, event.notice, since, child)

    def _child(self, observation: Observation, about: str) -> ObjectRef | None:
        """Return the live child that a text such as `Secret/demo` names, or None."""
        kind, _, name = about.partition("/")
        live = observation.plan_input.live.get(ChildId(kind, name))
        apis = {owned.api.kind: owned.api for owned in self._planner.controller.written}
        if live is None or kind not in apis:
            return None
        return replace(observation.plan_input.ref(apis[kind], name), uid=metadata(live)["uid"])

    async def _publish(
        self,
        this: Pass,
        notice: Notice,
        occurrence: str,  # noqa: ARG002 - as the method that it replaces
        regarding: ObjectRef | None = None,  # noqa: ARG002
    ) -> bool:
        """Log what is wrong with a resource that gets neither a status nor Events."""
        told = f"{notice.reason}: {notice.note}"
        is_warning = notice.type == "Warning"
        if is_warning and this.state.may_send_event(LOGGED, told, "", this.now):
            log.warning("problem", reason=notice.reason, told=notice.note)
            self._meter.logged()
        return True
