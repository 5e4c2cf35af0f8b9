"""Events of copies: where children are copies, their sources say what is wrong, not the resource.

So the resource gets no Events. What no source says is logged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from hedgerow.runtime.events.publisher import LOGGED, EventPublisher
from hedgerow.runtime.events.recorder import event_name
from hedgerow.runtime.source_reports import reported_elsewhere

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hedgerow.contract import Copies, Notice
    from hedgerow.kube.cluster import Cluster
    from hedgerow.plan.conditions import Problem
    from hedgerow.plan.status import StatusReport
    from hedgerow.runtime.events.recorder import Recorder
    from hedgerow.runtime.metrics import Meter
    from hedgerow.runtime.observation import ResourcePlanner
    from hedgerow.runtime.resource_pass import Pass

log = structlog.get_logger(__name__)


class CopiesPublisher(EventPublisher):
    """Publishes the Events about children that are copies, and none about their resource."""

    def __init__(
        self,
        cluster: Cluster,
        planner: ResourcePlanner,
        recorder: Recorder,
        copies: Copies,
        meter: Meter | None = None,
    ) -> None:
        super().__init__(cluster, planner, recorder, meter)
        self._copies = copies

    async def publish_warnings(
        self, this: Pass, report: StatusReport, problems: Iterable[Problem], rewritten: str
    ) -> None:
        """Log what no source says, and send Events about contested children."""
        elsewhere = reported_elsewhere(this.controller, self._copies, this.observation)
        left = [problem for problem in problems if problem.about not in elsewhere]
        await super().publish_warnings(this, report, left, rewritten)

    async def _publish(self, this: Pass, notice: Notice, occurrence: str, about: str = "") -> None:
        if about:
            await super()._publish(this, notice, occurrence, about)

    async def _publish_about(self, this: Pass, notice: Notice, occurrence: str, about: str) -> None:
        """Send an Event about a contested child, unless an earlier process may have sent it.

        What says that a child is contested is a source. After a start it says what is new itself.
        """
        child = self._child(this.observation, about)
        if child is not None and self._planner.may_lack_reports:
            self._recorder.remember(event_name(child, notice, occurrence))
        await super()._publish_about(this, notice, occurrence, about)

    async def _warn(self, this: Pass, notice: Notice, occurrence: str) -> None:  # noqa: ARG002 - as the method that it replaces
        """Log what is wrong with a resource that gets neither a status nor Events."""
        if this.state.may_send_event(LOGGED, f"{notice.reason}: {notice.note}", "", this.now):
            log.warning("problem", reason=notice.reason, told=notice.note)
            self._meter.logged()
