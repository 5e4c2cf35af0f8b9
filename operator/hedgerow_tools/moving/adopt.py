"""Adopt: `hedgerow adopt`, fields moved over from other managers, and their records repaired."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer

from hedgerow.cli.options import Output, check_manager, field_option
from hedgerow.cli.program import program_name
from hedgerow.fields.managed_fields import entries
from hedgerow.objects import metadata
from hedgerow.texts import printable
from hedgerow_tools.fields.relabelling import (
    BEFORE_FIRST_APPLY,
    CLIENT_SIDE,
    KUBECTL,
    LAST_APPLIED,
    STATUS,
    Takeover,
    moves,
    repair,
    takeover,
)
from hedgerow_tools.fields.selection import contested_in
from hedgerow_tools.fields.sorting import sorting
from hedgerow_tools.fields.transfers import MoveRefused
from hedgerow_tools.fields.unserved import unserved
from hedgerow_tools.moving.bulk import PlannedChange
from hedgerow_tools.moving.orders import (
    From,
    MoveOrder,
    Save,
    Undo,
    Yes,
    carry_out,
    holder_names,
    others,
    undoing,
)
from hedgerow_tools.objects.managing import managing_resource
from hedgerow_tools.objects.selection import ChosenObjects, selecting

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hedgerow.cli.discovery import ServedKinds
    from hedgerow.kube.cluster import Cluster
    from hedgerow.objects import ObjectRef
    from hedgerow_schemas.base import Object
    from hedgerow_tools.moving.bulk import Plan
    from hedgerow_tools.moving.outcomes import ObjectOutcome

To = Annotated[
    str,
    typer.Option(
        metavar="MANAGER",
        help="The field manager that gets all these fields.",
        show_default="the controller's, which takes what it declares",
    ),
]
Fields = Annotated[list[str] | None, field_option("Adopt")]
Repair = Annotated[
    bool,
    typer.Option(
        "--repair",
        help="Relabel managed fields of API versions that the server no longer has, which block"
        " every apply; who holds them stays.",
    ),
]


@selecting
def adopt_command(
    chosen: ChosenObjects,
    *,
    manager: From = "",
    to: To = "",
    field: Fields = None,
    repair: Repair = False,
    save: Save = None,
    undo: Undo = None,
    yes: Yes = False,
    output: Output = "text",
) -> None:
    """Move fields from other field managers to one; no value changes.

    The command shows what would move, and the API server checks it; with --yes it is done. Each
    object is one write of metadata.managedFields, which an apply cannot do, with your rights; the
    operator never does this.

    - `hedgerow adopt deploy/web --from kubectl-client-side-apply --to helm`
    - `hedgerow adopt -l app=web --from Helm --to helm --yes --save undo.json`
    - `hedgerow adopt -k overlays/prod --from kustomize-controller --to argocd-controller --yes`
    - `hedgerow adopt --undo undo.json --yes`
    - `hedgerow adopt --repair --all -n shop`

    After that, an apply of the same manifests as the new manager meets no conflict with the former
    ones, and removes what the manifests leave out later. Other names of client-side apply and of
    Helm 3 are adopted too. Status fields stay with their writer, unless it is named with them:
    --from 'argo Update status'. An object that a controller made is adopted if it is named, or in a
    manifest. Run it again after an interruption: what is adopted is left alone.

    Without --to, a child of a hedgerow resource goes to its controller, which gets the fields that
    it declares. Nobody holds the other fields after that; they keep their values. Of a resource
    itself, the controller gets the status. The running operator then applies what it declares
    without a conflict, and removes status fields that it does not declare.
    """
    check_manager("--to", to)
    named = holder_names(manager)
    is_moved = bool(named or to or field)
    if undo:
        more = is_moved or repair or save
        order = undoing(undo, chosen, yes=yes, output=output, others=more)
        carry_out(order)
        return
    chosen.check()
    if repair and is_moved:
        raise typer.BadParameter("--repair goes without --from and --to: who holds fields stays")
    if not repair and not named:
        raise typer.BadParameter("name with --from the managers whose fields are adopted")
    asked = Takeover(named, to)
    adopted = _Adoptions(asked, tuple(field or ()))
    order = (
        MoveOrder("repair", chosen, _repairs, _is_unserved)
        if repair
        else MoveOrder("adopt", chosen, adopted.plan, adopted.is_meant, adopted.notes, asked)
    )
    carry_out(replace(order, save=save, yes=yes, output=output))


def _is_unserved(served: ServedKinds, live: Object) -> bool:
    return bool(unserved(metadata(live).get("managedFields") or [], served.versions))


def _repairs(_: Cluster, served: ServedKinds) -> Plan:
    async def plan(ref: ObjectRef, live: Object) -> PlannedChange:
        return PlannedChange(repair(live, ref.api.group_version, served.versions))

    return plan


@dataclass(frozen=True, slots=True)
class _Adoptions:
    """Adoptions of fields; `fields` are paths as in `yield`, none of them means all.

    Without a new manager in `asked` it is the controller that manages the object.
    """

    asked: Takeover
    fields: tuple[str, ...]

    def is_meant(self, _: ServedKinds, live: Object) -> bool:
        """Return whether an object has an entry that is adopted."""
        return any(self.asked.takes(holder, tree) for holder, _, tree in entries(live))

    def plan(self, cluster: Cluster, served: ServedKinds) -> Plan:
        """Return the plan of each object."""

        async def planned(_: ObjectRef, live: Object) -> PlannedChange:
            asked, declared = self.asked, None
            if not asked.to:
                asked, declared = await self._controller(cluster, live)
            where = sorting(self.fields, declared)
            change = takeover(live, asked, served.versions, where)
            if change is None:
                return PlannedChange(why=others(live, asked, self.fields))
            gotten = (move for move in moves(live, change) if asked.to in move.to)
            if declared is not None and next(gotten, None) is None:
                raise MoveRefused(
                    f"nothing of what {', '.join(sorted(asked.managers))} holds is declared by"
                    f" {asked.to}, as far as is known here: let the operator look at it first, or"
                    " name the manager that gets the fields with --to"
                )
            return PlannedChange(change, asked.to)

        return planned

    async def _controller(
        self, cluster: Cluster, live: Object
    ) -> tuple[Takeover, frozenset[str] | None]:
        """Return what the object's controller adopts, and of a child what it contests."""
        managing = await managing_resource(cluster, live)
        if managing is None:
            raise MoveRefused(
                f"no {program_name()} resource controls it; name its new field manager with --to"
            )
        asked = replace(self.asked, to=managing.manager)
        if not managing.itself:
            return asked, frozenset(contested_in(live, managing.object))
        if any(name.subresource not in (None, STATUS) for name in asked.named):
            raise MoveRefused(
                f"{managing.manager} declares nothing of it but its status; name the new field"
                " manager with --to"
            )
        named = frozenset(replace(name, subresource=STATUS) for name in asked.named)
        return replace(asked, named=named), None

    def notes(self, changed: Sequence[ObjectOutcome]) -> Iterator[str]:
        """Yield what people should know of objects whose fields were adopted."""
        names = {holder.manager for outcome in changed for holder in outcome.sources}
        if any(move.fate == "unowned" for outcome in changed for move in outcome.moves):
            yield "What nobody holds stays as it is until somebody applies it."
        if changed and not self.asked.to:
            managers = ", ".join(dict.fromkeys(printable(outcome.to) for outcome in changed))
            yield (
                f"{managers} applies what it declares there, without a conflict, as soon as the"
                " operator runs."
            )
        if BEFORE_FIRST_APPLY in names:
            yield (
                f"{BEFORE_FIRST_APPLY} is everybody who wrote before the first apply, with defaults"
                " and finalizers: what the manifests leave out, the next apply removes."
            )
        if CLIENT_SIDE in names:
            yield (
                "A later `kubectl apply` without --server-side takes its fields back without asking"
                " and removes what its file no longer has: change to `kubectl apply --server-side`."
            )
            if not self.fields and self.asked.to != KUBECTL:
                yield _of_copy(self.asked.to)


def _of_copy(to: str) -> str:
    """Return who holds client-side apply's copy of a manifest from then on."""
    if to:
        return f"{printable(to)} gets its annotation {LAST_APPLIED} too: its next apply removes it."
    return f"Nobody holds its annotation {LAST_APPLIED} then, which stays."
