"""Reports: what passes found about children, for the resources that these are made from.

A controller with `Copies` tells the sources, at the beginning and the end of each pass, from which
resources its resource has children, and what is wrong with them. It is kept in memory alone: after
a start it is complete once every resource has had a pass, and nothing is said or unsaid before.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from hedgerow.contract import Apply, Controller, Copies, Create, Key, Report
from hedgerow.fields.applyconfiguration import extract
from hedgerow.objects import ChildId, is_terminating
from hedgerow.plan.conflict_messages import holder
from hedgerow.runtime.context import Extension

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from hedgerow.plan.conditions import Problem
    from hedgerow.runtime.observation import Observation, ResourcePlanner
    from hedgerow.runtime.resource_pass import Pass
    from hedgerow_schemas.base import Resource, View

PassReports = tuple[Report, ...]


class _Awaited:
    """The resources of which something is awaited since the start."""

    def __init__(self) -> None:
        self.left: set[Key] | None = None
        """The keys that are left; None while it is not known which resources there are."""
        self._early: set[Key] = set()

    @property
    def is_over(self) -> bool:
        """Whether nothing is awaited any more."""
        return self.left is not None and not self.left

    def note(self, key: Key, expected: Callable[[], Iterable[Key] | None]) -> bool:
        """Note that one of them has come; return whether it was the last."""
        if self.is_over:
            return False
        if self.left is None:
            keys = expected()
            if keys is None:
                self._early.add(key)
                return False
            self.left = set(keys) - self._early
            self._early.clear()
        self.left.discard(key)
        return not self.left


class _Received:
    """What one controller is told by the resources with copies of its own."""

    def __init__(self) -> None:
        self.found: dict[Key, dict[Key, PassReports]] = {}
        """The reports to each resource, by the resource whose pass it was; empty ones as well."""
        self.by: dict[Key, frozenset[Key]] = {}
        """The resources that were told something in the last pass of each other resource."""
        self.news: Callable[[Key], object] = _ignore
        self.expected: Callable[[], Iterable[Key] | None] = _unknown
        self.reports = _Awaited()
        """The resources of which it is not known yet from what they have children."""
        self.passes = _Awaited()
        """The resources of which no pass has ended yet."""


def _ignore(_key: Key) -> None:
    """Do nothing."""


def _unknown() -> None:
    """Return that it is unknown which resources there are."""


class Reports:
    """The reports to all controllers that are informed."""

    def __init__(self) -> None:
        self._received: defaultdict[str, _Received] = defaultdict(_Received)

    def on_news(self, controller: str, news: Callable[[Key], object]) -> None:
        """Call `news` with each resource of a controller whose reports have changed."""
        self._received[controller].news = news

    def expect(self, controller: str, expected: Callable[[], Iterable[Key] | None]) -> None:
        """Take the reports as complete once there is one by each of these keys.

        `expected` is called until it does not return None, which means that they are not known yet.
        A resource that is made later is not waited for: it has no children from before the start.
        """
        self._received[controller].expected = expected

    def replace(self, controller: str, by: Key, found: Mapping[Key, PassReports]) -> None:
        """Replace all that one resource's passes have reported to resources of a controller."""
        received = self._received[controller]
        before = received.by.pop(by, frozenset())
        if found:
            received.by[by] = frozenset(found)
        for key in before | found.keys():
            reports = received.found.setdefault(key, {})
            was = reports.pop(by, None)
            if key in found:
                reports[by] = found[key]
            if not reports:
                del received.found[key]
            if (was or ()) != found.get(key, ()) or not reports:
                received.news(key)
        if received.reports.note(by, received.expected):
            received.news(ALL)

    def ended(self, controller: str, by: Key) -> None:
        """Note that a pass of a resource has ended: what it found has been reported."""
        received = self._received[controller]
        if received.passes.note(by, received.expected):
            received.news(ALL)

    def forget(self, controller: str, by: Key) -> None:
        """Drop what a resource reported: it is gone, or nothing is written for it any more."""
        self.replace(controller, by, {})

    def of(self, controller: str, key: Key) -> PassReports:
        """Return the reports to a resource, ordered by the resources whose passes they are of."""
        reports = self._received[controller].found.get(key, {})
        return tuple(report for by in sorted(reports) for report in reports[by])

    def in_use(self, controller: str, key: Key) -> bool:
        """Return whether children are made from a resource, or that is not known yet."""
        received = self._received[controller]
        return not received.reports.is_over or key in received.found

    def are_whole(self, controller: str) -> bool:
        """Return whether all have reported that are to report to a controller, if there are any.

        Before that, the reports lack what an earlier process has told already.
        """
        received = self._received[controller]
        return received.expected is _unknown or received.passes.is_over


class Informing(Extension):
    """Reports what passes find about children to the resources that these are made from."""

    def __init__(self, planner: ResourcePlanner, copies: Copies) -> None:
        self._reports = planner.reports
        self._copies = copies
        self._name = copies.sources.name

    def begin(self, known: Callable[[], Iterable[Key] | None]) -> None:
        """Expect a report by each of the resources."""
        self._reports.expect(self._name, known)

    def looked(self, this: Pass) -> None:
        """Report what is known: before children are written, and after."""
        if not this.observation.has_declaration:
            return  # what children there are is not known then: the last report holds
        problems = this.request_problems()
        found = reports_of(this.controller, self._copies, this.observation, problems)
        self._reports.replace(self._name, this.key, found)

    def unmanaged(self, key: Key) -> None:
        """Drop what a resource reported."""
        self._reports.forget(self._name, key)

    def ended(self, key: Key) -> None:
        """Note that what a pass found has been reported."""
        self._reports.ended(self._name, key)


def reported_elsewhere(
    controller: Controller[Resource], copies: Copies, observation: Observation
) -> frozenset[ChildId]:
    """Return kind and name of the children of which some resource gets the reports."""
    return frozenset(
        ChildId(child.api.kind, child.name)
        for child in _children(controller, observation)
        if any(True for _ in copies.of(child))
    )


ALL = Key("", "")
"""In the place of a key: all resources."""


def reports_of(
    controller: Controller[Resource],
    copies: Copies,
    observation: Observation,
    refused: Mapping[ChildId, Problem],
) -> dict[Key, PassReports]:
    """Return what a pass found about its children, by the resources that they are made from.

    A resource with children about which there is nothing to say has no reports. `refused` are the
    problems of writes.
    """
    by = observation.plan_input.owner.key
    said: dict[ChildId, list[Report]] = {}
    for problem in (*refused.values(), *observation.plan.problems):
        if problem.about is not None:
            report = Report(
                by, "/".join(problem.about), problem.reason, problem.message, problem.stalled
            )
            said.setdefault(problem.about, []).append(report)
    for field in observation.plan.contested:
        kind, _, name = field.object.partition("/")
        held = holder(field) if field.manager else "nobody"
        message = f"{field.object}: {field.path} is held by {held}"
        report = Report(by, field.object, "FieldConflict", message, path=field.path, holder=held)
        said.setdefault(ChildId(kind, name), []).append(report)
    found = {key: list(reports) for key, reports in observation.desired.reports.items()}
    for child in _children(controller, observation):
        for key in copies.of(child):
            found.setdefault(key, []).extend(said.get(ChildId(child.api.kind, child.name), ()))
    return {key: tuple(dict.fromkeys(reports)) for key, reports in found.items()}


def _children(controller: Controller[Resource], observation: Observation) -> Iterator[View]:
    """Yield what we hold of the live children, and the declared ones as far as they are declared.

    Others may write anything on a child: what they hold there names no resource. A child that is
    being deleted needs nothing more from us, however long somebody's finalizer keeps it.
    """
    kinds = {kind.api.kind: kind for kind in controller.owns}
    manager = observation.plan_input.field_manager
    for (kind, _), obj in observation.plan_input.live.items():
        held = extract(obj, manager) if kind in kinds and not is_terminating(obj) else None
        if held is not None:
            yield kinds[kind](held)
    for child in observation.desired.children:
        if isinstance(child, Apply | Create):
            yield child.kind({"metadata": {**child.fields.get("metadata", {}), "name": child.name}})
