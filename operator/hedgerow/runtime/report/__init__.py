"""Report: how a resource says what a pass found: in its status, or in an annotation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hedgerow.runtime.report.annotation import AnnotationReporter, SilentReporter
from hedgerow.runtime.report.status import StatusReporter

if TYPE_CHECKING:
    from hedgerow.contract import Controller
    from hedgerow.runtime.report.reporter import Reporter
    from hedgerow_schemas.base import Resource

IN_STATUS: Final = StatusReporter()
IN_ANNOTATION: Final = AnnotationReporter()
BY_SOURCES: Final = SilentReporter()


def reporter_of(controller: Controller[Resource]) -> Reporter:
    """Return the reporter of a controller: custom resources have a status of ours, others not."""
    if controller.is_custom:
        return IN_STATUS
    return IN_ANNOTATION if controller.copies is None else BY_SOURCES
