"""Source warnings: the problems of children of a Namespace, and the source of each."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from hedgerow.contract import Copy, SourceNotice
from hedgerow.objects import ChildId
from hedgerow.plan.children import WAITING
from hedgerow.plan.conditions import IGNORED, REWRITTEN, by_admission
from hedgerow.plan.status import StatusReport, listed
from hedgerow.runtime.events import notices
from hedgerow_schemas.base import Status

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from hedgerow.plan.conditions import Problem
    from hedgerow.runtime.passes.observation import Observation
    from hedgerow_schemas.base import View


class SourceWarning(NamedTuple):
    """A problem of a child, or without one of the resource or a source.

    `source` is the object that gets the Event. Without one, only the log and a metric have it.
    """

    reason: str
    message: str
    child: ChildId | None = None
    source: View | None = None


def source_warnings(
    observation: Observation, problems: Iterable[Problem], program: str
) -> Iterator[SourceWarning]:
    """Yield the problems of a pass, at most one for each child and reason.

    A child that waits for its deletion is no problem.
    """
    sources = {
        ChildId(child.kind.api.kind, child.name): child.source
        for child in observation.desired.children
        if isinstance(child, Copy)
    }
    seen = set[tuple[ChildId, str]]()
    for warning in _all_warnings(observation, problems, program):
        child = warning.child
        if child is None:
            yield warning
        elif (child, warning.reason) not in seen:
            seen.add((child, warning.reason))
            yield warning._replace(source=sources.get(child))


def _all_warnings(
    observation: Observation, problems: Iterable[Problem], program: str
) -> Iterator[SourceWarning]:
    desired, plan = observation.desired, observation.plan
    for problem in problems:
        if problem.reason != WAITING:
            yield SourceWarning(problem.reason, problem.message, problem.about)
    yield from _contested(observation, program)
    yield from _rewritten(plan.rewritten)
    if plan.ignored:
        yield SourceWarning(IGNORED, "; ".join(plan.ignored))
    for condition in desired.status.conditions if desired.status else ():
        if condition.type == "Stalled":
            yield SourceWarning(condition.reason, condition.message)
    for notice in desired.events:
        if notice.type == "Warning":
            source = notice.source if isinstance(notice, SourceNotice) else None
            yield SourceWarning(notice.reason, notice.note, source=source)


def _contested(observation: Observation, program: str) -> Iterator[SourceWarning]:
    contested = observation.plan.contested
    events = notices.conflicts(
        observation.plan_input.resource,
        StatusReport(None, contested, listed(contested, ())),
        observation.live,
        Status(),
        lambda _: False,
        program=program,
    )
    for event in events:
        yield SourceWarning(event.notice.reason, event.notice.note, _child(event.object))


def _rewritten(lines: Iterable[str]) -> Iterator[SourceWarning]:
    by_child: defaultdict[ChildId, list[str]] = defaultdict(list)
    for line in lines:
        by_child[_child(line)].append(line)
    for child, changes in by_child.items():
        yield SourceWarning(REWRITTEN, by_admission(changes), child)


def _child(text: str) -> ChildId:
    """Return the child that a text such as `Secret/app: …` begins with."""
    kind, _, name = text.partition(":")[0].partition("/")
    return ChildId(kind, name)
