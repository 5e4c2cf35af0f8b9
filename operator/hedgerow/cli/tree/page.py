"""Tree page: the rows of trees, before they are drawn."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Final

from hedgerow.cli.notes import Note
from hedgerow.cli.owners.report import age
from hedgerow.cli.program import program_name, typed
from hedgerow.plan.conditions import UNMATCHED
from hedgerow.plan.conflict_reports import OTHER_VALUE, sentence
from hedgerow.plan.remedies import overview
from hedgerow.texts import escaped, printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from hedgerow.cli.tree.readiness import Verdict
    from hedgerow.cli.tree.resources import Conflict, ShownCondition, TreeNode

ASKED: Final = " ←"
"""The mark of the object that was asked for, below its resource."""
MOST: Final = 8
"""The most Current children of a kind with equal state that are listed; the rest is counted."""


@dataclass(frozen=True, slots=True)
class Row:
    """One object: `guide` is drawn before its name, `below` in lines under it.

    `short` is its name for narrow terminals. Rows without verdict are objects that are only
    counted.
    """

    guide: str
    below: str
    name: str
    short: str
    verdict: Verdict | None
    words: str
    changed: str
    ago: str
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True, slots=True)
class Section:
    """The rows of one namespace."""

    title: str
    facts: str
    rows: tuple[Row, ...]


def sections(trees: Iterable[TreeNode], now: datetime) -> tuple[Section, ...]:
    """Return the sections of trees that are sorted by namespace."""
    return tuple(
        _section(namespace, tuple(roots), now)
        for namespace, roots in groupby(trees, key=lambda root: root.namespace)
    )


def _section(namespace: str, roots: Sequence[TreeNode], now: datetime) -> Section:
    counts = Counter[str]()
    for root in roots:
        counts.update(node.readiness.verdict for node in root.walk())
        counts["contested"] += sum(len(node.conflicts) for node in root.walk())
    number = sum(1 for root in roots for _ in root.walk())
    told = [f"{number} object{'s' if number > 1 else ''}"]
    told += [f"{counts[key]} {words}" for key, words in _COUNTED.items() if counts[key]]
    rows = tuple(row for root in roots for row in _rows(root, None, "", "", now))
    return Section(printable(f"Namespace {namespace}"), ", ".join(told), rows)


_COUNTED: Final = {
    "InProgress": "in progress", "Failed": "failed", "Terminating": "being deleted",
    "NotFound": "missing", "contested": "contested",
}  # fmt: skip


def _rows(
    node: TreeNode, parent: TreeNode | None, guide: str, after: str, now: datetime
) -> Iterator[Row]:
    shown, counted = _folded(node.present)
    mark = ASKED if node.asked else ""
    yield Row(
        guide,
        after + ("│ " if shown else "  "),
        printable(str(node)) + mark,
        printable(_shortened(node, parent)) + mark,
        node.readiness.verdict,
        printable(node.readiness.words),
        printable(node.changed.manager) if node.changed else "",
        age(node.changed.time, now) if node.changed else "",
        tuple(_notes(node, now)),
    )
    for child in shown:
        last = child is shown[-1] and not counted
        yield from _rows(
            child, node, after + ("└ " if last else "├ "), after + ("  " if last else "│ "), now
        )
    for number, words in enumerate(counted, 1):
        mark = "└ " if number == len(counted) else "├ "
        yield Row(after + mark, after, words, words, None, "", "", "")


def _folded(children: Sequence[TreeNode]) -> tuple[list[TreeNode], list[str]]:
    """Return the children to show, and the others in words."""
    alike = Counter[tuple[str, str]]()
    shown: list[TreeNode] = []
    for child in children:
        key = child.kind, child.readiness.words
        plain = child.readiness.verdict == "Current" and not (
            child.present or child.conflicts or child.asked
        )
        alike[key] += plain
        if not plain or alike[key] <= MOST:
            shown.append(child)
    more = {key: count - MOST for key, count in alike.items() if count > MOST}
    return shown, [f"… {n} more {kind}: {words}" for (kind, words), n in more.items()]


def _shortened(node: TreeNode, parent: TreeNode | None) -> str:
    """Return a name without the parent's name as prefix: `Pod/…-x2x1z`."""
    if parent is None or not node.name.startswith(f"{parent.name}-"):
        return str(node)
    return f"{node.kind}/…{node.name.removeprefix(parent.name)}"


def _notes(node: TreeNode, now: datetime) -> Iterator[Note]:
    others = [told for told in node.conditions if told.type != "Ready"]
    if others:
        yield Note(printable(", ".join(f"{c.type}={c.status} {c.reason}" for c in others)))
    whys = [_why(told, node) for told in node.conditions if told.status != "True"]
    yield from (Note(printable(why)) for why in dict.fromkeys(whys) if why)
    yield from (Note(_held(conflict, now), True) for conflict in node.conflicts)
    if node.conflicts:
        group = node.api_version.rpartition("/")[0]
        kind = ".".join(filter(None, (node.kind, group)))
        what = overview(f"{kind}/{node.name}", node.namespace, typed())
        yield Note(escaped(what), is_command=True)
    if node.warning:
        yield Note(printable(node.warning), True)


def _why(told: ShownCondition, node: TreeNode) -> str:
    """Return why a condition is not met, without what is said at the contested objects."""
    if not _is_conflict(told.reason, node):
        return told.message
    unmatched = told.message.partition(UNMATCHED)[2]
    return f"{UNMATCHED.removeprefix('; ')}{unmatched}" if unmatched else ""


def _is_conflict(reason: str, node: TreeNode) -> bool:
    """Return whether a condition only repeats conflicts that are shown at their own objects."""
    return reason == "FieldConflict" and any(each.conflicts for each in node.walk())


def _held(conflict: Conflict, now: datetime) -> str:
    since = conflict.holder.time if conflict.reason in (None, OTHER_VALUE) else ""
    told = f" for {age(since, now)}" if since else ""
    return printable(f"{conflict.path}: {sentence(conflict, program_name())}{told}")
