"""Plan, as typed: `hedgerow plan`, what applying custom resources would do, without doing it."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Literal

import anyio
import structlog
import typer

from hedgerow.cli import broken_pipes
from hedgerow.cli.candidates import slashed
from hedgerow.cli.connecting import Context, Kubeconfig, connected
from hedgerow.cli.errors import explain
from hedgerow.cli.exits import Exit
from hedgerow.cli.output import echo_lines
from hedgerow.cli.plan.files import (
    Declared,
    OtherObject,
    PlanError,
    controllers_of,
    declared,
    kustomized,
    texts,
)
from hedgerow.cli.plan.forecast import worst
from hedgerow.cli.plan.planner import Applier, Planner
from hedgerow.cli.program import installation, program_name, say, typed
from hedgerow.kube.errors import Missing
from hedgerow.runtime.clock import SystemClock
from hedgerow.settings import Settings
from hedgerow.terminal import Terminal, one_line

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Mapping, Sequence

    from rich.status import Status

    from hedgerow.cli.plan.forecast import Forecast, Verdict

CHANGES = 2
"""The exit code for changes; elsewhere it means wrong usage, which is a failure here."""
EXITS: Mapping[Verdict, int] = {
    "nothing": Exit.DONE,
    "changes": CHANGES,
    "conflicts": Exit.CONFLICT,
    "failed": Exit.FAILED,
}
_SILENT = 50
"""A log level above all that the passes use: critical."""

Names = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[KIND/]NAME...",
        autocompletion=slashed,
        help="Resources as they are in the cluster: what would this operator do about them?",
        show_default=False,
    ),
]
Files = Annotated[
    list[str] | None,
    typer.Option(
        "--filename",
        "-f",
        metavar="FILE",
        help="Manifests: a file, a directory of them, or - for standard input. May be repeated.",
        show_default=False,
    ),
]
Kustomize = Annotated[
    str | None,
    typer.Option(
        "--kustomize",
        "-k",
        metavar="DIR",
        help="A directory that `kubectl kustomize` builds: its manifests are planned.",
        show_default=False,
    ),
]
Namespace = Annotated[
    str | None,
    typer.Option(
        "--namespace",
        "-n",
        metavar="NAMESPACE",
        help="Their namespace.",
        show_default="the context's",
    ),
]
Instance = Annotated[
    str, typer.Option(metavar="NAME", help="The installation's name, as given to `hedgerow run`.")
]
FieldManager = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="The field manager that would apply the files.",
        show_default="that of kubectl",
    ),
]
ServerSide = Annotated[
    bool,
    typer.Option(
        "--server-side",
        help="The files would be applied by `kubectl apply --server-side`.",
    ),
]
Output = Annotated[
    Literal["text", "json"], typer.Option("--output", "-o", help="The output format.")
]


def plan_command(
    names: Names = None,
    *,
    filename: Files = None,
    kustomize: Kustomize = None,
    namespace: Namespace = None,
    instance: Instance = "",
    field_manager: FieldManager = "",
    server_side: ServerSide = False,
    output: Output = "text",
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Show what applying custom resources would do, without doing it.

    The API server gets the resource as a dry run of `kubectl apply -f FILE`, or with --server-side
    of `kubectl apply --server-side -f FILE`. -k takes a directory as `kubectl apply -k` does. Then
    the command makes the passes that the operator would make. Each of their writes is a
    server-side dry run, so that defaults, validation and admission take part. The output names
    every field that would change, and its present field managers. It also names the
    fields and objects that would be contested, given up, taken by force, deleted or refused.
    Nothing is written, forced or deleted.

    Exit codes, for CI to gate on: 0 nothing to do, 2 changes, 3 conflicts, 1 failed or refused, 4
    no cluster answers. (Elsewhere 2 is wrong usage.)
    """
    try:
        forecasts = anyio.run(
            _PlanRequest(
                tuple(names or ()),
                tuple(filename or ()),
                kustomize,
                namespace=namespace,
                instance=instance,
                applier=Applier(field_manager, server_side=server_side),
            ).carry_out,
            kubeconfig,
            context,
        )
    except PlanError as error:
        say(str(error))
        raise typer.Exit(Exit.FAILED) from error
    except Exception as error:
        line, code = explain(error, program_name(), typed())
        if code not in {Exit.NO_CLUSTER, Exit.USAGE}:
            raise
        say(line)
        raise typer.Exit(Exit.FAILED if code == Exit.USAGE else code) from error
    with broken_pipes.quiet():
        _print(forecasts, output)
    raise typer.Exit(EXITS[worst(forecasts)])


class _PlanRequest:
    """What to plan, as the user typed it."""

    def __init__(
        self,
        names: Sequence[str],
        files: Sequence[str],
        kustomize: str | None,
        *,
        namespace: str | None,
        instance: str,
        applier: Applier,
    ) -> None:
        if [bool(names), bool(files), kustomize is not None].count(True) != 1:
            raise PlanError(
                "name either resources or, with -f, files or, with -k, a directory; see"
                f" `{typed()} plan --help`"
            )
        self._names = names
        self._files = files
        self._kustomize = kustomize
        self._namespace = namespace
        self._installation = installation(Settings(instance=instance).instance)
        self._applier = applier

    async def carry_out(self, kubeconfig: str | None, context: str | None) -> list[Forecast]:
        """Return the forecasts. Raises PlanError and KubeError."""
        async with connected(kubeconfig, context, "plan") as cluster:
            planner = Planner(cluster, SystemClock(), self._installation, self._applier)
            with _quiet(), Terminal(stderr=True).status("reading") as progress:
                if not self._names:
                    return await self._of_files(planner, progress)
                place = self._namespace or cluster.namespace
                progress.update(one_line(f"planning {', '.join(self._names)}"))
                return [f for name in self._names for f in await _named(planner, name, place)]

    async def _of_files(self, planner: Planner, progress: Status) -> list[Forecast]:
        wanted = self._declared(planner.cluster.namespace, await self._texts())
        forecasts: list[Forecast] = []
        for number, (found, coming) in enumerate(wanted, 1):
            progress.update(one_line(f"planning {found.title}, {number} of {len(wanted)}"))
            forecasts.append(
                await planner.of_manifest(found.controller, found.manifest, coming=coming)
            )
        return forecasts

    async def _texts(self) -> Iterable[tuple[str, str]]:
        if self._kustomize is None:
            return texts(self._files, sys.stdin)
        return [(self._kustomize, await kustomized(self._kustomize))]

    def _declared(
        self, context: str, given: Iterable[tuple[str, str]]
    ) -> list[tuple[Declared, bool]]:
        """Return the resources of the files, and whether an earlier object creates their namespace.

        If a resource occurs twice, the last one counts: kubectl applies one after the other.
        """
        found: dict[str, tuple[Declared, bool]] = {}
        made: set[str] = set()
        for name, text in given:
            for each in declared(name, text, self._namespace or context):
                if isinstance(each, OtherObject):
                    made.add(each.namespace)
                    say(
                        f"{name}: {each.title} is not one of {program_name()}'s resources,"
                        " and not planned"
                    )
                    continue
                self._check(name, each)
                if found.pop(each.title, None):
                    say(f"{name}: {each.title} is there twice; the last one is planned")
                found[each.title] = each, each.manifest["metadata"]["namespace"] in made
        if not found:
            raise PlanError(f"there is no resource of {program_name()} in the files given")
        return list(found.values())

    def _check(self, name: str, found: Declared) -> None:
        place = found.manifest["metadata"]["namespace"]
        if self._namespace not in {None, place}:
            title = f"{found.manifest['kind']}/{found.manifest['metadata']['name']}"
            raise PlanError(f"{name}: {title} is for namespace {place}, not for that of -n")


async def _named(planner: Planner, given: str, namespace: str) -> list[Forecast]:
    """Return the forecasts for a name; without a kind, for every kind that is served."""
    kind, slash, name = given.rpartition("/")
    controllers = controllers_of(kind)
    if not name or "/" in kind or bool(slash) != bool(kind):
        raise PlanError(f"{given!r} is no [KIND/]NAME, such as bluegreen/demo")
    if not controllers:
        raise PlanError(f"{kind} is not one of {program_name()}'s kinds")
    found: list[Forecast] = []
    unserved: list[Missing] = []
    for controller in controllers:
        try:
            forecast = await planner.of_name(controller, name, namespace)
        except Missing as error:
            unserved.append(error)
        else:
            found += [forecast] if forecast else []
    if len(unserved) == len(controllers):
        raise unserved[0]
    if not found:
        raise PlanError(f"{given} does not exist in namespace {namespace}; name another with -n")
    return found


@contextmanager
def _quiet() -> Generator[None]:
    """Keep the rehearsed passes from logging writes that they did not really make."""
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(_SILENT))
    try:
        yield
    finally:
        structlog.configure(**before)


def _print(forecasts: Sequence[Forecast], output: str) -> None:
    # ruff: noqa: PLC0415 - each form is imported when it is the one
    if output == "json":
        from hedgerow.cli.plan.listing import listed

        echo_lines(listed(forecasts), nl=False)
        return
    from hedgerow.cli.plan.terminal import show

    show(forecasts, SystemClock().now())
