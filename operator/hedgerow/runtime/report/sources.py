"""Sources: where nothing is written to the resource, Events on sources say what a pass found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.runtime.events.source_warnings import source_warnings
from hedgerow.runtime.report.reporter import Reporter

if TYPE_CHECKING:
    from hedgerow.runtime.resource_pass import Outcome, Pass
    from hedgerow_schemas.base import Object


class SourceReporter(Reporter):
    """Writes nothing to a Namespace: what its children are made from says what is wrong."""

    writes_resource = False

    def generation(self, live: Object) -> int | None:  # noqa: ARG002 - as the interface has it
        """Return None: no status says for which generation it is."""
        return None

    async def report(self, this: Pass) -> Outcome | None:
        """Log, count and publish what the pass found."""
        observation, publisher = this.observation, this.context.publisher
        contested = observation.plan.contested
        this.context.meter.contest(this.key, (field.manager or "" for field in contested))
        program = this.context.planner.installation.program
        found = source_warnings(observation, this.all_problems(), program)
        await publisher.publish_source_warnings(this, found)
        await publisher.publish_created(this)
        await publisher.publish_normal(this)
        return this.outcome()
