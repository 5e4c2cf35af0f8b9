"""Adopt: `hedgerow adopt KIND/NAME --from MANAGER`, fields moved over from another manager."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

import anyio
import typer

from hedgerow.cli import targets
from hedgerow.cli.connecting import Context, Kubeconfig, connected
from hedgerow.cli.exits import CommandError, Exit
from hedgerow.cli.options import DryRun, Given, Instance, Namespace, Output
from hedgerow.cli.output import echo, echo_data, echo_lines
from hedgerow.cli.owners.selection import contested_in
from hedgerow.cli.program import field_manager, program_name
from hedgerow.cli.transfers import report
from hedgerow.cli.transfers.adoption import Adoption, AdoptRequest, NewManager, adopt, left_over
from hedgerow.cli.transfers.writing import ATTEMPTS, Subject, subject, until_settled
from hedgerow.fields.managed import managers
from hedgerow.fields.ownership import BEFORE_FIRST_APPLY
from hedgerow.kube.errors import Conflict
from hedgerow.kube.withholding import withholding
from hedgerow.objects import ObjectRef, identity, metadata
from hedgerow.plan.transfers import MoveRefused, changes
from hedgerow.runtime.clock import SystemClock
from hedgerow.texts import printable

if TYPE_CHECKING:
    from hedgerow_schemas.base import Object

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


@dataclass(frozen=True, slots=True)
class _Task:
    """One adoption: the object, what is wanted, and the new manager."""

    subject: Subject
    asked: AdoptRequest
    target: NewManager


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
    asked = AdoptRequest(manager, operation, subresource, tuple(field or ()))

    async def carry_out() -> None:
        async with connected(kubeconfig, context) as cluster:
            found = await subject(cluster, target, namespace)
            task = _Task(found, asked, await _target(found, instance, to))
            with withholding(found.place.api):
                plan = await _planned(task, found.live) if dry_run else await _carried_out(task)
            if output == "json":
                echo_data(report.listed(found.live, plan.moves, dry_run=dry_run))
                return
            echo_lines(report.table(plan.moves))
            for line in _notes(task, plan, dry_run=dry_run):
                echo(line)

    anyio.run(carry_out)


async def _target(found: Subject, instance: str | None, to: str) -> NewManager:
    """Return who gets the fields: the named manager, or the controller and what it contests."""
    if to:
        return NewManager(to)
    managing = await targets.managing_resource(found.cluster, found.live, instance)
    if managing is None:
        raise MoveRefused(
            f"no {program_name()} resource controls {found.place}; name its new field manager with"
            " --to"
        )
    if managing.itself:
        return NewManager(managing.manager, only="status")
    return NewManager(managing.manager, frozenset(contested_in(found.live, managing.object)))


async def _planned(task: _Task, live: Object) -> Adoption:
    """Return what to do; for an object without managed fields, after the server's first entry."""
    if not managers(live) and task.asked.manager == BEFORE_FIRST_APPLY.manager:
        place, meta = task.subject.place, metadata(live)
        ref = ObjectRef(place.api, place.namespace, place.name, meta["uid"])
        answer = await task.subject.apply(identity(ref), task.target.manager, dry_run=True)
        entries: list[Object] = metadata(answer).get("managedFields") or []
        live = {**live, "metadata": {**meta, "managedFields": entries}}
    return adopt(live, task.asked, task.target)


async def _carried_out(task: _Task) -> Adoption:
    """Carry the adoption out; return the plan of the first attempt."""
    plans: list[Adoption] = []

    async def attempt(number: int) -> Object:
        now = task.subject.live if number == 1 else await task.subject.again()
        plans.append(await _planned(task, now))
        # A controller gives up fields that it sees contested or does not declare. So the last
        # attempt skips co-owning.
        coown = number < ATTEMPTS or not task.target.is_controller
        return await _attempted(task, now, plans[-1], coown=coown)

    live = await until_settled(task.subject.place, attempt)

    async def pick_up(number: int) -> None:
        """Make the controller hold what nobody holds now, so that it can remove it."""
        now = live if number == 1 else await task.subject.again()
        for endpoint, body in left_over(now, plans[-1], task.target).items():
            await _applied(task, body, endpoint)

    if task.target.only:
        # A controller declares a child's fields again by itself, but a status may have more fields.
        await until_settled(task.subject.place, pick_up)
    return plans[0]


async def _attempted(task: _Task, live: Object, plan: Adoption, *, coown: bool) -> Object:
    """Make the target hold the fields too, then remove the other manager's entries."""
    now = live
    for endpoint in plan.applies if coown else ():
        now = await _coowned(task, now, endpoint)
    after = adopt(now, task.asked, task.target) if now is not live else plan
    time = f"{SystemClock().now():%Y-%m-%dT%H:%M:%SZ}"
    dated = dict.fromkeys(_undated(now, task.target.manager) - after.edits.keys(), time)
    return await task.subject.cluster.replace_managed_fields(
        task.subject.place.api, now, after.edits, manager=field_manager(), dated=dated
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
        told = "; ".join(map(report.told, lost))
        raise MoveRefused(
            f"admission changed values that were applied unchanged, so adoption stops: {told}"
        )
    return now


async def _applied(task: _Task, body: Object, endpoint: str) -> Object:
    try:
        return await task.subject.apply(body, task.target.manager, subresource=endpoint)
    except Conflict as conflict:
        raise CommandError(
            f"{conflict}; fields adopted so far stay adopted, no value was changed", Exit.CONFLICT
        ) from None


def _notes(task: _Task, plan: Adoption, *, dry_run: bool) -> list[str]:
    count, manager = report.counted(plan.moves), printable(task.asked.manager)
    done = ("would move", "would change") if dry_run else ("moved", "changed")
    notes = [f"{task.subject.place}: {count} {done[0]} from {manager}, no value {done[1]}"]
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
