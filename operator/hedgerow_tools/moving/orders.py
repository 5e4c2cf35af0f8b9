"""Orders: fields of one object or many that change managers: shown first, done with `--yes`."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from msgspec.structs import replace as replaced

from hedgerow.cli.connecting import connected
from hedgerow.cli.discovery import served as discovered
from hedgerow.cli.exits import Exit
from hedgerow.cli.output import echo, echo_data
from hedgerow.cli.program import say, typed
from hedgerow.fields.managed_fields import all_holders
from hedgerow.plan.yield_and_claim import YIELD
from hedgerow.texts import numbered, printable
from hedgerow_tools import interrupts
from hedgerow_tools.fields.relabelling import HolderName
from hedgerow_tools.moving import report
from hedgerow_tools.moving.bulk import Task
from hedgerow_tools.moving.outcomes import for_each
from hedgerow_tools.moving.report import MoveReport
from hedgerow_tools.moving.undo import UndoFile, read_undo_file, undo_object
from hedgerow_tools.objects.listing import say_unread
from hedgerow_tools.objects.selection import ChosenObjects, find_objects
from hedgerow_tools.render.holders import holder_words
from hedgerow_tools.render.tables import print_table

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence

    from hedgerow.cli.discovery import ServedKinds
    from hedgerow.kube.cluster import Cluster
    from hedgerow_schemas.base import Object
    from hedgerow_tools.fields.relabelling import Takeover
    from hedgerow_tools.moving.bulk import Plan
    from hedgerow_tools.moving.outcomes import ObjectFate, ObjectOutcome
    from hedgerow_tools.moving.report import Action
    from hedgerow_tools.moving.undo import AdoptedObject

From = Annotated[
    str,
    typer.Option(
        "--from",
        metavar="MANAGER,…",
        help="The field managers that lose the fields, as `hedgerow owners` names them; with an"
        " operation and a subresource only such entries: 'a Update scale'.",
        show_default=False,
    ),
]
Save = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="With --yes: record in this file what --undo needs, before each write; only you may"
        " read it.",
        show_default=False,
    ),
]
Undo = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Give back what is recorded in this file, where no manager of it wrote since.",
        show_default=False,
    ),
]
Yes = Annotated[bool, typer.Option("--yes", help="Do it, instead of showing it.")]

_HEADERS: Final = ("OBJECT", "FIELDS", "FROM")
_WIDEST: Final = (60, 6, 60)
_DONE: Final[Mapping[Action, ObjectFate]] = {
    "adopt": "adopted",
    "release": "released",
    "repair": "repaired",
    "undo": "restored",
}
"""What is told of an object, by action."""
_TOLD: Final = ("changed", "failed", "kept")
"""The outcomes that people are told of one by one; of others they are told how many there are."""


@dataclass(frozen=True, slots=True)
class MoveOrder:
    """The request: what is done to which objects, or what of a file is `undone`.

    `asked` is set if managers are named that lose fields. `is_meant` tells which of all objects
    are, by their metadata. `notes` are what people should know of the outcomes.
    """

    action: Action
    chosen: ChosenObjects
    plan: Callable[[Cluster, ServedKinds], Plan] | None = None
    is_meant: Callable[[ServedKinds, Object], bool] | None = None
    notes: Callable[[Sequence[ObjectOutcome]], Iterable[str]] | None = None
    asked: Takeover | None = None
    undone: Path | None = None
    save: Path | None = None
    yes: bool = False
    output: str = "text"


def holder_names(text: str) -> frozenset[HolderName]:
    """Return the holders that --from names."""
    return frozenset(HolderName.parse(name.strip()) for name in text.split(",") if name.strip())


def others(live: Object, asked: Takeover, fields: Sequence[str]) -> str:
    """Return that there is nothing to move, and who holds fields."""
    names = ", ".join(sorted({holder.manager for holder in all_holders(live)} - {asked.to}))
    called = f" that is called {', '.join(fields)}" if fields else ""
    return (
        f"{', '.join(sorted(asked.managers))} holds nothing of it{called}; others:"
        f" {names or 'nobody'}"
    )


def undoing(
    undo: Path, chosen: ChosenObjects, *, yes: bool, output: str, others: object
) -> MoveOrder:
    """Return the order to undo what a file records; raises BadParameter if there are `others`."""
    if chosen.given or chosen.all_namespaces or others:
        raise typer.BadParameter("--undo goes with --yes and --output alone")
    return MoveOrder("undo", chosen, notes=_still_yielded, undone=undo, yes=yes, output=output)


def _still_yielded(changed: Sequence[ObjectOutcome]) -> Iterator[str]:
    """Yield what an undone release leaves behind."""
    for name in dict.fromkeys(outcome.resource for outcome in changed):
        if name:
            yield (
                f"If {printable(name)} was annotated to yield these fields, it still is: take them"
                f" out of {YIELD}, so that its operator applies them again."
            )


def carry_out(order: MoveOrder) -> None:
    """Show what would be done, or do it; raises Exit, BadParameter, CommandError and KubeError."""

    async def work() -> None:
        records = read_undo_file(order.undone) if order.undone else []
        ready = order if order.undone else replace(order, chosen=await order.chosen.loaded())
        async with connected() as cluster:
            if code := await _show(ready, await _begun(cluster, ready, records)):
                raise typer.Exit(code)

    interrupts.run(work)


@dataclass(frozen=True, slots=True)
class _Handled:
    """The objects of a command: how many, what becomes of each, and kinds that were not read."""

    total: int
    outcomes: AsyncIterator[ObjectOutcome]
    unread: Mapping[str, str] = field(default_factory=dict[str, str])
    controlled: int = 0


async def _begun(cluster: Cluster, order: MoveOrder, records: Sequence[AdoptedObject]) -> _Handled:
    """Find the objects, which are handled while the outcomes are iterated over."""
    record = UndoFile(order.save) if order.save and order.yes else None
    task = partial(Task, cluster, dry_run=not order.yes, record=record, asked=order.asked)
    if order.plan is None or order.is_meant is None:
        by_object: dict[str, list[AdoptedObject]] = {}
        for entry in records:
            by_object.setdefault(entry.uid, []).append(entry)
        undone = partial(undo_object, task(restoring=True, whole=len(by_object) == 1))
        return _Handled(len(by_object), for_each([*by_object.values()], undone))
    served = await discovered(cluster)
    is_meant = partial(order.is_meant, served)
    # What a controller made is left alone, unless our children are released, or it is repaired.
    controlled = order.asked is None
    these = await find_objects(cluster, order.chosen, served, is_meant, controlled=controlled)
    total = len(these.objects)
    handler = task(whole=total == 1, required=bool(order.chosen.names))
    work = partial(handler.carry_out, order.plan(cluster, served))
    # Several children may be released by one resource's annotation.
    at_once = 1 if order.action == "release" else None
    outcomes = for_each(these.objects, work, at_once)
    return _Handled(total, outcomes, these.unread, these.controlled)


async def _show(order: MoveOrder, handled: _Handled) -> Exit:
    """Print each object that is written at once, and the end, also if that comes early."""
    outcomes: list[ObjectOutcome] = []
    is_early = True
    try:
        async for outcome in handled.outcomes:
            outcomes.append(outcome)
            if order.yes and order.output == "text" and outcome.fate in _TOLD:
                echo(report.outcome_line(outcome, _words(outcome, order)))
        is_early = False
    finally:
        _show_end(order, handled, outcomes, is_early=is_early)
    fates = {outcome.fate for outcome in outcomes}
    if "failed" in fates:
        return Exit.FAILED
    return Exit.CONFLICT if "kept" in fates else Exit.DONE


def _show_end(
    order: MoveOrder, handled: _Handled, outcomes: Sequence[ObjectOutcome], *, is_early: bool
) -> None:
    say_unread(handled.unread)
    if handled.controlled:
        objects = numbered(handled.controlled, "object")
        say(f"{objects} that a controller made left alone: name them to move their fields")
    if order.output == "json":
        done = _DONE[order.action]
        objects = [replaced(o, fate=done) if o.fate == "changed" else o for o in outcomes]
        unread = handled.unread
        echo_data(MoveReport(order.action, not order.yes, not is_early, objects, unread))
    else:
        shown = [outcome for outcome in outcomes if outcome.fate in _TOLD]
        if not order.yes:
            _show_first(order, shown)
        for line in _ending(order, handled, outcomes, is_early=is_early):
            echo(line)
    count = Counter(outcome.fate for outcome in outcomes)
    for fate in ("failed", "kept"):
        if count[fate]:
            say(f"{numbered(count[fate], 'object')} {fate}, see above")


def _show_first(order: MoveOrder, shown: Sequence[ObjectOutcome]) -> None:
    """Print what would be done: of a sole object each field, of several their numbers."""
    changed = [outcome for outcome in shown if outcome.fate == "changed"]
    if len(shown) == 1 and shown[0].moves:
        report.print_moves(shown[0].moves)
    elif changed:
        print_table(_HEADERS, map(_row, changed), cut=(0, 2))
    for outcome in shown:
        if outcome.fate != "changed":
            echo(report.outcome_line(outcome, _words(outcome, order)))


def _ending(
    order: MoveOrder, handled: _Handled, outcomes: Sequence[ObjectOutcome], *, is_early: bool
) -> Iterator[str]:
    """Yield what is told of all objects together."""
    for outcome in outcomes:
        if outcome.fate == "nothing" and outcome.why:
            yield report.outcome_line(outcome, printable(outcome.why))
    yield _summary(order, outcomes)
    if is_early:
        left = numbered(handled.total - len(outcomes), "object")
        yield f"It ended early: {left} left. Run the command again to go on."
    changed = [outcome for outcome in outcomes if outcome.fate == "changed"]
    if order.save and order.yes and changed:
        yield (
            f"{order.save} has what `{typed()} {order.action} --undo` needs. Only you may read it:"
            " it has no values, but keys of list items and members of sets."
        )
    noted = [outcome for outcome in outcomes if outcome.fate == "changed" or outcome.yielded]
    yield from order.notes(noted) if order.notes else ()


def _summary(order: MoveOrder, outcomes: Sequence[ObjectOutcome]) -> str:
    done, count = _DONE[order.action], Counter(outcome.fate for outcome in outcomes)
    fields = sum(outcome.fields for outcome in outcomes if outcome.fate == "changed")
    what = f"{numbered(fields, 'field')} of {numbered(count['changed'], 'object')}"
    managers = {outcome.to for outcome in outcomes if outcome.to}
    way = "to" if order.action == "release" else "by"
    to = f" {way} {printable(next(iter(managers)))}" if len(managers) == 1 else ""
    rest = [
        f"{numbered(count[fate], 'object')} {words}"
        for fate, words in (("nothing", "with nothing to do"), ("absent", "not there"))
        if count[fate]
    ]
    more = f" ({', '.join(rest)})" if rest else ""
    if not count["changed"]:
        return f"Nothing {'was' if order.yes else 'would be'} {done}{to}{more}."
    if order.yes:
        return f"{what} {done}{to}, no value changed{more}."
    undone = "" if order.action == "undo" else ", and --save FILE keeps what undoes it"
    return f"{what} would be {done}{to}{more}; nothing was changed. --yes does it{undone}."


def _sources(outcome: ObjectOutcome) -> str:
    return ", ".join(dict.fromkeys(map(holder_words, outcome.sources)))


def _row(outcome: ObjectOutcome) -> tuple[str, str, str]:
    return printable(str(outcome)), str(outcome.fields), _sources(outcome)


def _words(outcome: ObjectOutcome, order: MoveOrder) -> str:
    fields = numbered(outcome.fields, "field")
    if outcome.fate == "kept":
        return f"kept: {printable(outcome.why)}"
    return f"{fields} {_DONE[order.action]} from {_sources(outcome)}"
