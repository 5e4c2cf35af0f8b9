"""Release: `hedgerow release`, fields of children given up without a value changing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer
from pydantic import ValidationError

from hedgerow.cli.connecting import chosen_cluster, connected
from hedgerow.cli.options import Output, check_manager, field_option
from hedgerow.cli.program import field_manager, program_name, registry
from hedgerow.fields.managed_fields import all_holders, entries
from hedgerow.fields.paths import path_of
from hedgerow.kube.errors import Conflict
from hedgerow.objects import controller_of, metadata
from hedgerow.plan.yield_and_claim import YIELD
from hedgerow.settings import Settings
from hedgerow.texts import command_line, escaped, numbered, printable, within
from hedgerow_tools import interrupts
from hedgerow_tools.fields.giving_up import giving_up, release
from hedgerow_tools.fields.relabelling import APPLY, HolderName, Takeover, takeover
from hedgerow_tools.fields.transfers import MoveRefused
from hedgerow_tools.moving import report
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
from hedgerow_tools.moving.removing import remove_unowned
from hedgerow_tools.moving.withdraw import SHOWN, Order, show, withdraw
from hedgerow_tools.objects.managing import controller_of_owner, managing_resource
from hedgerow_tools.objects.selection import ChosenObjects, selecting
from hedgerow_tools.objects.writing import subject

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from hedgerow.cli.discovery import ServedKinds
    from hedgerow.contract import Controller
    from hedgerow.fields.sets import FieldPath
    from hedgerow.kube.cluster import Cluster
    from hedgerow.objects import ObjectRef
    from hedgerow_schemas.base import Object, Resource
    from hedgerow_tools.fields.giving_up import PlannedRelease
    from hedgerow_tools.fields.relabelling import FieldFate
    from hedgerow_tools.moving.bulk import Plan
    from hedgerow_tools.moving.outcomes import ObjectOutcome
    from hedgerow_tools.objects.managing import ManagingResource

Fields = Annotated[list[str] | None, field_option("Release")]
To = Annotated[
    str,
    typer.Option(
        metavar="MANAGER",
        help="The field manager that gets the fields that nobody else holds.",
        show_default="none",
    ),
]
OfNobody = Annotated[
    bool,
    typer.Option(
        "--unowned",
        help="Remove fields of an object that nobody holds, or make --to hold them.",
    ),
]
_OF_ALL = "Everything that an installation holds"
Instance = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Give up all that this installation holds; '' is the one without a name.",
        show_default=False,
        rich_help_panel=_OF_ALL,
    ),
]
Controllers = Annotated[
    list[str] | None,
    typer.Option(
        "--controller",
        metavar="NAME",
        help="Give up only what this controller of the installation holds; may be given several"
        " times.",
        show_default="all",
        rich_help_panel=_OF_ALL,
    ),
]
Drop = Annotated[
    bool,
    typer.Option(
        "--drop",
        help="Remove what nobody else holds, instead of keeping it.",
        rich_help_panel=_OF_ALL,
    ),
]


@selecting
def release_command(
    chosen: ChosenObjects,
    *,
    manager: From = "",
    field: Fields = None,
    to: To = "",
    unowned: OfNobody = False,
    save: Save = None,
    undo: Undo = None,
    yes: Yes = False,
    output: Output = "text",
    instance: Instance = None,
    controller: Controllers = None,
    drop: Drop = False,
) -> None:
    """Give fields up, or hand them over to another field manager; no value changes.

    The command shows what would move, and the API server checks it; with --yes it is done. A field
    that nobody else holds is kept (exit code 3), unless --to names a field manager that holds it
    from then on.

    A child of a hedgerow resource is released by its operator: first the resource is annotated to
    yield the fields (hedgerow.dev/yield); otherwise the operator would declare them again. Of any
    other object, --from names the field managers that give fields up.

    With --unowned, the command is about fields of any object that nobody holds, such as defaults
    and what is left of a manager that is gone: no apply removes them, not even a forced one. The
    command applies such a field with its value, unforced, and then leaves it out. With --to, the
    named manager holds it from then on: its next apply without the field removes it. That is the
    way for a default that must go together with another change, such as spec.strategy.rollingUpdate
    when a Deployment gets the type Recreate.

    With --instance, the command gives up everything that an installation holds in children and
    status, in all namespaces or in that of -n. The installation must have stopped for good; with
    --controller, that controller must have stopped.

    - `kubectl annotate bluegreen demo 'hedgerow.dev/yield=Deployment/web: spec.replicas'` yields a
      field by hand
    - `hedgerow release deploy/web --from kubectl-edit` gives up what others hold too
    - `hedgerow release --instance two` shows what the instance `two` left behind
    """
    check_manager("--to", to)
    named, fields = holder_names(manager), tuple(field or ())
    of_all = instance is not None or bool(controller)
    if (of_all or unowned) and (save or undo):
        raise typer.BadParameter("--save and --undo go without --instance and --unowned")
    if of_all:
        if chosen.given or chosen.all_namespaces or fields or unowned or named or (to and drop):
            raise typer.BadParameter(
                "--instance and --controller go without objects, --from, --field and --unowned, and"
                " with one of --to and --drop"
            )
        order = Order(
            _instance(instance or ""),
            _controllers(controller or ()),
            chosen_cluster().namespace or "",
            to,
            drop=drop,
            yes=yes,
            some=bool(controller),
        )
        interrupts.run(partial(_give_up, order, output))
        return
    if drop:
        raise typer.BadParameter("--drop goes with --instance")
    if undo:
        more = fields or to or unowned or named or save
        order = undoing(undo, chosen, yes=yes, output=output, others=more)
        carry_out(order)
        return
    chosen.check()
    if unowned:
        if len(chosen.names) != 1 or not fields or named:
            raise typer.BadParameter("--unowned: name one KIND/NAME, and its fields with --field")

        async def remove() -> None:
            async with connected() as cluster:
                target = await subject(cluster, chosen.names)
                report.show(await remove_unowned(target, fields, to, dry_run=not yes), output)

        interrupts.run(remove)
        return
    asked = Takeover(named, to) if named else None
    released = _Releases(fields, to, asked, yes)
    order = MoveOrder("release", chosen, released.plan, released.is_meant, released.notes, asked)
    carry_out(replace(order, save=save, yes=yes, output=output))


async def _give_up(order: Order, output: str) -> None:
    async with connected() as cluster:
        if code := await show(order, withdraw(cluster, order), output):
            raise typer.Exit(code)


def _instance(name: str) -> str:
    """Return the validated instance name; raises BadParameter."""
    try:
        return Settings(instance=name).instance
    except ValidationError:
        raise typer.BadParameter(f"--instance: {name!r} is no instance's name") from None


def _controllers(names: Iterable[str]) -> tuple[Controller[Resource], ...]:
    known = registry()
    if problem := known.unknown(names):
        raise typer.BadParameter(problem)
    return known.chosen(names or known.names)


@dataclass(frozen=True, slots=True)
class _Releases:
    """Releases of fields; `fields` are paths as in `yield`, none of them means all.

    Those that lose them are `asked` for; otherwise it is the controller that manages the object.
    """

    fields: tuple[str, ...]
    to: str
    asked: Takeover | None
    yes: bool

    def is_meant(self, _: ServedKinds, live: Object) -> bool:
        """Return whether an object has a named holder, or without one a resource of ours."""
        if self.asked:
            return any(self.asked.takes(holder, tree) for holder, _, tree in entries(live))
        return controller_of_owner(controller_of(live)) is not None

    def plan(self, cluster: Cluster, served: ServedKinds) -> Plan:
        """Return the plan of each object."""

        async def planned(_: ObjectRef, live: Object) -> PlannedChange:
            if asked := self.asked:
                return self._planned(live, giving_up(live, asked, self.fields), asked, served)
            managing = await managing_resource(cluster, live)
            if managing is None or managing.itself:
                names = ", ".join(dict.fromkeys(h.manager for h in all_holders(live))) or "nobody"
                raise MoveRefused(
                    f"no {program_name()} resource controls it; name with --from who gives fields"
                    f" up: {names}"
                )
            manager, resource = managing.manager, managing.object
            if self.to == manager:
                raise MoveRefused(f"{manager} lets go of the fields; name another one with --to")
            given_up = release(live, resource, manager, self.fields)
            name = HolderName(manager, APPLY, "")
            change = self._planned(live, given_up, Takeover(frozenset({name}), self.to), served)
            if change.fate == "kept" or not given_up.field_policy:
                return change
            first = partial(_yield, cluster, managing, given_up.field_policy)
            return replace(
                change,
                first=first,
                why="",
                resource=_name(managing),
                yielded=given_up.field_policy,
            )

        return planned

    def _planned(
        self, live: Object, given_up: PlannedRelease, asked: Takeover, served: ServedKinds
    ) -> PlannedChange:
        if given_up.sole and not self.to:
            return PlannedChange(fate="kept", why=_kept(asked.managers, given_up.sole))
        change = takeover(live, asked, served.versions, _sorting(given_up))
        why = "" if change else given_up.why or others(live, asked, self.fields)
        return PlannedChange(change, self.to, why)

    def notes(self, changed: Sequence[ObjectOutcome]) -> Iterator[str]:
        """Yield what resources are annotated with."""
        verb = "is" if self.yes else "would be"
        for outcome in (outcome for outcome in changed if outcome.yielded):
            yield f"{outcome.resource} {verb} annotated to yield: {printable(outcome.yielded)}"


def _sorting(given_up: PlannedRelease) -> Callable[[FieldPath], FieldFate]:
    sole, released = frozenset(given_up.sole), frozenset(given_up.leaves)

    def where(field_path: FieldPath) -> FieldFate:
        if field_path in sole:
            return "moved"
        return "let go" if field_path in released else "kept"

    return where


def _kept(losing: Iterable[str], sole: Sequence[FieldPath]) -> str:
    paths = [path_of(field_path) for field_path in sole]
    more = f" and {len(paths) - SHOWN} more" if len(paths) > SHOWN else ""
    return (
        f"nobody but {', '.join(sorted(losing))} holds {numbered(len(paths), 'field')} of these,"
        f" {', '.join(paths[:SHOWN])}{more}: name their new field manager with --to, or fewer"
        " fields with --field"
    )


def _name(managing: ManagingResource) -> str:
    return f"{managing.api.kind}/{metadata(managing.object)['name']}"


async def _yield(
    cluster: Cluster, managing: ManagingResource, field_policy: str, *, dry_run: bool
) -> str:
    """Have a resource yield fields; return who is in the way, and what to do then.

    It has to be the version that was read, whose annotation `field_policy` contains.
    """
    ours, named = metadata(managing.object), ("name", "namespace", "uid", "resourceVersion")
    meta = {key: ours[key] for key in named if key in ours}
    body = {"metadata": {**meta, "annotations": {YIELD: field_policy}}}
    try:
        await cluster.apply(managing.api, body, manager=field_manager(), dry_run=dry_run)
    except Conflict as conflict:
        holder = conflict.causes[0].manager
        target = (f"{managing.api.plural}.{managing.api.group}".rstrip("."), meta["name"])
        words = (*target, f"{YIELD}={field_policy}", *within(meta.get("namespace", "")))
        command = escaped(command_line("kubectl", "annotate", "--overwrite", *words))
        return (
            f"{_name(managing)}: {YIELD} is held by {holder}; set it there, or `{command}`, and"
            " release again"
        )
    return ""
