"""hedgerow schedule next: the coming runs of a schedule, before they come."""

from __future__ import annotations

import re
from datetime import UTC
from typing import TYPE_CHECKING, Annotated, Any

import anyio
import typer

from hedgerow import schedule as cron
from hedgerow.cli.candidates import objects
from hedgerow.cli.connecting import connected, of_namespace
from hedgerow.cli.exits import CommandError
from hedgerow.cli.options import Files, TableOutput
from hedgerow.cli.output import echo_data
from hedgerow.cli.program import program_name
from hedgerow.cli.unfolded import UnfoldedCommand, UnfoldedGroup
from hedgerow.deploy.manifest import ManifestError, objects_in
from hedgerow.runtime.clock import SystemClock
from hedgerow.texts import printable
from hedgerow_schemas.base import View
from hedgerow_tools.objects.files import sources
from hedgerow_tools.render.times import moment

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime, tzinfo

    from hedgerow.kube.cluster import Cluster
    from hedgerow.objects import ObjectRef
    from hedgerow_schemas.base import Object
    from hedgerow_tools.schedule.coming import Asked, Starts, Windows

app = typer.Typer(name="schedule", cls=UnfoldedGroup)

_HYPHEN = re.compile(r"-(?:[\d*?]|[^-].*\s)")
"""The start of a word that is no option: those have a letter, and no blank."""
_KIND = re.compile(r"[A-Za-z][\w.-]*")
_KUBERNETES = "batch"
"""The group of the CronJob of Kubernetes itself."""
_MOST = 1000
_NONE = (
    "has no schedule: cronjob/NAME has one, deployment/NAME and statefulset/NAME may have windows"
)


@app.callback()
def schedule() -> None:
    """Tell what a schedule means.

    The dialect is that of robfig/cron `ParseStandard`, as in Kubernetes: five fields, the names
    `@yearly`, `@monthly`, `@weekly`, `@daily`, `@hourly`, and `@every 1h30m`.
    """


class _Next(UnfoldedCommand):
    """The command whose argument, a schedule, may begin with a hyphen by mistake."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take `-1 * * * *` for the schedule, which is then refused as one, and not for options."""
        schedules = [] if "--" in args else [word for word in args if _HYPHEN.match(word)]
        rest = [word for word in args if word not in schedules]
        return super().parse_args(ctx, [*rest, "--", *schedules] if schedules else args)


@app.command("next", cls=_Next)
@of_namespace
def next_command(
    target: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="['EXPR'|KIND/NAME]",
            autocompletion=objects,
            help="The schedule, quoted, such as '30 2 * * *'. Or an object in the cluster: a"
            " CronJob, or a Deployment or StatefulSet whose annotations say when to scale it.",
            show_default=False,
        ),
    ] = None,
    *,
    files: Files = None,
    zone: Annotated[
        str | None,
        typer.Option(
            metavar="ZONE",
            help="IANA time zone of EXPR, such as Europe/Berlin.",
            show_default="UTC",
        ),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="TIME",
            help="Start here, in RFC 3339; without an offset it is a time in the schedule's zone.",
            show_default="now",
        ),
    ] = None,
    count: Annotated[
        int, typer.Option(min=1, max=_MOST, metavar="N", help="How many to print of each.")
    ] = 10,
    output: TableOutput = "table",
) -> None:
    """Print the coming runs of a schedule, and what daylight saving does to them.

    A start that falls into a skipped hour does not run; one in a repeated hour may run twice. For a
    CronJob the command says as well what becomes of a start that is missed, and whether one that
    was missed already would be made at once: edit what `kubectl get` prints to see that of an edit.
    For a Deployment or StatefulSet it prints the windows in its annotations, and the number of
    replicas that each sets.

    - `hedgerow schedule next '30 2 * * *' --zone Europe/Berlin`
    - `hedgerow schedule next cronjob/demo -n shop`
    - `kubectl get cronjob demo -o yaml | hedgerow schedule next -f -`
    """
    words = target or []
    if bool(words) == bool(files):
        raise typer.BadParameter("give either a schedule or KIND/NAME, or a file with -f")
    now = SystemClock().now()

    def begin(place: tzinfo) -> datetime:
        return moment("--from", since, place) if since else now

    is_named = not files and _is_named(words)
    if (files or is_named) and zone is not None:
        raise typer.BadParameter("--zone is for a schedule alone: an object names its own")
    from hedgerow_tools.schedule.coming import Asked, of_schedule

    asked = Asked(now, begin, count)
    if files:
        results = _of_files(files, asked)
    elif is_named:
        results = [_of_cluster(words, asked)]
    else:
        results = [of_schedule(_parse(_single_word(words), zone), asked)]
    if output == "json":
        echo_data(results)
    else:
        from hedgerow_tools.schedule.terminal import show

        show(results, now)


def _is_named(words: Sequence[str]) -> bool:
    """Return whether words are KIND/NAME or KIND NAME, and not a schedule."""
    kind, slash, _ = words[0].partition("/")
    return bool(_KIND.fullmatch(kind)) and len(words) == (1 if slash else 2)


def _of_files(files: list[str], asked: Asked) -> list[Starts | Windows]:
    try:
        there = [(name, obj) for name, text in sources(files) for obj in objects_in(name, text)]
    except ManifestError as error:
        raise typer.BadParameter(str(error)) from error
    results = [_of_manifest(name, obj, asked) for name, obj in there]
    scheduled = [result for result in results if result is not None]
    if not scheduled:
        raise typer.BadParameter(f"nothing in {', '.join(files)} has a schedule")
    return scheduled


def _of_manifest(file: str, obj: Object, asked: Asked) -> Starts | Windows | None:
    from hedgerow_tools.schedule.coming import of_object

    try:
        return of_object(obj, asked)
    except ValueError as error:
        named = f"{obj.get('kind')}/{View(obj).name or '?'}"
        raise typer.BadParameter(printable(f"{file}: {named}: {error}")) from None


def _of_cluster(words: Sequence[str], asked: Asked) -> Starts | Windows:
    # ruff: noqa: PLC0415
    from hedgerow.cli.targets import joined, parted
    from hedgerow.controllers.scaler.controller import DEPLOYMENTS
    from hedgerow.controllers.scaler.windows import ASKED
    from hedgerow_schemas.builtin import HorizontalPodAutoscaler
    from hedgerow_tools.fields.installations import installation_of
    from hedgerow_tools.schedule.coming import SCALED, of_object

    target = parted(joined(words))

    async def carry_out() -> Starts | Windows:
        async with connected() as cluster:
            ref, live = await _read_object(cluster, target)
            scalers: list[HorizontalPodAutoscaler] = []
            if ref.api in SCALED:
                there = await cluster.list(HorizontalPodAutoscaler.api, ref.namespace)
                scalers = [HorizontalPodAutoscaler(obj) for obj in there.items]
            of = installation_of(live, DEPLOYMENTS.name, program_name())
            try:
                view = of_object(live, asked, scalers, of.field_manager(DEPLOYMENTS.name))
            except ValueError as error:
                raise CommandError(f"{ref}: {printable(str(error))}") from None
            if view is None:
                raise CommandError(f"{ref} has none of the annotations {', '.join(ASKED)}")
            return view

    return anyio.run(carry_out)


async def _read_object(cluster: Cluster, target: tuple[str, str]) -> tuple[ObjectRef, Object]:
    """Return the first object that is meant, hedgerow's CronJob before that of Kubernetes."""
    from hedgerow.cli.discovery import find
    from hedgerow.cli.targets import read_target
    from hedgerow.objects import ObjectRef
    from hedgerow_tools.schedule.coming import SCALED, is_cronjob

    meant = await find(cluster, target[0])
    kinds = [api for api in (meant.api, *meant.others) if is_cronjob(api) or api in SCALED]
    if not kinds:
        raise typer.BadParameter(f"{meant.api.kind}/{target[1]} {_NONE}")
    refs = [ObjectRef(api, cluster.namespace, target[1]) for api in kinds]
    refs.sort(key=lambda ref: ref.api.group == _KUBERNETES)
    for ref in refs[:-1]:
        if (live := await cluster.read_object(ref.api, ref.name, ref.namespace)) is not None:
            return ref, live
    return refs[-1], await read_target(cluster, refs[-1])


def _single_word(words: Sequence[str]) -> str:
    """Return the schedule; raises BadParameter for several words, which the shell has split."""
    if len(words) > 1:
        raise typer.BadParameter(
            f"the schedule came as {len(words)} words: quote it, as in '30 2 * * *', so that the"
            " shell leaves it alone"
        )
    return words[0]


def _parse(expression: str, zone: str | None) -> cron.Schedule:
    wrong = [*cron.errors(expression)]
    try:
        place = cron.zone(zone) if zone is not None else UTC
        schedule = None if wrong else cron.parse(expression, place)
    except cron.ScheduleError as error:
        wrong.append(error)
        schedule = None
    if schedule is None:
        raise typer.BadParameter("; ".join(map(str, wrong)))
    if zone is not None and schedule.zone_prefixed:
        raise typer.BadParameter(
            f"the schedule names a zone of its own, {schedule.zone}: drop that or --zone"
        )
    return schedule
