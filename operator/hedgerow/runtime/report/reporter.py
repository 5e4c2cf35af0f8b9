"""Reporter: what a pass needs of the way in which a resource says what was found."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from msgspec.structs import replace

from hedgerow.plan.input import has_no_holder
from hedgerow.runtime import refusals
from hedgerow.runtime.refusals import STATUS, Reaction, Refusal, RequestKind

if TYPE_CHECKING:
    from hedgerow.kube.errors import KubeError
    from hedgerow.objects import ObjectRef
    from hedgerow.plan.input import PlanInput
    from hedgerow.runtime.resource_pass import Outcome, Pass
    from hedgerow_schemas.base import Object, Status


class Reporter(ABC):
    """Writes what a resource says; `plan.status.reader_of` reads it."""

    writes_resource: bool
    """Whether what it says is written to the resource as to a child: by a plan, with claims."""

    @abstractmethod
    def generation(self, live: Object) -> int | None:
        """Return the generation that only users change; None if others change it too."""

    def with_status(self, plan_input: PlanInput, live: Object, before: Status) -> PlanInput:
        """Return the input of a plan with what the resource says of itself so far."""
        # After a spec change, fields that were given up before are tried again. The spec of a
        # built-in resource is nobody's answer to what we report.
        generation = self.generation(live)
        spec_changed = generation is not None and (before.observed_generation or 0) != generation
        reported = tuple(c for c in before.contested if not (spec_changed and has_no_holder(c)))
        return replace(plan_input, before=before, spec_changed=spec_changed, reported=reported)

    @abstractmethod
    async def report(self, this: Pass) -> Outcome | None:
        """Write Events and what the resource has to say; return the outcome of the pass.

        Return None after a write, or if what it wrote is to be made shorter: the pass looks again.
        Raises KubeError.
        """

    @staticmethod
    def refused(
        this: Pass, error: KubeError, request: RequestKind, ref: ObjectRef, fingerprint: str
    ) -> Refusal:
        """Delay what was refused, and return that. Raises the error if it ends the pass."""
        if refusals.rule(request, error).reaction in (Reaction.PUT_OFF, Reaction.END):
            raise error
        return this.context.refusal_log.record(
            this.state.refusals, STATUS, fingerprint, request=request, ref=ref, error=error
        )
