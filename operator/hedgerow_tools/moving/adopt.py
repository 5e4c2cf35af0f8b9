"""Adopt: `hedgerow adopt KIND/NAME --from MANAGER`, fields moved over from another manager."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import anyio
import typer
from msgspec import structs

from hedgerow.cli import targets
from hedgerow.cli.candidates import objects
from hedgerow.cli.connecting import Context, Kubeconfig, connected
from hedgerow.cli.exits import CommandError, Exit
from hedgerow.cli.options import (
    AllNamespaces,
    DryRun,
    Files,
    Instance,
    Namespace,
    Output,
    Selector,
    check_manager,
    field_option,
    kustomize_option,
)
from hedgerow.cli.program import field_manager, program_name, typed
from hedgerow.cli.targets import joined
from hedgerow.fields.managed_fields import managers
from hedgerow.fields.ownership import BEFORE_FIRST_APPLY
from hedgerow.kube.discovery import group_versions
from hedgerow.kube.errors import Conflict
from hedgerow.kube.withholding import withholding
from hedgerow.objects import identity, metadata, renamed
from hedgerow.runtime.clock import SystemClock
from hedgerow.texts import numbered, printable
from hedgerow_tools.fields.adoption import Adoption, AdoptRequest, NewManager, adopt, left_over
from hedgerow_tools.fields.relabelling import CLIENT_SIDE, KUBECTL, Takeover, refusal
from hedgerow_tools.fields.selection import contested_in
from hedgerow_tools.moving import report
from hedgerow_tools.moving.adopt_many import CLIENT_SIDE_LATER, AdoptOrder, Objects
from hedgerow_tools.moving.adopt_many import carry_out as carry_out_order
from hedgerow_tools.moving.transfers import MoveRefused, changes
from hedgerow_tools.moving.writing import ATTEMPTS, Subject, keep_copy, subject, until_settled

if TYPE_CHECKING:
    from hedgerow_schemas.base import Object

_OF_MANY = "Many objects"

Target = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[KIND/NAME]...",
        autocompletion=objects,
        help="The object, its kind as kubectl takes it: deploy/web, bluegreen/demo; or as two"
        " words: deploy web. Several with --repair, or with several managers.",
        show_default=False,
    ),
]
From = Annotated[
    str,
    typer.Option(
        "--from",
        metavar="MANAGER,…",
        help="The field manager whose fields are adopted, as `hedgerow owners` names it; of many"
        " objects several, with commas.",
        show_default=False,
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
Fields = Annotated[list[str] | None, field_option("Adopt")]
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
Kustomize = Annotated[str | None, kustomize_option("the objects of its manifests", _OF_MANY)]
Everything = Annotated[
    bool,
    typer.Option("--all", help="All objects of the namespace.", rich_help_panel=_OF_MANY),
]
Repair = Annotated[
    bool,
    typer.Option(
        "--repair",
        help="Relabel managed fields of API versions that the server no longer has, which block"
        " every apply; who holds them stays.",
        rich_help_panel=_OF_MANY,
    ),
]
Save = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Record in this file what --undo needs, before each write; only you may read it.",
        show_default=False,
        rich_help_panel=_OF_MANY,
    ),
]
Undo = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Give back what is recorded in this file, where no manager of it wrote since.",
        show_default=False,
        rich_help_panel=_OF_MANY,
    ),
]
Yes = Annotated[
    bool, typer.Option("--yes", help="Do it, instead of showing it.", rich_help_panel=_OF_MANY)
]


NOTHING = Takeover(frozenset(), "")


@dataclass(frozen=True, slots=True)
class _Task:
    """One adoption: the object, what is wanted, and the new manager."""

    subject: Subject
    asked: AdoptRequest
    target: NewManager


def adopt_command(
    target: Target = None,
    *,
    manager: From = "",
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
    filename: Files = None,
    kustomize: Kustomize = None,
    selector: Selector = None,
    everything: Everything = False,
    all_namespaces: AllNamespaces = False,
    repair: Repair = False,
    save: Save = None,
    undo: Undo = None,
    yes: Yes = False,
) -> None:
    """Move fields from other field managers to one; no value changes.

    For a child of a hedgerow resource, the controller gets the fields that it declares. Nobody
    holds the other fields after that; they keep their values. For the status of a resource, the
    controller gets all fields. The running operator then applies what it declares without a
    conflict, and removes status fields that it does not declare. With --to, the named field manager
    gets all fields.

    The command uses your rights; the operator never does this. After the fields have their new
    holder, the command removes the entries of the other manager from metadata.managedFields, which
    an apply cannot do.

    Many objects of any kind, such as those of a release that goes from client-side apply or Helm 3
    to server-side apply, are shown first and written with --yes. So is one object that kubectl
    gets, with `--to kubectl`.

    - `hedgerow adopt -f release.yaml --from kubectl-client-side-apply --to helm`
    - `hedgerow adopt -l app=web --from Helm --to helm --yes --save undo.json`
    - `hedgerow adopt -k overlays/prod --from kustomize-controller --to argocd-controller --yes`
    - `hedgerow adopt --undo undo.json --yes`
    - `hedgerow adopt --repair --all -n shop`

    After that, an apply of the same manifests as the new manager meets no conflict with the former
    ones, and removes what the manifests leave out later. Other names of client-side apply and of
    Helm 3 are adopted too. Status fields stay with their writer. Run it again after an
    interruption: what is adopted is left alone.
    """
    check_manager("--to", to)
    words = target or ()
    managers = [name.strip() for name in manager.split(",") if name.strip()]
    named = words if all("/" in word for word in words) else (joined(words),)
    meant = Objects(
        tuple(named), tuple(filename or ()), kustomize, selector, everything, namespace,
        all_namespaces,
    )  # fmt: skip
    is_many = len(managers) > 1 or len(named) > 1 or meant.given > bool(named)
    # Many are relabelled without an apply, which as kubectl would replace client-side apply's copy.
    is_many = is_many or (to == KUBECTL and not field and instance is None)
    if undo or repair or save or yes or all_namespaces or is_many:
        if field or instance is not None:
            raise typer.BadParameter("--field and --instance go with one KIND/NAME, without --yes")
        asked = Takeover(frozenset(managers), to, operation, subresource)
        order = _order(meant, asked, repair=repair, undo=undo, save=save)
        order = replace(order, yes=yes, dry_run=dry_run, output=output)
        carry_out_order(order, kubeconfig, context)
        return
    if not words or not manager:
        raise typer.BadParameter(
            "name a KIND/NAME, such as deployment/web, and with --from the manager whose fields are"
            " adopted; for many objects see --help"
        )
    request = AdoptRequest(manager, operation, subresource, tuple(field or ()))

    async def carry_out() -> None:
        async with connected(kubeconfig, context) as cluster:
            found = await subject(cluster, words, namespace)
            done = await _adopted(found, request, instance, to, dry_run=dry_run)
            report.show(done, output)

    anyio.run(carry_out)


def _order(
    meant: Objects, asked: Takeover, *, repair: bool, undo: Path | None, save: Path | None
) -> AdoptOrder:
    """Return what is to be done for the objects that are meant; raises BadParameter."""
    if undo:
        if replace(meant, namespace=None) != Objects() or asked != NOTHING or repair or save:
            raise typer.BadParameter("--undo goes with --yes, --dry-run and --output alone")
        return AdoptOrder("undo", meant, undone=undo)
    if meant.given != 1:
        raise typer.BadParameter("name the objects in one way: KIND/NAME, -f, -k, -l or --all")
    if meant.all_namespaces and (meant.namespace or not (meant.everything or meant.is_labelled)):
        raise typer.BadParameter("--all-namespaces goes with -l or --all, and without --namespace")
    if repair:
        if asked != NOTHING:
            raise typer.BadParameter(
                "--repair goes without --from and --to: who holds fields stays"
            )
        return AdoptOrder("repair", meant, save=save)
    if not asked.managers or not asked.to:
        raise typer.BadParameter("--from and --to name the managers of many objects")
    return AdoptOrder("adopt", meant, asked, save=save)


async def _adopted(
    found: Subject, request: AdoptRequest, instance: str | None, to: str, *, dry_run: bool
) -> report.Transfer:
    """Adopt fields of one object; raises CommandError, MoveRefused and KubeError."""
    if why := refusal(found.live, await group_versions(found.cluster)):
        told = renamed(why, program_name(), typed())
        raise MoveRefused(f"{found.ref}: {told} {found.ref}")
    keep_copy(found.live, to, "without --field and --instance, no apply is needed")
    task = _Task(found, request, await _target(found, instance, to))
    with withholding(found.ref.api):
        plan = await _planned(task, found.live) if dry_run else await _carried_out(task)
    return report.Transfer(found.live, plan.moves, _notes(task, plan, dry_run=dry_run), dry_run)


async def _target(found: Subject, instance: str | None, to: str) -> NewManager:
    """Return who gets the fields: the named manager, or the controller and what it contests."""
    if to:
        return NewManager(to)
    managing = await targets.managing_resource(found.cluster, found.live, instance)
    if managing is None:
        raise MoveRefused(
            f"no {program_name()} resource controls {found.ref}; name its new field manager with"
            " --to"
        )
    if managing.itself:
        return NewManager(managing.manager, only="status")
    return NewManager(managing.manager, frozenset(contested_in(found.live, managing.object)))


async def _planned(task: _Task, live: Object) -> Adoption:
    """Return what to do; for an object without managed fields, after the server's first entry."""
    if not managers(live) and task.asked.manager == BEFORE_FIRST_APPLY.manager:
        ref = structs.replace(task.subject.ref, uid=metadata(live)["uid"])
        answer = await task.subject.apply(identity(ref), task.target.manager, dry_run=True)
        entries: list[Object] = metadata(answer).get("managedFields") or []
        live = {**live, "metadata": {**metadata(live), "managedFields": entries}}
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

    live = await until_settled(task.subject.ref, attempt)

    async def pick_up(number: int) -> None:
        """Make the controller hold what nobody holds now, so that it can remove it."""
        now = live if number == 1 else await task.subject.again()
        for endpoint, body in left_over(now, plans[-1], task.target).items():
            await _applied(task, body, endpoint)

    if task.target.only:
        # A controller declares a child's fields again by itself, but a status may have more fields.
        await until_settled(task.subject.ref, pick_up)
    return plans[0]


async def _attempted(task: _Task, live: Object, plan: Adoption, *, coown: bool) -> Object:
    """Make the target hold the fields too, then remove the other manager's entries."""
    now = live
    for endpoint in plan.applies if coown else ():
        now = await _coowned(task, now, endpoint)
    after = adopt(now, task.asked, task.target) if now is not live else plan
    entries: list[Object] = metadata(now).get("managedFields") or []
    edits = {
        index: ({**entries[index], "fieldsV1": tree},) if tree else ()
        for index, tree in after.edits.items()
    }
    time = f"{SystemClock().now():%Y-%m-%dT%H:%M:%SZ}"
    for index in _undated(now, task.target.manager) - edits.keys():
        edits[index] = ({**entries[index], "time": time},)
    return await task.subject.cluster.replace_managed_fields(
        task.subject.ref.api, now, edits, manager=field_manager()
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
    count, manager = numbered(len(plan.moves), "field"), printable(task.asked.manager)
    done = ("would move", "would change") if dry_run else ("moved", "changed")
    notes = [f"{task.subject.ref}: {count} {done[0]} from {manager}, no value {done[1]}"]
    if any(move.fate == "unowned" for move in plan.moves):
        notes.append("What nobody holds stays as it is until somebody applies it.")
    if task.target.is_controller:
        notes.append(
            f"{task.target.manager} applies what it declares there, without a conflict, as soon as"
            " the operator runs."
        )
    if task.asked.manager == CLIENT_SIDE:
        notes.append(CLIENT_SIDE_LATER)
    return notes
