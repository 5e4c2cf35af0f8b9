"""Windows: `hedgerow schedule explain deployment/web`, when its replicas change, and to what."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import typer
from rich.measure import Measurement
from rich.table import Table

from hedgerow.cli.exits import CommandError
from hedgerow.cli.program import program_name
from hedgerow.cli.targets import read
from hedgerow.contract import Observed
from hedgerow.controllers.scaler import controller as scaler
from hedgerow.controllers.scaler.windows import ASKED, AnnotationsError
from hedgerow.plan.installations import installation_of
from hedgerow.texts import printable
from hedgerow_schemas.base import View
from hedgerow_schemas.builtin import Deployment, HorizontalPodAutoscaler, StatefulSet
from hedgerow_tools.render.times import local, moment, utc
from hedgerow_tools.render.widths import ENDLESS, page_terminal

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime, tzinfo

    from rich.console import Console

    from hedgerow.controllers.scaler.controller import ScaledField
    from hedgerow.controllers.scaler.windows import WindowPhase
    from hedgerow.kube.cluster import Cluster
    from hedgerow.objects import ObjectRef
    from hedgerow_schemas.base import Object

WEEK: Final = timedelta(days=7)
MODELS: Final = {
    Deployment.api: (Deployment, scaler.ScaledDeployment),
    StatefulSet.api: (StatefulSet, scaler.ScaledStatefulSet),
}


@dataclass(frozen=True, slots=True)
class WindowsForecast:
    """The phases of an object, and the field that they are about.

    `former` is what the field is to have outside of windows, if no number is given for that.
    """

    object: str
    namespace: str
    zone: tzinfo
    target: ScaledField
    phases: tuple[WindowPhase, ...]
    more: bool
    former: int


async def explained(
    cluster: Cluster,
    ref: ObjectRef,
    now: datetime,
    span: tuple[str | None, str | None, int],
) -> WindowsForecast:
    """Return what becomes of an object; `span` is begin and end as typed, and the most phases.

    Raises BadParameter for an object of another kind, and exits if it has no windows.
    """
    if ref.api not in MODELS:
        there_are = " and ".join(f"{api.kind.lower()}/NAME" for api in MODELS)
        raise typer.BadParameter(
            f"{ref} has no schedule: cronjob/NAME has one, {there_are} may have windows"
        )
    kind, model = MODELS[ref.api]
    live = await read(cluster, ref)
    workload = model.model_validate(live)
    try:
        plan = scaler.planned(workload)
    except AnnotationsError as error:
        raise CommandError(f"{ref}: {printable(str(error))}") from None
    if plan is None:
        raise CommandError(f"{ref} has none of the annotations {', '.join(ASKED)}")
    target = await _target(cluster, kind, live, (ref.namespace, ref.name))
    since = moment("--from", span[0], plan.zone) if span[0] else now
    until = moment("--to", span[1], plan.zone) if span[1] else since + WEEK
    if until <= since:
        raise typer.BadParameter(f"--to: {until.isoformat()} is not after {since.isoformat()}")
    phases: list[WindowPhase] = []
    for phase in plan.phases(since, until):
        phases.append(phase)
        if len(phases) > span[2]:
            break
    record = target.record if target.ours else None
    former = record.replicas if record else target.value
    shown, more = tuple(phases[: span[2]]), len(phases) > span[2]
    return WindowsForecast(str(ref), ref.namespace, plan.zone, target, shown, more, former)


async def _target(
    cluster: Cluster, kind: type[View], live: Object, key: tuple[str, str]
) -> ScaledField:
    """Return the field that would be held: that of the one autoscaler, or of the object itself."""
    namespace, name = key
    found = await cluster.list(HorizontalPodAutoscaler.api, namespace)
    autoscalers = [HorizontalPodAutoscaler(obj) for obj in found.items]
    aimed = [one for one in autoscalers if scaler.scaled(one) == (kind.api.kind, name)]
    manager = installation_of(live, scaler.DEPLOYMENTS.name, program_name()).field_manager(
        scaler.DEPLOYMENTS.name
    )
    observed = Observed(
        now=scaler.NEVER, contributable=tuple(aimed), resource=View(live), field_manager=manager
    )
    own, targets = scaler.targets(kind, observed)
    if len(targets) > 1:
        names = ", ".join(one.id for one in targets)
        raise CommandError(
            f"{names} all target it: hedgerow scales nothing until only one of them does"
        )
    return targets[0] if targets else own


def as_data(found: WindowsForecast) -> dict[str, Any]:
    """Return an object for programs; times are RFC 3339."""
    return {
        "object": found.object,
        "namespace": found.namespace,
        "zone": str(found.zone),
        "sets": {"object": found.target.id, "field": f"spec.{found.target.field}"},
        "heldBy": list(found.target.others),
        "phases": [
            {
                "from": utc(phase.since),
                "to": utc(phase.until) if phase.until else None,
                "inForce": phase.in_force,
                "replicas": found.former if phase.replicas is None else phase.replicas,
                "former": phase.replicas is None,
            }
            for phase in found.phases
        ],
        "more": found.more,
    }


def show(found: WindowsForecast, now: datetime) -> None:
    """Print the phases as a table, with the field before it and who holds that."""
    console = page_terminal()
    target = found.target
    console.print(
        f"{found.object}: windows in {found.zone}, which set {_field(found)}", soft_wrap=True
    )
    if target.others:
        holders = ", ".join(map(printable, target.others))
        console.print(
            f"{_field(found)} is {target.value}, held by {holders}: another number is contested,"
            " and set only where hedgerow.dev/claim allows it",
            soft_wrap=True,
        )
    console.print(_table(found, now, console))
    if found.more:
        console.print("There are more: see --limit.", soft_wrap=True)
    elif found.phases[-1].until is None:
        console.print("Nothing changes after that.", soft_wrap=True)


def _table(found: WindowsForecast, now: datetime, console: Console) -> Table:
    """Return the phases as a table that loses nothing on a narrow terminal.

    There, the zone is only in the line above, and the least of its texts is wrapped, or all are.
    """
    rows = [_row(phase, found, now) for phase in found.phases]
    endless = console.options.update(max_width=ENDLESS)
    title = f"from ({found.zone})"
    widest = _filled(rows, title, (title, "UTC", "what", "sets"), gap=1)
    for table in (widest, _filled(rows, "from", ("from", "UTC", "sets"), gap=0)):
        if Measurement.get(console, endless, table).minimum <= console.width:
            return table
    return _filled(rows, "from", (), gap=0)


def _filled(rows: Sequence[Sequence[str]], first: str, whole: Sequence[str], *, gap: int) -> Table:
    """Return a table of which the columns with a title in `whole` are not wrapped."""
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, gap))
    for title, *cells in zip((first, "UTC", "what", "sets"), *rows, strict=True):
        is_whole = title in whole
        least = max(map(len, (title, *cells))) if is_whole else None
        table.add_column(title, no_wrap=is_whole, min_width=least, overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table


def _row(phase: WindowPhase, found: WindowsForecast, now: datetime) -> tuple[str, str, str, str]:
    number = str(phase.replicas) if phase.replicas is not None else f"{found.former}, as before"
    words = "window" if phase.in_force else "no window"
    begun = " (now)" if phase.since <= now and (not phase.until or now < phase.until) else ""
    if phase.since <= scaler.NEVER:
        return "-", "-", f"{words}{begun}", number
    since = local(phase.since.astimezone(found.zone))
    return since, utc(phase.since), f"{words}{begun}", number


def _field(found: WindowsForecast) -> str:
    return f"{found.target.id}: spec.{found.target.field}"
