"""Report: how a resource says what a pass found: in its status, or in an annotation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hedgerow.runtime.report.annotation import AnnotationReporter
from hedgerow.runtime.report.status import StatusReporter

if TYPE_CHECKING:
    from hedgerow.contract import Controller
    from hedgerow.runtime.report.reporter import Reporter
    from hedgerow_schemas.base import Resource

IN_STATUS: Final = StatusReporter()
IN_ANNOTATION: Final = AnnotationReporter()


def reporter_of(controller: Controller[Resource]) -> Reporter:
    """Return the reporter of a controller: custom resources have a status of ours, others not."""
    return IN_STATUS if controller.is_custom else IN_ANNOTATION
