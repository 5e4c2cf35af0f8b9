"""Report: how it is said what a pass found: in a status, in an annotation, or on sources."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hedgerow.runtime.report.annotation import AnnotationReporter
from hedgerow.runtime.report.sources import SourceReporter
from hedgerow.runtime.report.status import StatusReporter

if TYPE_CHECKING:
    from hedgerow.contract import Controller
    from hedgerow.runtime.report.reporter import Reporter
    from hedgerow_schemas.base import Resource

IN_STATUS: Final = StatusReporter()
IN_ANNOTATION: Final = AnnotationReporter()
ON_SOURCES: Final = SourceReporter()


def reporter_of(controller: Controller[Resource]) -> Reporter:
    """Return the reporter of a controller.

    Custom resources have a status of ours, others an annotation. A Namespace has nothing.
    """
    if controller.is_custom:
        return IN_STATUS
    return IN_ANNOTATION if controller.writes_resource else ON_SOURCES
