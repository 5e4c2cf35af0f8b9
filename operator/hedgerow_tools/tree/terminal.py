"""Tree terminal: trees as lines of columns, no wider than the terminal."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Final, Literal

from rich.cells import cell_len
from rich.text import Text

from hedgerow.cli.program import program_name, typed
from hedgerow.cli.terminal import Terminal
from hedgerow.plan.conditions import LONGEST_MESSAGE, UNMATCHED
from hedgerow.plan.conflict_messages import OTHER_VALUE, sentence
from hedgerow.plan.remedies import overview
from hedgerow.texts import command_line, escaped, numbered, printable, within
from hedgerow_tools.render.tables import table_lines
from hedgerow_tools.render.times import age
from hedgerow_tools.render.widths import Note, hanging, shortened, wrapped

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from hedgerow_schemas.base import Condition, ContestedField
    from hedgerow_tools.objects.readiness import KstatusVerdict
    from hedgerow_tools.tree.members.resources import TreeNode

    Mark = KstatusVerdict | Literal["ToDecide"]

ASKED: Final = " ←"
"""The mark of the object that was asked for, below its resource."""
MOST: Final = 8
"""The most Current children of a kind with equal state that are listed; the rest is counted."""


@dataclass(frozen=True, slots=True)
class TreeRow:
    """One object: `guide` is drawn before its name, `below` in lines under it.

    `short` is its name for narrow terminals. Rows without verdict are objects that are only
    counted.
    """

    guide: str
    below: str
    name: str
    short: str
    verdict: Mark | None
    words: str
    changed: str
    ago: str
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True, slots=True)
class TreeSection:
    """The rows of one namespace."""

    title: str
    facts: str
    rows: tuple[TreeRow, ...]


def sections(trees: Iterable[TreeNode], now: datetime) -> tuple[TreeSection, ...]:
    """Return the sections of trees that are sorted by namespace."""
    return tuple(
        _section(namespace, tuple(roots), now)
        for namespace, roots in groupby(trees, key=lambda root: root.namespace)
    )


def _section(namespace: str, roots: Sequence[TreeNode], now: datetime) -> TreeSection:
    counts = Counter[str]()
    for root in roots:
        counts.update(map(_mark, root.walk()))
        counts["contested"] += sum(len(node.contested) for node in root.walk())
    number = sum(1 for root in roots for _ in root.walk())
    parts = [numbered(number, "object")]
    parts += [f"{counts[key]} {words}" for key, words in _COUNTED.items() if counts[key]]
    rows = tuple(row for root in roots for row in _rows(root, None, "", "", now))
    title = f"Namespace {namespace}" if namespace else "Without a namespace"
    return TreeSection(printable(title), printable(", ".join(parts)), rows)


_COUNTED: Final = {
    "InProgress": "in progress", "ToDecide": "to decide", "Failed": "failed",
    "Terminating": "being deleted", "NotFound": "missing", "contested": "contested",
}  # fmt: skip


def _mark(node: TreeNode) -> Mark:
    return "ToDecide" if node.to_decide else node.readiness.verdict


def _rows(
    node: TreeNode, parent: TreeNode | None, guide: str, after: str, now: datetime
) -> Iterator[TreeRow]:
    shown, counted = _folded(node.present)
    mark, words = ASKED if node.asked else "", printable(node.readiness.words)
    yield TreeRow(
        guide,
        after + ("│ " if shown else "  "),
        printable(str(node)) + mark,
        printable(_shortened(node, parent)) + mark,
        _mark(node),
        shortened(words, _SENTENCE),
        printable(node.changed.manager) if node.changed else "",
        age(node.changed.time, now) if node.changed else "",
        tuple(_notes(node, words, now)),
    )
    for child in shown:
        last = child is shown[-1] and not counted
        yield from _rows(
            child, node, after + ("└ " if last else "├ "), after + ("  " if last else "│ "), now
        )
    for number, words in enumerate(counted, 1):
        mark = "└ " if number == len(counted) else "├ "
        yield TreeRow(after + mark, after, words, words, None, "", "", "")


def _folded(children: Sequence[TreeNode]) -> tuple[list[TreeNode], list[str]]:
    """Return the children to show, and the others in words."""
    alike = Counter[tuple[str, str]]()
    shown: list[TreeNode] = []
    for child in children:
        key = child.kind, child.readiness.words
        plain = child.readiness.verdict == "Current" and not (
            child.present or child.contested or child.asked
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


def _notes(node: TreeNode, words: str, now: datetime) -> Iterator[Note]:
    if cell_len(words) > _SENTENCE:
        yield Note(words)
    others = [condition for condition in node.conditions if condition.type != "Ready"]
    if others:
        yield Note(printable(", ".join(f"{c.type}={c.status} {c.reason}" for c in others)))
    whys = [_why(condition, node) for condition in node.conditions if condition.status != "True"]
    yield from (Note(printable(why, LONGEST_MESSAGE)) for why in dict.fromkeys(whys) if why)
    yield from (Note(_held(conflict, now), True) for conflict in node.contested)
    if node.held:
        what = command_line(typed(), "promote", node.name, *within(node.namespace))
        yield Note(escaped(what), is_command=True)
    if node.contested:
        group = node.api_version.rpartition("/")[0]
        kind = ".".join(filter(None, (node.kind, group)))
        what = overview(f"{kind}/{node.name}", node.namespace, typed())
        yield Note(escaped(what), is_command=True)
    if node.warning:
        yield Note(printable(node.warning), True)


def _why(condition: Condition, node: TreeNode) -> str:
    """Return why a condition is not met, without what is said at the contested objects."""
    if not _is_conflict(condition.reason, node):
        return condition.message
    unmatched = condition.message.partition(UNMATCHED)[2]
    return f"{UNMATCHED.removeprefix('; ')}{unmatched}" if unmatched else ""


def _is_conflict(reason: str, node: TreeNode) -> bool:
    """Return whether a condition only repeats conflicts that are shown at their own objects."""
    return reason == "FieldConflict" and any(inner.contested for inner in node.walk())


def _held(conflict: ContestedField, now: datetime) -> str:
    since = conflict.since if conflict.reason in (None, OTHER_VALUE) else None
    duration = f" for {age(since.isoformat(), now)}" if since else ""
    return printable(f"{conflict.path}: {sentence(conflict, program_name())}{duration}")


_MARKS: Final[Mapping[Mark | None, tuple[str, str]]] = {
    "Current": ("✓ ", "green"),
    "InProgress": ("~ ", "yellow"),
    "ToDecide": ("! ", "bold yellow"),
    "Failed": ("✗ ", "bold red"),
    "Terminating": ("- ", "yellow"),
    "NotFound": ("? ", "bold red"),
    "Unknown": ("? ", "yellow"),
    None: ("", "dim"),
}
_HEADERS: Final = ("OBJECT", "READINESS", "CHANGED BY", "AGO")
_SENTENCE: Final = 40
"""The most columns of a readiness; a longer one is below its object as a whole."""
_NOTE: Final = 12
"""The least columns of a note on any terminal."""


def lines(sections: Iterable[TreeSection], width: int) -> Iterator[Text]:
    """Yield the lines of sections, in a width of so many columns."""
    for number, section in enumerate(sections):
        if number:
            yield Text()
        yield from wrapped(
            Text.assemble((section.title, "bold"), "  ", (section.facts, "dim")), width
        )
        yield Text()
        yield from _table(section.rows, width)


def _table(rows: Sequence[TreeRow], width: int) -> Iterator[Text]:
    longest = max(cell_len(row.guide + row.name) for row in rows)
    is_short = longest > width // 2
    cells = [_cells(row, row.short if is_short else row.name) for row in rows if row.verdict]
    drawn = table_lines(_HEADERS, cells, Terminal(width=width), cut=(0, 1, 2))
    yield next(drawn)
    for row in rows:
        if row.verdict is None:
            yield Text.assemble((row.guide, "dim"), (row.name, "dim"))
            continue
        yield next(drawn)
        for note in row.notes:
            draw = _command if note.is_command else _note
            yield from draw(row, note, width)


def _cells(row: TreeRow, name: str) -> tuple[Text, Text, Text, Text]:
    kind, slash, rest = name.partition("/")
    mark, style = _MARKS[row.verdict]
    return (
        Text.assemble((row.guide, "dim"), (kind + slash, "dim"), (rest, "bold")),
        Text(mark + row.words, style),
        Text(row.changed),
        Text(row.ago, "dim"),
    )


def _note(row: TreeRow, note: Note, width: int) -> Iterator[Text]:
    mark, style = ("✗ ", "red") if note.alarm else ("  ", "dim")
    room = max(width - len(row.below) - len(mark), _NOTE)
    for number, part in enumerate(hanging(Text(note.text, style), room, 0)):
        first = Text("  " if number else mark, style)
        yield Text.assemble((row.below, "dim"), first, part)


def _command(row: TreeRow, note: Note, width: int) -> Iterator[Text]:
    """Yield a command on one line, whatever its width: a broken one cannot be pasted."""
    head = Text.assemble((f"{row.below}  what to do:", "dim"))
    whole = Text.assemble(head, (f" {note.text}", "dim"))
    yield from [whole] if whole.cell_len <= width else [head, Text(note.text, "dim")]
