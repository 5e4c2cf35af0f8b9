"""Plan, as typed: `hedgerow plan`, what applying objects would do, without doing it."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Literal

import anyio
import structlog
import typer

from hedgerow.cli import exits
from hedgerow.cli.candidates import slashed
from hedgerow.cli.connecting import connected, of_namespace
from hedgerow.cli.exits import Exit
from hedgerow.cli.options import LONGEST_MANAGER, Files, Output, kustomize_option
from hedgerow.cli.output import echo_data
from hedgerow.cli.program import installation, program_name, registry, say, typed
from hedgerow.cli.targets import is_meant, unserved_kind
from hedgerow.cli.terminal import Terminal, one_line
from hedgerow.deploy.manifest import ManifestError, objects_in
from hedgerow.kube.errors import Forbidden, Missing
from hedgerow.runtime.clock import SystemClock
from hedgerow.settings import Settings
from hedgerow_tools.fields.forecast import PlanReport, worst
from hedgerow_tools.fields.relabelling import KUBECTL
from hedgerow_tools.objects.files import sources
from hedgerow_tools.objects.kustomize import kustomized
from hedgerow_tools.planning import helm
from hedgerow_tools.planning.dry_run import UserApply
from hedgerow_tools.planning.files import PlanError, identity, titled
from hedgerow_tools.planning.object_forecasts import ObjectForecaster, unreadable
from hedgerow_tools.planning.resource_forecasts import ResourceForecaster

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence

    from rich.status import Status

    from hedgerow_schemas.base import Object
    from hedgerow_tools.fields.forecast import Forecast, PlanVerdict

CHANGES = 2
"""The exit code for changes; elsewhere it means wrong usage, which is 1 here."""
EXITS: Mapping[PlanVerdict, int] = {
    "nothing": Exit.DONE,
    "changes": CHANGES,
    "conflicts": Exit.CONFLICT,
    "partial": Exit.PARTIAL,
    "failed": Exit.FAILED,
}
_SILENT = 50
"""A log level above all that the passes use: critical."""

Names = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[KIND/]NAME",
        autocompletion=slashed,
        help="Resources as they are in the cluster: what would this operator do about them?",
        show_default=False,
    ),
]
Kustomize = Annotated[str | None, kustomize_option("its manifests are planned")]
Instance = Annotated[
    str, typer.Option(metavar="NAME", help="The installation's name, as given to `hedgerow run`.")
]
FieldManager = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="The field manager that applies the files: helm, argocd-controller,"
        " kustomize-controller.",
        show_default="kubectl, or helm",
    ),
]
Tool = Annotated[
    Literal["kubectl", "helm"],
    typer.Option(
        help="What applies the files: `kubectl apply --server-side`, or Helm 4 what it renders of a"
        " release, with the label and annotations that it adds.",
    ),
]
ReleaseName = Annotated[
    str | None,
    typer.Option(
        "--release",
        metavar="NAME",
        help="With --tool helm: the release.",
        show_default="that of the objects in the cluster",
    ),
]
Force = Annotated[
    bool,
    typer.Option(
        "--force",
        help="Show what a forced apply would take, and from whom. Nothing is taken.",
    ),
]


@of_namespace
def plan_command(
    names: Names = None,
    *,
    filename: Files = None,
    kustomize: Kustomize = None,
    instance: Instance = "",
    tool: Tool = KUBECTL,
    release: ReleaseName = None,
    field_manager: FieldManager = None,
    takes: Force = False,
    output: Output = "text",
) -> None:
    """Show what a server-side apply would do, without doing it.

    Objects are applied as `kubectl apply --server-side` does. The files may have objects of any
    kind, and hedgerow need not be installed. For hedgerow's own resources, the command then makes
    the passes that the operator would make.

    Each write is a server-side dry run, so that defaults, validation and admission take part. The
    output names every field that would change, and its present field managers. It also names the
    fields and objects that would be contested, given up, taken by force, deleted or refused.
    Nothing is written or deleted. -k takes a directory as `kubectl apply -k` does.

    Exit codes, for CI to gate on: 0 nothing to do, 2 changes, 3 conflicts, 5 about some objects the
    server gave no answer in time, 1 failed, refused or wrong usage, 4 no cluster answers.
    """
    given = bool(names), bool(filename), kustomize is not None
    if given.count(True) != 1:
        raise PlanError(
            "name either resources or, with -f, files or, with -k, a directory; see"
            f" `{typed()} plan --help`"
        )
    if names and (takes or field_manager is not None or tool != KUBECTL):
        raise PlanError(
            "--tool, --field-manager and --force are about the objects of files: give them with -f"
            " or -k"
        )
    if release is not None and tool != helm.MANAGER:
        raise PlanError("--release is that of Helm: give it with --tool helm")
    applier = _applier(tool if field_manager is None else field_manager, takes=takes)

    async def carry_out() -> tuple[list[Forecast], UserApply]:
        ours = installation(Settings(instance=instance).instance)
        async with connected("plan") as cluster:
            forecaster = ResourceForecaster(cluster, SystemClock(), ours, applier)
            with _quiet(), Terminal(stderr=True).status("reading") as progress:
                if names:
                    place = cluster.namespace
                    progress.update(one_line(f"planning {', '.join(names)}"))
                    forecasts = [f for name in names for f in await _named(forecaster, name, place)]
                    return forecasts, applier
                if kustomize is None:
                    manifests = sources(filename or ())
                else:
                    manifests = [(kustomize, await kustomized(kustomize))]
                named = (release or "") if tool == helm.MANAGER else None
                forecasts = await _of_objects(forecaster, manifests, named, progress)
                return forecasts, forecaster.applier

    forecasts, applier = anyio.run(carry_out)
    with exits.quiet():
        _print(forecasts, output, None if names else applier)
    raise typer.Exit(EXITS[worst(forecasts)])


def _applier(name: str, *, takes: bool) -> UserApply:
    """Return how the user applies; raises PlanError for what is no name."""
    if not name.isprintable() or not 0 < len(name) <= LONGEST_MANAGER:
        raise PlanError(
            f"--field-manager takes the name of a field manager: 1 to {LONGEST_MANAGER} printable"
            " characters"
        )
    return UserApply(name, takes=takes)


async def _of_objects(
    forecaster: ResourceForecaster,
    manifests: Iterable[tuple[str, str]],
    release: str | None,
    progress: Status,
) -> list[Forecast]:
    """Return the forecasts of files; `release` is None for kubectl, and empty if not given."""
    place = forecaster.cluster.namespace
    unread: list[ManifestError] = []
    wanted = _once(_readable(manifests, unread), place, unread)
    planned = ObjectForecaster(forecaster, place)
    if release is not None:
        wanted = _without_hooks(wanted)
        upgraded = await _release(planned, release, wanted)
        forecaster.applier = replace(forecaster.applier, release=upgraded)
    forecasts: list[Forecast] = []
    for number, manifest in enumerate(wanted, 1):
        progress.update(one_line(f"planning {titled(manifest)}, {number} of {len(wanted)}"))
        forecasts.append(await planned.forecast(manifest))
    return [*forecasts, *map(unreadable, unread)]


def _without_hooks(objects: Sequence[Object]) -> list[Object]:
    if hooks := [titled(obj) for obj in objects if helm.is_hook(obj)]:
        say(f"not planned, since Helm makes hooks at a time of their own: {', '.join(hooks)}")
    return [obj for obj in objects if not helm.is_hook(obj)]


async def _release(planned: ObjectForecaster, name: str, wanted: Iterable[Object]) -> helm.Release:
    """Return the release that Helm would upgrade or install. Raises PlanError if none is known."""
    if name:
        return helm.Release(name, planned.namespace)
    known = await planned.release(wanted)
    if known is None:
        raise PlanError(
            "none of these objects is in the cluster as one of a release: name it with --release"
        )
    return known


def _readable(
    manifests: Iterable[tuple[str, str]], unread: list[ManifestError]
) -> Iterator[tuple[str, Object]]:
    """Yield the objects of files; one that cannot be read does not stop the others."""
    for name, text in manifests:
        try:
            yield from [(name, obj) for obj in objects_in(name, text)]
        except ManifestError as error:
            unread.append(error)


def _once(
    objects: Iterable[tuple[str, Object]], place: str, unread: Sequence[ManifestError]
) -> list[Object]:
    """Return the objects of files, each once: the last one counts, as one apply follows another."""
    wanted: dict[object, Object] = {}
    for number, (name, obj) in enumerate(objects):
        key = identity(obj, place) or number
        if wanted.pop(key, None):
            say(f"{name}: {titled(obj)} is there twice; the last one is planned")
        wanted[key] = obj
    if not wanted:
        raise unread[0] if unread else PlanError("there is no object in the files given")
    return list(wanted.values())


async def _named(forecaster: ResourceForecaster, given: str, namespace: str) -> list[Forecast]:
    """Return the forecasts for a name; without a kind, for every kind that is served."""
    kind, slash, name = given.rpartition("/")
    if not name or "/" in kind or bool(slash) != bool(kind):
        raise PlanError(f"{given!r} is no [KIND/]NAME, such as bluegreen/demo")
    ours = [controller for controller in registry().controllers if controller.is_custom]
    controllers = [controller for controller in ours if not kind or is_meant(controller, kind)]
    if not controllers:
        raise PlanError(f"{kind} is not one of {program_name()}'s kinds")
    forecasts: list[Forecast] = []
    unserved: list[Missing] = []
    for controller in controllers:
        try:
            forecast = await forecaster.of_name(controller, name, namespace)
        except Missing as error:
            unserved.append(error)
        except Forbidden:
            missing = await unserved_kind(forecaster.cluster, controller.resource.api)
            if missing is None:
                raise
            unserved.append(missing)
        else:
            forecasts += [forecast] if forecast else []
    if len(unserved) == len(controllers):
        raise unserved[0]
    if not forecasts:
        raise PlanError(f"{given} does not exist in namespace {namespace}; name another with -n")
    return forecasts


@contextmanager
def _quiet() -> Generator[None]:
    """Keep the simulated passes from logging writes that they did not really make."""
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(_SILENT))
    try:
        yield
    finally:
        structlog.configure(**before)


def _print(forecasts: Sequence[Forecast], output: str, applier: UserApply | None) -> None:
    # ruff: noqa: PLC0415 - each form is imported when it is the one
    if output == "json":
        echo_data(PlanReport(worst(forecasts), forecasts))
        return
    from hedgerow_tools.planning.terminal import show

    heading = ""
    if applier is not None:
        forced = ", forced" if applier.takes else ""
        of = f" by Helm 4, release {applier.release.name}" if applier.release else ""
        heading = f"Server-side apply as {applier.manager}{of}{forced}"
    show(forecasts, SystemClock().now(), heading=heading)
