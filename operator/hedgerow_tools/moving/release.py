"""Release: `hedgerow release KIND/NAME`, fields given up without a value changing."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Annotated, NoReturn

import anyio
import typer
from pydantic import ValidationError

from hedgerow.cli import targets
from hedgerow.cli.connecting import Context, Kubeconfig, connected
from hedgerow.cli.exits import CommandError, Exit
from hedgerow.cli.options import DryRun, Instance, Namespace, Output, check_manager, field_option
from hedgerow.cli.output import echo
from hedgerow.cli.program import field_manager, installation, program_name, registry, say
from hedgerow.fields.applyconfiguration import declaring
from hedgerow.kube.errors import Conflict, Forbidden, Invalid, Stale
from hedgerow.objects import metadata
from hedgerow.plan.yield_and_claim import YIELD
from hedgerow.settings import SYSTEM_NAMESPACE, Settings
from hedgerow.texts import command_line, escaped, numbered, printable, within
from hedgerow_tools import interrupts
from hedgerow_tools.fields.giving_up import PlannedRelease, given_up, left_over, release
from hedgerow_tools.moving import report
from hedgerow_tools.moving.removing import remove_unowned
from hedgerow_tools.moving.transfers import Change, MoveRefused, changes
from hedgerow_tools.moving.withdraw import Order, show, withdraw
from hedgerow_tools.moving.writing import Subject, keep_copy, pause, subject, until_settled
from hedgerow_tools.render.times import duration

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hedgerow.cli.targets import ManagingResource
    from hedgerow.contract import Controller
    from hedgerow_schemas.base import Object, Resource

Fields = Annotated[list[str] | None, field_option("Release")]
To = Annotated[
    str,
    typer.Option(
        metavar="MANAGER",
        help="The field manager that gets the fields that only hedgerow holds.",
        show_default="none",
    ),
]
Wait = Annotated[
    str,
    typer.Option(
        metavar="DURATION",
        help="How long to wait for the operator to release the fields; then this command does it.",
    ),
]
Given = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[KIND/NAME]",
        help="The object, its kind as kubectl takes it: deploy/web, or as two words: deploy web.",
        show_default=False,
    ),
]
OfNobody = Annotated[
    bool,
    typer.Option(
        "--unowned",
        help="Remove fields of any object that nobody holds, or make --to hold them.",
    ),
]
_OF_ALL = "Everything that an installation holds"
Everything = Annotated[
    bool,
    typer.Option(
        "--all",
        help="Give up all that --instance holds; shown first, done with --yes.",
        rich_help_panel=_OF_ALL,
    ),
]
Controllers = Annotated[
    list[str] | None,
    typer.Option(
        "--controller",
        metavar="NAME",
        help="With --all: only what this controller holds; may be given several times.",
        show_default="all",
        rich_help_panel=_OF_ALL,
    ),
]
Drop = Annotated[
    bool,
    typer.Option(
        "--drop",
        help="With --all: remove values that nobody else holds.",
        rich_help_panel=_OF_ALL,
    ),
]
Yes = Annotated[bool, typer.Option("--yes", help="With --all: do it.", rich_help_panel=_OF_ALL)]
SystemNamespace = Annotated[
    str | None,
    typer.Option(
        metavar="NAMESPACE",
        help="With --all: the namespace of the installation's Lease, to see whether it runs.",
        show_default=SYSTEM_NAMESPACE,
        rich_help_panel=_OF_ALL,
    ),
]


@dataclass(frozen=True, slots=True)
class _Task:
    """One release: the object, who gives up which fields, and who gets them."""

    subject: Subject
    managing: ManagingResource
    planned: PlannedRelease
    to: str

    @property
    def owner(self) -> str:
        """The resource that yields the fields, as `Kind/name`."""
        return f"{self.managing.api.kind}/{metadata(self.managing.object)['name']}"


def release_command(
    target: Given = None,
    *,
    field: Fields = None,
    to: To = "",
    unowned: OfNobody = False,
    dry_run: DryRun = False,
    wait: Wait = "30s",
    output: Output = "text",
    namespace: Namespace = None,
    instance: Instance = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    everything: Everything = False,
    controller: Controllers = None,
    drop: Drop = False,
    yes: Yes = False,
    system_namespace: SystemNamespace = None,
) -> None:
    """Hand fields of a child over to other field managers; no value changes.

    First the command annotates the resource to yield the fields (hedgerow.dev/yield); otherwise the
    operator would declare them again. A field that nobody else holds would be lost, or get its
    default: the command refuses that (exit code 3), unless --to names a field manager that holds
    the field from then on.

    With --unowned, the command is about fields of any object that nobody holds, such as defaults
    and what is left of a manager that is gone: no apply removes them, not even a forced one. The
    command applies such a field with its value, unforced, and then leaves it out. With --to, the
    named manager holds it from then on: its next apply without the field removes it. That is the
    way for a default that must go together with another change, such as spec.strategy.rollingUpdate
    when a Deployment gets the type Recreate.

    With --all, the command gives up everything that an installation holds in children and status,
    in all namespaces or in that of -n. The installation must have stopped for good; with
    --controller, that controller must have stopped. Without --yes the command only shows what it
    would do. --instance '' means the installation without a name.

    - `kubectl annotate bluegreen demo 'hedgerow.dev/yield=Deployment/web: spec.replicas'` yields a
      field by hand
    - `hedgerow release --instance two --all` shows what the instance `two` left behind
    """
    patience = duration("--wait", wait)
    check_manager("--to", to)
    if everything:
        if target or field or unowned or (to and drop) or (yes and dry_run):
            raise typer.BadParameter(
                "--all goes without KIND/NAME, --field and --unowned, and with one of --to and"
                " --drop, one of --yes and --dry-run"
            )
        order = Order(
            _instance(instance or ""),
            _controllers(controller or ()),
            namespace or "",
            system_namespace or installation().system_namespace,
            to,
            drop=drop,
            yes=yes,
        )
        if code := anyio.run(_withdrawn, order, output, kubeconfig, context):
            raise typer.Exit(code)
        return
    words, fields = _one_object(target, field, unowned=unowned, of_all=drop or yes or controller)

    async def carry_out() -> None:
        async with connected(kubeconfig, context) as cluster:
            found = await subject(cluster, words, namespace)
            if unowned:
                done = await remove_unowned(found, fields, to, dry_run=dry_run)
            else:
                task = await _planned(found, instance, fields, to)
                if losses := await _losses(task):
                    _refuse(task, losses)
                done = await _released(task, patience, dry_run=dry_run)
            report.show(done, output)
            if done.lost:
                told = map(report.told, done.lost)
                raise CommandError("; ".join(["but a value has changed meanwhile", *told]))

    if unowned:
        interrupts.run(carry_out)
    else:
        anyio.run(carry_out)


def _one_object(
    target: list[str] | None, field: list[str] | None, *, unowned: bool, of_all: object
) -> tuple[list[str], tuple[str, ...]]:
    """Return the object and the fields of a release of one object; raises BadParameter."""
    if of_all:
        raise typer.BadParameter("--drop, --yes and --controller go with --all")
    if not target:
        raise typer.BadParameter("name a KIND/NAME, such as deployment/web, or --all")
    if unowned and not field:
        raise typer.BadParameter("--unowned: name the fields with --field")
    return target, tuple(field or ())


async def _withdrawn(
    order: Order, output: str, kubeconfig: str | None, context: str | None
) -> Exit:
    async with connected(kubeconfig, context) as cluster:
        return await show(order, withdraw(cluster, order), output)


def _instance(name: str) -> str:
    """Return the validated instance name; raises BadParameter."""
    try:
        return Settings(instance=name).instance
    except ValidationError:
        raise typer.BadParameter(f"--instance: {name!r} is no instance's name") from None


def _controllers(names: Iterable[str]) -> tuple[Controller[Resource], ...]:
    known = registry()
    if told := known.unknown(names):
        raise typer.BadParameter(told)
    return known.chosen(names or known.names)


async def _planned(found: Subject, instance: str | None, fields: tuple[str, ...], to: str) -> _Task:
    managing = await targets.managing_resource(found.cluster, found.live, instance)
    if managing is None or managing.itself:
        raise MoveRefused(
            f"{found.ref} is no child of a {program_name()} resource; only of those it holds fields"
        )
    if to == managing.manager:
        raise MoveRefused(f"{to} is the field manager that lets go; name another one with --to")
    keep_copy(found.live, to, "name another field manager with --to")
    planned = release(found.live, managing.object, managing.manager, fields, to)
    return _Task(found, managing, planned, to)


async def _losses(task: _Task) -> list[str]:
    """Return what would happen to fields that nobody would hold, in lines for people."""
    if task.to or not task.planned.sole:
        return []
    live, manager, places = task.subject.live, task.managing.manager, task.planned.sole
    try:
        after = await task.subject.apply(
            given_up(live, manager, places) or {}, manager, dry_run=True
        )
    except (Invalid, Stale) as error:
        return [f"the server would refuse it: {error}"]
    return list(map(report.told, changes(live, after, places))) or [
        "nobody would hold them, and the next write of somebody else may change them"
    ]


def _refuse(task: _Task, losses: Iterable[str]) -> NoReturn:
    """Print what would happen to the fields, and raise CommandError."""
    fields = numbered(len(task.planned.sole), "field")
    say(f"{task.subject.ref}: nobody but {task.managing.manager} holds {fields} of these")
    for line in losses:
        echo(f"  {line}", err=True)
    raise CommandError(
        "name their new field manager with --to, or fewer fields with --field; nothing was changed",
        Exit.CONFLICT,
    )


async def _try_out(task: _Task) -> None:
    """Raise CommandError, before anything is yielded, if the new manager cannot hold the fields."""
    if not (task.to and task.planned.sole):
        return
    try:
        await _held_by_new_manager(task, dry_run=True)
    except (Conflict, Forbidden, Invalid) as error:
        raise CommandError(
            f"{printable(task.to)} cannot hold them: {error.message}; nothing was changed",
            Exit.CONFLICT,
        ) from None


async def _released(task: _Task, seconds: float, *, dry_run: bool) -> report.Transfer:
    """Release the fields of one object; raises CommandError, MoveRefused and KubeError."""
    await _try_out(task)
    lost = () if dry_run else await _carried_out(task, seconds)
    field_policy, moves = task.planned.field_policy, task.planned.moves
    notes: list[str] = []
    if field_policy:
        verb = "would be annotated" if dry_run else "is annotated"
        notes.append(f"{task.owner} {verb} to yield: {printable(field_policy)}")
    if not dry_run:
        fields, end = numbered(len(moves), "field"), "" if lost else ", no value changed"
        notes.append(f"{task.subject.ref}: {task.managing.manager} let go of {fields}{end}")
    data = {"resource": task.owner, "yield": field_policy} if field_policy else {}
    return report.Transfer(task.subject.live, moves, notes, dry_run, data, lost)


async def _carried_out(task: _Task, seconds: float) -> tuple[Change, ...]:
    """Yield, hand over, and wait until hedgerow gives up the fields; return changed values."""
    await _yield(task)
    if task.planned.sole:
        await _handed_over(task)
    after = await _let_go(task, seconds) or await _given_up(task)
    return changes(task.subject.live, after, task.planned.leaves)


async def _yield(task: _Task) -> None:
    if not task.planned.field_policy:
        return
    managing = task.managing
    ours = metadata(managing.object)
    meta = {key: ours[key] for key in ("name", "namespace", "uid") if key in ours}
    body = {"metadata": {**meta, "annotations": {YIELD: task.planned.field_policy}}}
    try:
        await task.subject.cluster.apply(managing.api, body, manager=field_manager())
    except Conflict as conflict:
        holder = conflict.causes[0].manager
        target = (f"{managing.api.plural}.{managing.api.group}".rstrip("."), meta["name"])
        words = (
            *target,
            f"{YIELD}={task.planned.field_policy}",
            *within(meta.get("namespace", "")),
        )
        told = escaped(command_line("kubectl", "annotate", "--overwrite", *words))
        raise CommandError(
            f"{task.owner}: {YIELD} is held by {printable(holder)}; set it"
            f" there, or `{told}`, and release again; nothing was changed",
            Exit.CONFLICT,
        ) from None


async def _handed_over(task: _Task) -> None:
    """Make the new manager hold the fields; this may fail even though a dry run succeeded."""
    try:
        await _held_by_new_manager(task)
    except (Conflict, Forbidden, Invalid) as error:
        told = f"{task.owner} yields them already: take that out of its {YIELD} or release again"
        raise MoveRefused(f"{error}; {told}") from None


async def _held_by_new_manager(task: _Task, *, dry_run: bool = False) -> Object:
    """Make the new manager hold the fields too, in exactly the version that was read."""

    async def attempt(_: int) -> Object:
        body = declaring(await task.subject.again(), task.to, task.planned.sole)
        return await task.subject.apply(body, task.to, dry_run=dry_run)

    return await until_settled(task.subject.ref, attempt)


async def _given_up(task: _Task) -> Object:
    """Give up the fields as the operator would, in exactly the version that was read."""

    async def attempt(_: int) -> Object:
        live = await task.subject.again()
        body = given_up(live, task.managing.manager, task.planned.leaves)
        return await task.subject.apply(body, task.managing.manager) if body else live

    return await until_settled(task.subject.ref, attempt)


async def _let_go(task: _Task, seconds: float) -> Object | None:
    """Wait until the operator has given up the fields; return the object, None if it has not."""
    with anyio.move_on_after(seconds):
        for number in count(1):
            live = await task.subject.again()
            if not left_over(live, task.managing.manager, task.planned.leaves):
                return live
            await pause(number)
    return None
