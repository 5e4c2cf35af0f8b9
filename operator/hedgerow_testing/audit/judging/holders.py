"""Holders of a sample: its fields as a tree, each with who holds it before and after."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from hedgerow.texts import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from hedgerow_testing.audit.judging.findings import (
        AuditReport,
        FieldHolder,
        FieldView,
        SampleView,
    )


@dataclass(frozen=True, slots=True)
class PlaceRow:
    """One place of a sample; `view` is None for a branch.

    `has_changed`: its holders changed, or those of a place below it.
    """

    depth: int
    name: str
    view: FieldView | None
    has_changed: bool


@dataclass(frozen=True, slots=True)
class Run:
    """Fields in a row that the same managers hold; `managers` is empty if nobody does."""

    managers: tuple[str, ...]
    count: int


def managers(report: AuditReport) -> dict[str, int]:
    """Return how many fields of the samples each manager holds; who held them at first is first.

    A manager that holds none any more counts 0.
    """
    held = Counter[str]()
    for view in _views(report):
        held.update(dict.fromkeys(names(view, "before"), 0))
    for view in _views(report):
        held.update(names(view, "after"))
    return dict(held)


def _views(report: AuditReport) -> Iterator[FieldView]:
    return (view for sample in report.samples for view in sample.fields)


def names(view: FieldView, when: str) -> tuple[str, ...]:
    """Return the managers that hold a field, each once: `before` or `after`."""
    held = view.before if when == "before" else view.after
    return tuple(dict.fromkeys(map(called, held)))


def called(holding: FieldHolder) -> str:
    """Return a manager's name as it is shown."""
    return printable(holding.manager) or "?"


def runs(sample: SampleView, when: str) -> tuple[Run, ...]:
    """Return a sample's fields as a strip: those in a row that the same managers hold are one."""
    held = (names(view, when) for view in _sorted(sample.fields))
    return tuple(Run(who, sum(1 for _ in same)) for who, same in groupby(held))


def has_changed(view: FieldView) -> bool:
    """Return whether other managers hold a field now than at first."""
    return frozenset(view.before) != frozenset(view.after)


def is_taken(view: FieldView) -> bool:
    """Return whether other managers hold a field of the author now: it is no added one."""
    return bool(view.before) and has_changed(view)


def rows(sample: SampleView) -> tuple[PlaceRow, ...]:
    """Return a sample's fields as a tree; a branch with a single place below it is one with it."""
    return tuple(_below([(view.steps, view) for view in _sorted(sample.fields)], 0))


def _sorted(views: Iterable[FieldView]) -> Sequence[FieldView]:
    """Return fields such that those with a common beginning are beside each other."""
    return sorted(views, key=lambda view: view.steps)


def _below(places: Sequence[tuple[tuple[str, ...], FieldView]], depth: int) -> Iterator[PlaceRow]:
    for _, some in groupby(places, key=lambda place: place[0][:1]):
        group = list(some)
        shared = _common([path for path, _ in group])
        name = printable("".join(group[0][0][:shared]).removeprefix("."))
        own = [view for path, view in group if len(path) == shared]
        below = [(path[shared:], view) for path, view in group if len(path) > shared]
        changed = any(has_changed(view) for _, view in group)
        yield from (PlaceRow(depth, name, view, changed) for view in own or (None,))
        yield from _below(below, depth + 1)


def _common(paths: Sequence[tuple[str, ...]]) -> int:
    """Return how many steps all of these paths share; of sorted ones the ends decide."""
    first, last = paths[0], paths[-1]
    shared = 0
    for element, opposite in zip(first, last, strict=False):
        if element != opposite:
            break
        shared += 1
    return shared
