"""Release: `hedgerow release KIND/NAME`, fields given up without a value changing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

import anyio
import typer
from pydantic import ValidationError

from hedgerow.cli import targets, transfers
from hedgerow.cli.connecting import Context, Kubeconfig, connected
from hedgerow.cli.exits import Exit
from hedgerow.cli.output import echo, echo_lines
from hedgerow.cli.program import field_manager, installation, program_name, registry
from hedgerow.cli.release.plan import Release, given_up, left_over, release
from hedgerow.cli.targets import Instance, Namespace, Place, say
from hedgerow.cli.times import duration
from hedgerow.cli.withdraw.command import Order, withdraw
from hedgerow.fields.sets import declaring
from hedgerow.kube.errors import Conflict, Forbidden, Invalid, Stale
from hedgerow.kube.retry import RetryClock, backoff
from hedgerow.kube.withholding import withholding
from hedgerow.objects import metadata
from hedgerow.plan.transfers import Change, Refusal, changes
from hedgerow.plan.yield_and_claim import YIELD
from hedgerow.settings import SYSTEM_NAMESPACE, Settings
from hedgerow.texts import printable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hedgerow.cli.targets import ManagingResource
    from hedgerow.contract import Controller
    from hedgerow.kube.cluster import Cluster
    from hedgerow_schemas.base import Object, Resource

ATTEMPTS = 5
"""The most attempts of a write if the object has just changed."""
LONGEST_MANAGER = 128
"""The most characters of a field manager's name; the API server accepts only printable ones."""
LONGEST_PAUSE = 1.0
"""The most seconds between two reads of the object."""

Fields = Annotated[
    list[str] | None,
    typer.Option(
        "--field",
        metavar="PATH",
        help="Release this field only, as `yield` writes it: spec.replicas, or 'spec.template.**'"
        " for all below; may be given several times.",
        show_default="all",
    ),
]
To = Annotated[
    str,
    typer.Option(
        metavar="MANAGER",
        help="The field manager that gets the fields that only hedgerow holds.",
        show_default="none",
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be done, and stop.")]
Wait = Annotated[
    str,
    typer.Option(
        metavar="DURATION",
        help="How long to wait for the operator to release the fields; then this command does it.",
    ),
]
Output = Annotated[
    Literal["text", "json"], typer.Option("--output", "-o", help="The output format.")
]
Given = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[KIND/NAME]",
        help="The object, its kind as kubectl takes it: deploy/web, or as two words: deploy web.",
        show_default=False,
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
    """One release: the cluster, the object, who gives up fields, and who gets them."""

    cluster: Cluster
    place: Place
    live: Object
    managing: ManagingResource
    found: Release
    to: str


def release_command(
    target: Given = None,
    *,
    field: Fields = None,
    to: To = "",
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

    By hand: kubectl annotate KIND NAME 'hedgerow.dev/yield=Deployment/web: spec.replicas'

    With --all, the command gives up everything that an installation holds in children and status,
    in all namespaces or in that of -n. The installation must have stopped for good; with
    --controller, that controller must have stopped. Without --yes the command only shows what it
    would do. `hedgerow release --instance two --all` gives up what the instance `two` left behind;
    --instance '' means the installation without a name.
    """
    patience = duration("--wait", wait)
    if len(to) > LONGEST_MANAGER or not to.isprintable():
        raise typer.BadParameter(
            f"--to: a field manager has at most {LONGEST_MANAGER} printable characters"
        )
    if everything:
        if target or field or (to and drop) or (yes and dry_run):
            raise typer.BadParameter(
                "--all goes without KIND/NAME and --field, and with one of --to and --drop, one of"
                " --yes and --dry-run"
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
        _withdraw(order, output, kubeconfig, context)
        return
    if drop or yes or controller:
        raise typer.BadParameter("--drop, --yes and --controller go with --all")
    if not target:
        raise typer.BadParameter("name a KIND/NAME, such as deployment/web, or --all")
    parts = targets.parted(targets.joined(target))

    async def carry_out() -> None:
        async with connected(kubeconfig, context) as cluster:
            place = await targets.located(cluster, parts, namespace)
            task = await _planned(cluster, place, instance, tuple(field or ()), to)
            await _refuse_losses(task)
            await _try_out(task)
            lost = () if dry_run else await _carried_out(task, patience)
            _tell(task, output, dry_run=dry_run, lost=bool(lost))
            if lost:
                say("; ".join(["but a value has changed meanwhile", *map(transfers.told, lost)]))
                raise typer.Exit(Exit.FAILED)

    try:
        anyio.run(carry_out)
    except Refusal as refusal:
        say(str(refusal))
        raise typer.Exit(Exit.FAILED) from None


def _withdraw(order: Order, output: str, kubeconfig: str | None, context: str | None) -> None:
    async def carry_out() -> Exit:
        async with connected(kubeconfig, context) as cluster:
            return await withdraw(cluster, order, output)

    code = anyio.run(carry_out)
    if code is not Exit.DONE:
        raise typer.Exit(code)


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


async def _planned(
    cluster: Cluster, place: Place, instance: str | None, fields: tuple[str, ...], to: str
) -> _Task:
    live = await targets.read_exactly(cluster, place)
    managing = await targets.managing_resource(cluster, live, instance)
    if managing is None or managing.itself:
        raise Refusal(
            f"{place} is no child of a {program_name()} resource; only of those it holds fields"
        )
    if to == managing.manager:
        raise Refusal(f"{to} is the field manager that lets go; name another one with --to")
    found = release(live, managing.object, managing.manager, fields, to)
    return _Task(cluster, place, live, managing, found, to)


async def _refuse_losses(task: _Task) -> None:
    """Exit if fields would be lost, after printing what would happen to them."""
    sole = [move for move in task.found.moves if move.field_path in task.found.sole]
    if task.to or not sole:
        return
    body = given_up(task.live, task.managing.manager, task.found.sole) or {}
    try:
        with withholding(task.place.api):
            after = await task.cluster.apply(
                task.place.api, body, manager=task.managing.manager, dry_run=True
            )
        lines = list(map(transfers.told, changes(task.live, after.object, task.found.sole)))
        kept = "nobody would hold them, and the next write of somebody else may change them"
    except (Invalid, Stale) as error:
        lines, kept = [], f"the server would refuse it: {error}"
    say(
        f"{task.place}: nobody but {task.managing.manager} holds {transfers.counted(sole)} of these"
    )
    for line in lines or [kept]:
        echo(f"  {line}", err=True)
    say("name their new field manager with --to, or fewer fields with --field; nothing was changed")
    raise typer.Exit(Exit.CONFLICT)


async def _try_out(task: _Task) -> None:
    """Exit, before anything is yielded, if the new manager cannot hold the fields."""
    if not (task.to and task.found.sole):
        return
    try:
        await _guarded(task, task.to, coown=True, dry_run=True)
    except (Conflict, Forbidden, Invalid) as error:
        say(f"{printable(task.to)} cannot hold them: {error.message}; nothing was changed")
        raise typer.Exit(Exit.CONFLICT) from None


async def _carried_out(task: _Task, seconds: float) -> tuple[Change, ...]:
    """Yield, hand over, and wait until hedgerow gives up the fields; return changed values."""
    await _yield(task)
    if task.found.sole:
        await _handed_over(task)
    after = await _let_go(task, seconds) or await _guarded(task, task.managing.manager, coown=False)
    return changes(task.live, after, task.found.leaves)


async def _yield(task: _Task) -> None:
    if not task.found.field_policy:
        return
    managing = task.managing
    ours = metadata(managing.object)
    meta = {key: ours[key] for key in ("name", "namespace", "uid") if key in ours}
    body = {"metadata": {**meta, "annotations": {YIELD: task.found.field_policy}}}
    try:
        await task.cluster.apply(managing.api, body, manager=field_manager())
    except Conflict as conflict:
        holder = conflict.causes[0].manager
        place = f" -n {meta['namespace']}" if managing.api.namespaced else ""
        name = f"{managing.api.kind.lower()} {meta['name']}{place}"
        text = printable(task.found.field_policy)
        say(
            f"{managing.api.kind}/{meta['name']}: {YIELD} is held by {printable(holder)}; set it"
            f" there, or kubectl annotate --overwrite {name} '{YIELD}={text}', and release again;"
            " nothing was changed"
        )
        raise typer.Exit(Exit.CONFLICT) from None


async def _handed_over(task: _Task) -> None:
    """Make the new manager hold the fields; this may fail even though a dry run succeeded."""
    try:
        await _guarded(task, task.to, coown=True)
    except (Conflict, Forbidden, Invalid) as error:
        told = f"{_owner(task)} yields them already: take that out of its {YIELD} or release again"
        raise Refusal(f"{error}; {told}") from None


async def _guarded(task: _Task, manager: str, *, coown: bool, dry_run: bool = False) -> Object:
    """Apply what a manager will hold from now on, to exactly the version that was read."""
    for attempt in range(1, ATTEMPTS + 1):
        live = await _again(task)
        if coown:
            body = declaring(live, manager, task.found.sole)
        else:
            body = given_up(live, manager, task.found.leaves) or {}
        if not body:
            return live
        try:
            with withholding(task.place.api):
                answer = await task.cluster.apply(
                    task.place.api, body, manager=manager, dry_run=dry_run
                )
        except Stale:
            await _pause(attempt)
        else:
            return answer.object
    raise Refusal(f"{task.place} changes all the time; try again")


async def _let_go(task: _Task, seconds: float) -> Object | None:
    """Wait until the operator has given up the fields; return the object, None if it has not."""
    with anyio.move_on_after(seconds):
        attempt = 0
        while True:
            attempt += 1
            live = await _again(task)
            if not left_over(live, task.managing.manager, task.found.leaves):
                return live
            await _pause(attempt)
    return None


async def _again(task: _Task) -> Object:
    live = await targets.read_exactly(task.cluster, task.place)
    if metadata(live)["uid"] != metadata(task.live)["uid"]:
        raise Refusal(
            f"{task.place} was deleted and created again meanwhile; look at the new object"
        )
    return live


async def _pause(attempt: int) -> None:
    timing = RetryClock()
    await timing.sleep(min(LONGEST_PAUSE, backoff(attempt, timing.draw())))


def _owner(task: _Task) -> str:
    return f"{task.managing.api.kind}/{metadata(task.managing.object)['name']}"


def _tell(task: _Task, output: str, *, dry_run: bool, lost: bool) -> None:
    owner = _owner(task)
    if output == "json":
        field_policy = (
            {"resource": owner, "yield": task.found.field_policy} if task.found.field_policy else {}
        )
        echo_lines(transfers.listed(task.live, task.found.moves, dry_run=dry_run, **field_policy))
        return
    if task.found.moves:
        echo_lines(transfers.table(task.found.moves))
    if task.found.field_policy:
        verb = "would be annotated" if dry_run else "is annotated"
        echo(f"{owner} {verb} to yield: {printable(task.found.field_policy)}")
    if not dry_run:
        count = transfers.counted(task.found.moves)
        end = "" if lost else ", no value changed"
        echo(f"{task.place}: {task.managing.manager} let go of {count}{end}")
