"""Owners report: the lines about an object's owners, before they are drawn in any format."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Final

from hedgerow.cli.program import program_name, typed
from hedgerow.fields.redaction import worded
from hedgerow.objects import metadata
from hedgerow.plan.conflict_messages import sentence
from hedgerow.texts import command_line, escaped, numbered, printable, within
from hedgerow_tools.fields.selection import NO_DISPUTES
from hedgerow_tools.render.times import utc
from hedgerow_tools.render.widths import Note

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from hedgerow.fields.managed_fields import Holder
    from hedgerow.plan.remedies import Remedy
    from hedgerow_schemas.base import Object
    from hedgerow_tools.fields.field_tree import Node, Ownership
    from hedgerow_tools.fields.selection import Disputes

FIRST: Final = 3
"""The most contested fields with remedies if the user did not ask for contested ones."""
UNOWNED = "unowned"
CONTESTED = "contested"


@dataclass(frozen=True, slots=True)
class Holding:
    """One holder in readable form: who, how, and how long ago; `since` is the exact time."""

    manager: str
    operation: str
    age: str
    since: str = ""


@dataclass(frozen=True, slots=True)
class OwnersRow:
    """One place: `guide` is drawn before its name, `below` in lines under it.

    `value` is None for a branch. `declared` is the value that the contesting resource declares.
    """

    guide: str
    below: str
    depth: int
    name: str
    value: str | None
    path: str
    holdings: tuple[Holding, ...]
    unowned: bool = False
    contested: str = ""
    declared: str = ""


@dataclass(frozen=True, slots=True)
class OwnersPage:
    """All that is shown of one object.

    `managers` has each manager's number of leaves, in the server's order. `absent` are rows of
    places that are held or contested but missing. Ages are relative to the time `asof`.
    """

    title: str
    facts: str
    managers: dict[str, int]
    rows: tuple[OwnersRow, ...]
    absent: tuple[OwnersRow, ...] = ()
    notes: tuple[Note, ...] = field(default=())
    asof: str = ""


def page(
    live: Object,
    whole: Ownership,
    chosen: Ownership,
    now: datetime,
    disputes: Disputes = NO_DISPUTES,
    *,
    unserved: Sequence[str] = (),
    nothing: str = "no field is held",
) -> OwnersPage:
    """Return the page of the chosen part of an object; its facts are about the whole object.

    `unserved` are the versions of managed fields that the server does not serve; `nothing` is said
    if no field is chosen.
    """
    meta = metadata(live)
    place = "/".join(filter(None, (meta.get("namespace"), meta.get("name"))))
    return OwnersPage(
        printable(f"{live['kind']} {place}"),
        f"{live['apiVersion']}: {_counted(whole)}",
        _leaves_held(whole),
        tuple(_declaring(disputes, _rows(_visible(chosen.fields), now))),
        (*_gone(live, chosen, now), *_declaring(disputes, _missing(chosen))),
        (*_unserved(live, unserved), *_notes(whole, chosen, nothing), *_settling(disputes)),
        utc(now),
    )


def age(since: str, now: datetime) -> str:
    """Return the time since an RFC 3339 instant as kubectl does: 5m30s, 3h, 3d.

    The steps are those of `HumanDuration` in k8s.io/apimachinery/pkg/util/duration.
    """
    try:
        seconds = int((now - datetime.fromisoformat(since)).total_seconds())
    except (TypeError, ValueError):  # no time, or one without zone
        return "?"
    if seconds < 0:  # clocks differ a little
        return "0s" if seconds >= -2 else "?"  # noqa: PLR2004 - the same tolerance as kubectl's
    for limit, unit, lesser in _STEPS:
        if seconds < limit:
            count, rest = divmod(seconds, _SECONDS[unit])
            more = rest // _SECONDS[lesser] if lesser else 0
            return f"{count}{unit}" + (f"{more}{lesser}" if more else "")
    return f"{seconds // _SECONDS['y']}y"


_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "y": 31_536_000}
_STEPS = (
    (2 * 60, "s", ""), (10 * 60, "m", "s"), (3 * 3600, "m", ""), (8 * 3600, "h", "m"),
    (48 * 3600, "h", ""), (8 * 86_400, "d", "h"), (2 * 31_536_000, "d", ""),
    (8 * 31_536_000, "y", "d"),
)  # fmt: skip


def holding(holder: Holder, now: datetime) -> Holding:
    """Return a holder in readable form."""
    operation = f"{holder.operation} {holder.subresource}".strip()
    return Holding(
        printable(holder.manager) or "?",
        printable(operation),
        age(holder.time, now),
        printable(holder.time),
    )


def _visible(nodes: Iterable[Node]) -> list[Node]:
    """Return the nodes without those in the title, and without those that only the server sets."""
    return [node for node in nodes if node.kind != "identity" and not _is_hollow(node)]


def _is_hollow(node: Node) -> bool:
    bare = node.kind == "branch" and not node.holders and not node.contested
    return bare and all(child.kind == "identity" for child in node.children)


def _rows(
    nodes: Sequence[Node], now: datetime, below: str = "", depth: int = 0
) -> Iterator[OwnersRow]:
    for node in nodes:
        last = node is nodes[-1]
        guide = below + ("└ " if last else "├ ") if depth else ""
        after = below + ("  " if last else "│ ") if depth else ""
        children = _visible(node.children)
        yield OwnersRow(
            guide,
            after + ("│ " if children else "  "),
            depth,
            printable(node.name.removeprefix(".")),
            None if node.kind == "branch" else worded(node.value),
            printable(node.path),
            tuple(holding(holder, now) for holder in node.holders),
            node.unowned,
            printable(node.contested),
        )
        yield from _rows(children, now, after, depth + 1)


def _declaring(disputes: Disputes, rows: Iterable[OwnersRow]) -> Iterator[OwnersRow]:
    """Yield the rows; contested ones get the declared value."""
    for row in rows:
        found = disputes.of(row.path) if row.contested else None
        declared = found.field.declared if found else None
        yield replace(row, declared=printable(declared)) if declared else row


def _gone(live: Object, chosen: Ownership, now: datetime) -> Iterator[OwnersRow]:
    for gone in chosen.gone:
        path = printable(gone.path)
        same = gone.version in {"", live["apiVersion"]}
        other = "" if same else f"written as {printable(gone.version)}"
        yield OwnersRow("", "", 0, path, other or None, path, (holding(gone.holder, now),))


def _missing(chosen: Ownership) -> Iterator[OwnersRow]:
    for path, owner in chosen.missing:
        yield OwnersRow(
            "", "", 0, printable(path), None, printable(path), (), contested=printable(owner)
        )


def _counted(whole: Ownership) -> str:
    leaves = [node for node in whole.leaves() if node.kind == "leaf"]
    unowned = sum(node.unowned for node in leaves)
    contested = sum(bool(node.contested) for node in whole.places()) + len(whole.missing)
    told = f"{numbered(len(leaves), 'field')}, {unowned} {UNOWNED}"
    return f"{told}, {contested} {CONTESTED}" if contested else told


def _leaves_held(whole: Ownership) -> dict[str, int]:
    counts = Counter(
        name
        for node in whole.leaves()
        for name in dict.fromkeys(holder.manager for holder in node.holders)
    )
    return {printable(one.manager) or "?": counts[one.manager] for one in whole.holders}


def _notes(whole: Ownership, chosen: Ownership, nothing: str) -> Iterator[Note]:
    declarers = {node.contested for node in whole.places()} | {owner for _, owner in whole.missing}
    for owner in sorted(filter(None, declarers)):
        yield Note(
            f"{CONTESTED}: {printable(owner)} declares another value, and forces nothing", True
        )
    if not whole.holders:
        yield Note(
            "the object has no managed fields: somebody emptied them, or the API server keeps none"
            " for this kind"
        )
    if whole.holders and any(node.field_path[-1].startswith("i:") for node in chosen.places()):
        yield Note(
            "a list item shown as a number has no key that a manager holds; in a field path,"
            " write [*] for it"
        )
    if not (chosen.fields or chosen.gone or chosen.missing):
        yield Note(printable(nothing))


def _unserved(live: Object, versions: Sequence[str]) -> Iterator[Note]:
    if versions:
        meta, group = metadata(live), str(live["apiVersion"]).rpartition("/")[0]
        kind = ".".join(filter(None, (str(live["kind"]).lower(), group)))
        words = ("adopt", "--repair", f"{kind}/{meta['name']}", *within(meta.get("namespace", "")))
        told = escaped(command_line(typed(), *words, "--yes"))
        yield Note(
            f"fields are recorded in {printable(', '.join(versions))}, which the server does not"
            f" serve, and which may block every apply: `{told}`",
            alarm=True,
        )


def _settling(disputes: Disputes) -> Iterator[Note]:
    """Yield what settles contested fields; each command has a line of its own, for pasting."""
    shown = disputes.all if disputes.all_told else disputes.all[:FIRST]
    for dispute in shown:
        told = f"{dispute.field.path}: {sentence(dispute.field, program_name())}"
        yield Note(printable(told), alarm=True)
        for remedy in dispute.remedies:
            yield from _offered(remedy, f"  {remedy.effect}:")
    for remedy in disputes.together:
        yield from _offered(remedy, f"{remedy.effect}, in one command:")
    if len(disputes.all) > len(shown):
        yield Note(f"--contested shows {len(disputes.all) - len(shown)} more contested fields")


def _offered(remedy: Remedy, effect: str) -> Iterator[Note]:
    yield Note(effect)
    yield Note(f"  {escaped(remedy.command)}", is_command=True)
