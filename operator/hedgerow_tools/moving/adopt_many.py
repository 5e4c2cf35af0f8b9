"""Adopt many: `hedgerow adopt -f FILE`, `--repair` and `--undo`, for one object or many."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final, Literal

import typer

from hedgerow.cli.connecting import connected
from hedgerow.cli.exits import Exit
from hedgerow.cli.output import echo, echo_data, echo_lines
from hedgerow.cli.program import say, typed
from hedgerow.fields.managed_fields import entries
from hedgerow.kube.discovery import served as discovered
from hedgerow.manifest import objects_in, sources
from hedgerow.objects import metadata
from hedgerow.texts import numbered, printable
from hedgerow_tools import interrupts
from hedgerow_tools.fields.relabelling import (
    BEFORE_FIRST_APPLY,
    CLIENT_SIDE,
    Takeover,
    repair,
    takeover,
)
from hedgerow_tools.fields.unserved import unserved
from hedgerow_tools.moving import bulk, report, undo_file
from hedgerow_tools.moving.bulk import FoundObjects, Task
from hedgerow_tools.moving.undo_file import UndoFile
from hedgerow_tools.moving.writing import for_each
from hedgerow_tools.objects.listing import say_unread
from hedgerow_tools.planning.files import kustomized

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
    from pathlib import Path

    from hedgerow.kube.cluster import Cluster
    from hedgerow.kube.discovery import ServedKinds
    from hedgerow_schemas.base import Object
    from hedgerow_tools.moving.bulk import Plan
    from hedgerow_tools.moving.undo_file import AdoptedObject
    from hedgerow_tools.moving.writing import ObjectOutcome

Action = Literal["adopt", "repair", "undo"]

_HEADERS: Final = ("OBJECT", "FIELDS", "FROM")
_WIDEST: Final = (60, 6, 60)
_DONE: Final = {"adopt": "adopted", "repair": "repaired", "undo": "restored"}
"""What is told of an object, by action."""
_TOLD: Final = ("changed", "failed")
"""The outcomes that people are told of one by one; of others they are told how many there are."""
CLIENT_SIDE_LATER: Final = (
    "A later `kubectl apply` without --server-side takes its fields back without asking and removes"
    " what its file no longer has: change to `kubectl apply --server-side`."
)


@dataclass(frozen=True, slots=True)
class Objects:
    """Which objects are meant: by exactly one of names, files, a directory, labels, or all."""

    names: Sequence[str] = ()
    files: Sequence[str] = ()
    kustomize: str | None = None
    labels: str | None = None
    everything: bool = False
    namespace: str | None = None
    all_namespaces: bool = False

    @property
    def given(self) -> int:
        """The number of ways in which objects are named."""
        ways = (self.names, self.files, self.kustomize is not None, self.labels is not None)
        return sum(map(bool, (*ways, self.everything)))

    @property
    def is_labelled(self) -> bool:
        """Whether labels tell which objects are meant."""
        return self.labels is not None


@dataclass(frozen=True, slots=True)
class AdoptOrder:
    """The request; `asked` for an adoption, `undone` for what is undone."""

    action: Action
    objects: Objects
    asked: Takeover | None = None
    undone: Path | None = None
    save: Path | None = None
    yes: bool = False
    dry_run: bool = False
    output: str = "text"

    @property
    def to(self) -> str:
        """Who gets the fields of an adoption."""
        return self.asked.to if self.asked else ""

    @property
    def is_done(self) -> bool:
        """Whether objects are written, not only shown."""
        return self.yes and not self.dry_run


def carry_out(order: AdoptOrder, kubeconfig: str | None, context: str | None) -> None:
    """Show what would be done, or do it; raises Exit, BadParameter, CommandError and KubeError."""
    if order.yes and order.dry_run:
        raise typer.BadParameter("--yes and --dry-run exclude each other")

    async def work() -> None:
        records = undo_file.read(order.undone) if order.undone else []
        async with connected(kubeconfig, context) as cluster:
            if code := await _show(order, await _begun(cluster, order, records)):
                raise typer.Exit(code)

    interrupts.run(work)


@dataclass(frozen=True, slots=True)
class _Handled:
    """The objects of a command: how many, what becomes of each, and kinds that were not read."""

    total: int
    outcomes: AsyncIterator[ObjectOutcome]
    unread: Mapping[str, str] = field(default_factory=dict[str, str])


async def _begun(cluster: Cluster, order: AdoptOrder, records: Sequence[AdoptedObject]) -> _Handled:
    """Find the objects, which are handled while the outcomes are iterated over."""
    task = Task(
        cluster,
        write=order.yes or order.dry_run,
        dry_run=order.dry_run,
        record=UndoFile(order.save) if order.save and order.is_done else None,
        asked=order.asked,
    )
    if order.action == "undo":
        by_object: dict[str, list[AdoptedObject]] = {}
        for record in records:
            by_object.setdefault(record.uid, []).append(record)
        undone = for_each([*by_object.values()], partial(bulk.undo, task))
        return _Handled(len(by_object), undone)
    served = await discovered(cluster)
    plan = _plan(order, served)
    found = await _found(cluster, order, served)
    outcomes = for_each(found.objects, partial(task.carry_out, plan))
    return _Handled(len(found.objects), outcomes, found.unread)


def _plan(order: AdoptOrder, served: ServedKinds) -> Plan:
    asked = order.asked
    if asked is None:
        return lambda ref, live: repair(live, ref.api.group_version, served.versions)
    return lambda _, live: takeover(live, asked, served.versions)


async def _found(cluster: Cluster, order: AdoptOrder, served: ServedKinds) -> FoundObjects:
    objects, asked = order.objects, order.asked
    if objects.names:
        return await bulk.named(cluster, objects.names, objects.namespace)
    if objects.files or objects.kustomize is not None:
        read = [one for source in await _texts(objects) for one in objects_in(*source)]
        return await bulk.declared(cluster, read, objects.namespace)

    def is_meant(live: Object) -> bool:
        if asked is None:
            found: list[Object] = metadata(live).get("managedFields") or []
            return bool(unserved(found, served.versions))
        return any(asked.takes(holder, tree) for holder, _, tree in entries(live))

    return await bulk.selected(
        cluster,
        served,
        is_meant,
        namespace="" if objects.all_namespaces else objects.namespace or cluster.namespace,
        labels=objects.labels or "",
    )


async def _texts(objects: Objects) -> Iterable[tuple[str, str]]:
    if objects.kustomize is not None:
        return [(objects.kustomize, await kustomized(objects.kustomize))]
    return sources(objects.files)


async def _show(order: AdoptOrder, handled: _Handled) -> Exit:
    """Print each object that is written at once, and the end, also if that comes early."""
    outcomes: list[ObjectOutcome] = []
    is_early = True
    try:
        async for outcome in handled.outcomes:
            outcomes.append(outcome)
            if order.is_done and order.output == "text" and outcome.fate in _TOLD:
                echo(report.outcome_line(outcome, _words(outcome, order)))
        is_early = False
    finally:
        _show_end(order, handled, outcomes, is_early=is_early)
    return Exit.FAILED if any(outcome.fate == "failed" for outcome in outcomes) else Exit.DONE


def _show_end(
    order: AdoptOrder, handled: _Handled, outcomes: Sequence[ObjectOutcome], *, is_early: bool
) -> None:
    count = Counter(outcome.fate for outcome in outcomes)
    say_unread(handled.unread)
    if order.output == "json":
        echo_data(_listed(order, handled, outcomes, is_early=is_early))
    else:
        shown = [outcome for outcome in outcomes if outcome.fate in _TOLD]
        if shown and not order.is_done:
            echo_lines(report.columns([_HEADERS, *map(_row, shown)], _WIDEST))
        echo(_summary(order, count, sum(outcome.fields for outcome in outcomes)))
        if is_early:
            left = numbered(handled.total - len(outcomes), "object")
            echo(f"It ended early: {left} left. Run the command again to go on.")
        for note in _notes(order, shown):
            echo(note)
    if count["failed"]:
        say(f"{numbered(count['failed'], 'object')} failed, see above")


def _summary(order: AdoptOrder, count: Mapping[str, int], fields: int) -> str:
    done = _DONE[order.action]
    what = f"{numbered(fields, 'field')} of {numbered(count['changed'], 'object')}"
    to = f" by {printable(order.to)}" if order.to else ""
    rest = [
        f"{numbered(count[fate], 'object')} {words}"
        for fate, words in (("nothing", "with nothing to do"), ("absent", "not there"))
        if count[fate]
    ]
    more = f" ({', '.join(rest)})" if rest else ""
    if not count["changed"]:
        return f"Nothing {'was' if order.is_done else 'would be'} {done}{to}{more}."
    if order.is_done:
        return f"{what} {done}{to}, no value changed{more}."
    undone = "" if order.action == "undo" else ", and --save FILE keeps what undoes it"
    return f"{what} would be {done}{to}{more}; nothing was changed. --yes does it{undone}."


def _notes(order: AdoptOrder, shown: Iterable[ObjectOutcome]) -> Iterable[str]:
    managers = {holder.manager for one in shown for holder, _ in one.sources}
    if order.save and order.yes and managers:
        yield (
            f"{order.save} has what `{typed()} adopt --undo` needs. Only you may read it: it has no"
            " values, but keys of list items and members of sets."
        )
    if order.action != "adopt":
        return
    if BEFORE_FIRST_APPLY in managers:
        yield (
            f"{BEFORE_FIRST_APPLY} is everybody who wrote before the first apply, with defaults and"
            " finalizers: what the manifests leave out, the next apply removes."
        )
    if CLIENT_SIDE in managers:
        yield CLIENT_SIDE_LATER


def _sources(outcome: ObjectOutcome) -> str:
    return ", ".join(dict.fromkeys(report.holder_words(holder) for holder, _ in outcome.sources))


def _row(outcome: ObjectOutcome) -> tuple[str, str, str]:
    if outcome.fate == "failed":
        return printable(str(outcome)), "-", f"failed: {printable(outcome.why)}"
    return printable(str(outcome)), str(outcome.fields), _sources(outcome)


def _words(outcome: ObjectOutcome, order: AdoptOrder) -> str:
    fields = numbered(outcome.fields, "field")
    return f"{fields} {_DONE[order.action]} from {_sources(outcome)}"


def _listed(
    order: AdoptOrder, handled: _Handled, outcomes: Iterable[ObjectOutcome], *, is_early: bool
) -> Object:
    return {
        "action": order.action,
        **({"to": order.to} if order.to else {}),
        "dryRun": not order.is_done,
        "complete": not is_early,
        "objects": [_member(outcome, order) for outcome in outcomes],
        "unread": [{"kind": kind, "why": why} for kind, why in handled.unread.items()],
    }


def _member(outcome: ObjectOutcome, order: AdoptOrder) -> Object:
    sources = [{**report.source_data(holder), "fields": count} for holder, count in outcome.sources]
    more: Object = {"fields": outcome.fields, "from": sources} if sources else {}
    fate = _DONE[order.action] if outcome.fate == "changed" else outcome.fate
    return report.outcome_data(outcome, fate, **more)
