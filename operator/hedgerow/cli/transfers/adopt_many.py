"""Adopt many: `hedgerow adopt -f FILE`, `--repair` and `--undo`, for one object or many."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

import typer

from hedgerow.cli import interrupts
from hedgerow.cli.connecting import connected
from hedgerow.cli.exits import Exit
from hedgerow.cli.objects import say_unread
from hedgerow.cli.output import echo, echo_data, echo_lines
from hedgerow.cli.owners.listing import ref_data
from hedgerow.cli.plan.files import kustomized
from hedgerow.cli.program import say, typed
from hedgerow.cli.transfers import bulk, undo_file
from hedgerow.cli.transfers.bulk import AdoptOutcome, FoundObjects, Task
from hedgerow.cli.transfers.relabelling import (
    BEFORE_FIRST_APPLY,
    CLIENT_SIDE,
    Takeover,
    repair,
    takeover,
)
from hedgerow.cli.transfers.report import columns, holder_words, source_data
from hedgerow.cli.transfers.undo_file import UndoFile
from hedgerow.cli.transfers.writing import for_each
from hedgerow.fields.managed_fields import entries
from hedgerow.fields.unserved import unserved
from hedgerow.kube.discovery import served as discovered
from hedgerow.manifest import objects_in, sources
from hedgerow.objects import metadata
from hedgerow.texts import numbered, printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from hedgerow.cli.transfers.bulk import Plan
    from hedgerow.cli.transfers.undo_file import AdoptedObject
    from hedgerow.kube.cluster import Cluster
    from hedgerow.kube.discovery import ServedKinds
    from hedgerow_schemas.base import Object

Action = Literal["adopt", "repair", "undo"]

_HEADERS: Final = ("OBJECT", "FIELDS", "FROM")
_WIDEST: Final = (60, 6, 60)
_DONE: Final = {"adopt": "adopted", "repair": "repaired", "undo": "restored"}
"""What is told of an object, by action."""
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


def carry_out(order: AdoptOrder, kubeconfig: str | None, context: str | None) -> None:
    """Show what would be done, or do it; raises Exit, BadParameter, CommandError and KubeError."""
    if order.yes and order.dry_run:
        raise typer.BadParameter("--yes and --dry-run exclude each other")

    async def work() -> None:
        records = undo_file.read(order.undone) if order.undone else []
        async with connected(kubeconfig, context) as cluster:
            if code := await _carried_out(cluster, order, records):
                raise typer.Exit(code)

    interrupts.run(work)


async def _carried_out(
    cluster: Cluster, order: AdoptOrder, records: Sequence[AdoptedObject]
) -> Exit:
    told = _Report(order)
    is_done = order.yes and not order.dry_run
    task = Task(
        cluster,
        write=order.yes or order.dry_run,
        dry_run=order.dry_run,
        record=UndoFile(order.save) if order.save and is_done else None,
        asked=order.asked,
    )
    if order.action == "undo":
        by_object: dict[str, list[AdoptedObject]] = {}
        for record in records:
            by_object.setdefault(record.uid, []).append(record)
        told.total = len(by_object)
        with told:
            await for_each([*by_object.values()], lambda some: bulk.undo(task, some), told.add)
        return told.exit
    served = await discovered(cluster)
    plan = _plan(order, served)
    found = await _found(cluster, order, served)
    told.total, told.unread = len(found.refs) + len(found.refused), found.unread
    with told:
        for refused in found.refused:
            told.add(refused)
        await for_each(found.refs, lambda ref: task.carry_out(ref, plan), told.add)
    return told.exit


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


@dataclass
class _Report:
    """What is told while objects are handled, and at the end, also if that comes early."""

    order: AdoptOrder
    total: int = 0
    unread: Mapping[str, str] = field(default_factory=dict[str, str])
    outcomes: list[AdoptOutcome] = field(default_factory=list[AdoptOutcome])

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(self, *failed: object) -> None:
        """Tell the end, and whether it came early."""
        is_early = failed[0] is not None
        say_unread(self.unread)
        if self.order.output == "json":
            echo_data(_listed(self, is_early=is_early))
        else:
            self._end(is_early=is_early)
        if self._count["failed"]:
            say(f"{numbered(self._count['failed'], 'object')} failed, see above")

    def add(self, outcome: AdoptOutcome) -> None:
        """Tell of one object at once if it was written."""
        self.outcomes.append(outcome)
        if self._is_done and self.order.output == "text" and outcome.fate in {"changed", "failed"}:
            echo(_line(outcome, _DONE[self.order.action]))

    @property
    def exit(self) -> Exit:
        """The exit code."""
        return Exit.FAILED if self._count["failed"] else Exit.DONE

    @property
    def _is_done(self) -> bool:
        return self.order.yes and not self.order.dry_run

    @property
    def _count(self) -> Counter[str]:
        return Counter(outcome.fate for outcome in self.outcomes)

    def _end(self, *, is_early: bool) -> None:
        shown = [one for one in self.outcomes if one.fate in {"changed", "failed"}]
        if shown and not self._is_done:
            echo_lines(columns([_HEADERS, *map(_row, shown)], _WIDEST))
        echo(self._summary())
        if is_early:
            left = numbered(self.total - len(self.outcomes), "object")
            echo(f"It ended early: {left} left. Run the command again to go on.")
        for note in _notes(self.order, shown):
            echo(note)

    def _summary(self) -> str:
        done, count = _DONE[self.order.action], self._count
        fields = sum(one.fields for one in self.outcomes)
        what = f"{numbered(fields, 'field')} of {numbered(count['changed'], 'object')}"
        to = f" by {printable(self.order.to)}" if self.order.to else ""
        rest = [
            f"{numbered(count[fate], 'object')} {words}"
            for fate, words in (("nothing", "with nothing to do"), ("absent", "not there"))
            if count[fate]
        ]
        more = f" ({', '.join(rest)})" if rest else ""
        if not count["changed"]:
            return f"Nothing {'was' if self._is_done else 'would be'} {done}{to}{more}."
        if self._is_done:
            return f"{what} {done}{to}, no value changed{more}."
        undone = "" if self.order.action == "undo" else ", and --save FILE keeps what undoes it"
        return f"{what} would be {done}{to}{more}; nothing was changed. --yes does it{undone}."


def _notes(order: AdoptOrder, shown: Iterable[AdoptOutcome]) -> Iterable[str]:
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


def _title(outcome: AdoptOutcome) -> str:
    ref = outcome.ref
    name = "/".join(filter(None, (ref.namespace, ref.name)))
    return printable(f"{ref.api.kind} {name}")


def _sources(outcome: AdoptOutcome) -> str:
    return ", ".join(dict.fromkeys(holder_words(holder) for holder, _ in outcome.sources))


def _row(outcome: AdoptOutcome) -> tuple[str, str, str]:
    if outcome.fate == "failed":
        return _title(outcome), "-", f"failed: {printable(outcome.why)}"
    return _title(outcome), str(outcome.fields), _sources(outcome)


def _line(outcome: AdoptOutcome, done: str) -> str:
    if outcome.fate == "failed":
        return f"{_title(outcome)}: failed: {printable(outcome.why)}"
    fields = numbered(outcome.fields, "field")
    return f"{_title(outcome)}: {fields} {done} from {_sources(outcome)}"


def _listed(report: _Report, *, is_early: bool) -> Object:
    order = report.order
    return {
        "action": order.action,
        **({"to": order.to} if order.to else {}),
        "dryRun": order.dry_run or not order.yes,
        "complete": not is_early,
        "objects": [_member(outcome, _DONE[order.action]) for outcome in report.outcomes],
        "unread": [{"kind": kind, "why": why} for kind, why in report.unread.items()],
    }


def _member(outcome: AdoptOutcome, done: str) -> Object:
    sources = [{**source_data(holder), "fields": count} for holder, count in outcome.sources]
    return {
        **ref_data(outcome.ref),
        "fate": done if outcome.fate == "changed" else outcome.fate,
        **({"fields": outcome.fields, "from": sources} if sources else {}),
        **({"why": outcome.why} if outcome.why else {}),
    }
