"""Adopt: `hedgerow adopt KIND/NAME --from MANAGER`, fields moved over from another manager."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

import anyio
import typer

from hedgerow.cli import targets, transfers
from hedgerow.cli.adopt.plan import Adoption, AdoptRequest, Target, adopt, left_over
from hedgerow.cli.connecting import Context, Kubeconfig, connected
from hedgerow.cli.exits import Exit
from hedgerow.cli.output import echo, echo_lines
from hedgerow.cli.owners.selection import contested_in
from hedgerow.cli.program import field_manager, program_name
from hedgerow.cli.targets import Given, Instance, Namespace, Place, say
from hedgerow.fields.managed import managers
from hedgerow.fields.ownership import BEFORE_FIRST_APPLY
from hedgerow.kube.errors import Conflict, Stale
from hedgerow.kube.retry import RetryClock, backoff
from hedgerow.kube.withholding import withholding
from hedgerow.objects import ObjectRef, identity, metadata
from hedgerow.plan.transfers import Refusal, changes
from hedgerow.runtime.clock import SystemClock
from hedgerow.texts import printable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from hedgerow.kube.cluster import Cluster
    from hedgerow_schemas.base import Object

T = TypeVar("T")

ATTEMPTS = 4
"""The most attempts if the object has just changed."""
CLIENT_SIDE = "kubectl-client-side-apply"

From = Annotated[
    str,
    typer.Option(
        "--from",
        metavar="MANAGER",
        help="The field manager whose fields are adopted, as `hedgerow owners` names it.",
    ),
]
To = Annotated[
    str,
    typer.Option(
        metavar="MANAGER",
        help="The field manager that gets all these fields.",
        show_default="the controller's, which takes what it declares",
    ),
]
Fields = Annotated[
    list[str] | None,
    typer.Option(
        "--field",
        metavar="PATH",
        help="Adopt this field only, as `yield` writes it: spec.replicas, or 'spec.template.**'"
        " for all below; may be given several times.",
        show_default="all",
    ),
]
Operation = Annotated[
    Literal["Update", "Apply"] | None,
    typer.Option(
        help="Adopt only fields that were written with this operation.", show_default="both"
    ),
]
Subresource = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Adopt only fields that were written through this subresource: status, scale, or ''"
        " for none.",
        show_default="any",
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be done, and stop.")]
Output = Annotated[
    Literal["text", "json"], typer.Option("--output", "-o", help="The output format.")
]


@dataclass(frozen=True, slots=True)
class _Task:
    """One adoption: the cluster, the object, what is wanted, and the new manager."""

    cluster: Cluster
    place: Place
    asked: AdoptRequest
    target: Target


def adopt_command(
    target: Given,
    *,
    manager: From,
    to: To = "",
    field: Fields = None,
    operation: Operation = None,
    subresource: Subresource = None,
    dry_run: DryRun = False,
    output: Output = "text",
    namespace: Namespace = None,
    instance: Instance = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Move fields from another field manager to the controller; no value changes.

    For a child of a hedgerow resource, the controller gets the fields that it declares. Nobody
    holds the other fields after that; they keep their values. For the status of a resource, the
    controller gets all fields. The running operator then applies what it declares without a
    conflict, and removes status fields that it does not declare. With --to, the named field manager
    gets all fields.

    The command uses your rights; the operator never does this. After the fields have their new
    holder, the command removes the entries of the other manager from metadata.managedFields, which
    an apply cannot do.
    """
    parts = targets.parted(targets.joined(target))
    asked = AdoptRequest(manager, operation, subresource, tuple(field or ()))

    async def carry_out() -> None:
        async with connected(kubeconfig, context) as cluster:
            place = await targets.located(cluster, parts, namespace)
            live = await targets.read_exactly(cluster, place)
            task = _Task(cluster, place, asked, await _target(cluster, live, instance, to))
            with withholding(place.api):
                plan = await _planned(task, live) if dry_run else await _carried_out(task, live)
            _tell(task, live, plan, output, dry_run=dry_run)

    try:
        anyio.run(carry_out)
    except Refusal as refusal:
        say(str(refusal))
        raise typer.Exit(Exit.FAILED) from None


async def _target(cluster: Cluster, live: Object, instance: str | None, to: str) -> Target:
    """Return who gets the fields: the named manager, or the controller and what it contests."""
    if to:
        return Target(to)
    managing = await targets.managing_resource(cluster, live, instance)
    if managing is None:
        named = f"{live['kind']}/{metadata(live)['name']}"
        raise Refusal(
            f"no {program_name()} resource controls {named}; name its new field manager with --to"
        )
    if managing.itself:
        return Target(managing.manager, only="status")
    return Target(managing.manager, frozenset(contested_in(live, managing.object)))


async def _planned(task: _Task, live: Object) -> Adoption:
    """Return what to do; for an object without managed fields, after the server's first entry."""
    if not managers(live) and task.asked.manager == BEFORE_FIRST_APPLY.manager:
        live = await _booked(task, live)
    return adopt(live, task.asked, task.target)


async def _booked(task: _Task, live: Object) -> Object:
    meta = metadata(live)
    ref = ObjectRef(task.place.api, task.place.namespace, task.place.name, meta["uid"])
    answer = await task.cluster.apply(
        task.place.api, identity(ref), manager=task.target.manager, dry_run=True
    )
    entries: list[Object] = metadata(answer.object).get("managedFields") or []
    return {**live, "metadata": {**meta, "managedFields": entries}}


async def _carried_out(task: _Task, live: Object) -> Adoption:
    """Carry the adoption out; return the plan of the first attempt."""
    found: list[Adoption] = []

    async def attempt(live: Object, number: int) -> Object:
        found.append(await _planned(task, live))
        # A controller gives up fields that it sees contested or does not declare. So the last
        # attempt skips co-owning.
        coown = number < ATTEMPTS or not task.target.is_controller
        return await _attempted(task, live, found[-1], coown=coown)

    async def pick_up(live: Object, _: int) -> None:
        """Make the controller hold what nobody holds now, so that it can remove it."""
        for endpoint, body in left_over(live, found[-1], task.target).items():
            await _applied(task, body, endpoint)

    live = await _anew(task, live, attempt)
    if task.target.only:
        # A controller declares a child's fields again by itself, but a status may have more fields.
        await _anew(task, live, pick_up)
    return found[0]


async def _anew(task: _Task, live: Object, act: Callable[[Object, int], Awaitable[T]]) -> T:
    """Return what `act` returns for the current object; try again if it changes meanwhile."""
    uid = metadata(live)["uid"]
    for number in range(1, ATTEMPTS + 1):
        try:
            return await act(live, number)
        except Stale:
            timing = RetryClock()
            await timing.sleep(backoff(number, timing.draw()))
        live = await targets.read_exactly(task.cluster, task.place)
        if metadata(live)["uid"] != uid:
            raise Refusal(
                f"{task.place} was deleted and created again meanwhile; look at the new object"
            )
    raise Refusal(f"{task.place} changes all the time; try again")


async def _attempted(task: _Task, live: Object, plan: Adoption, *, coown: bool) -> Object:
    """Make the target hold the fields too, then remove the other manager's entries."""
    now = live
    for endpoint in plan.applies if coown else ():
        now = await _coowned(task, now, endpoint)
    after = adopt(now, task.asked, task.target) if now is not live else plan
    time = f"{SystemClock().now():%Y-%m-%dT%H:%M:%SZ}"
    dated = dict.fromkeys(_undated(now, task.target.manager) - after.edits.keys(), time)
    return await task.cluster.replace_managed_fields(
        task.place.api, now, after.edits, manager=field_manager(), dated=dated
    )


def _undated(live: Object, manager: str) -> set[int]:
    """Return the entries of a manager's applies that changed no value: the server dates none."""
    found: list[Object] = metadata(live).get("managedFields") or []
    return {
        index
        for index, entry in enumerate(found)
        if (entry.get("manager"), entry.get("operation")) == (manager, "Apply")
        if "time" not in entry
    }


async def _coowned(task: _Task, live: Object, endpoint: str) -> Object:
    now = await _applied(task, (await _planned(task, live)).applies[endpoint], endpoint)
    places = [move.field_path for move in adopt(now, task.asked, task.target).moves]
    lost = changes(live, now, places)
    if lost:
        told = "; ".join(map(transfers.told, lost))
        raise Refusal(
            f"admission changed values that were applied unchanged, so adoption stops: {told}"
        )
    return now


async def _applied(task: _Task, body: Object, endpoint: str) -> Object:
    try:
        answer = await task.cluster.apply(
            task.place.api, body, manager=task.target.manager, subresource=endpoint
        )
    except Conflict as conflict:
        say(f"{conflict}; fields adopted so far stay adopted, no value was changed")
        raise typer.Exit(Exit.CONFLICT) from None
    return answer.object


def _tell(task: _Task, live: Object, plan: Adoption, output: str, *, dry_run: bool) -> None:
    if output == "json":
        echo_lines(transfers.listed(live, plan.moves, dry_run=dry_run))
        return
    echo_lines(transfers.table(plan.moves))
    for line in _notes(task, plan, dry_run=dry_run):
        echo(line)


def _notes(task: _Task, plan: Adoption, *, dry_run: bool) -> list[str]:
    count, manager = transfers.counted(plan.moves), printable(task.asked.manager)
    done = ("would move", "would change") if dry_run else ("moved", "changed")
    notes = [f"{task.place}: {count} {done[0]} from {manager}, no value {done[1]}"]
    if any(move.fate == "unowned" for move in plan.moves):
        notes.append("What nobody holds stays as it is until somebody applies it.")
    if task.target.is_controller:
        notes.append(
            f"{task.target.manager} applies what it declares there, without a conflict, as soon as"
            " the operator runs."
        )
    if task.asked.manager == CLIENT_SIDE:
        notes.append(
            "A later `kubectl apply` without --server-side takes its fields back without asking and"
            " removes what its file no longer has: change to `kubectl apply --server-side`."
        )
    return notes
