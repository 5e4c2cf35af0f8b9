"""Explain: `hedgerow schedule explain`, what would happen to a CronJob's starts, and why."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, NamedTuple

import anyio
import typer

from hedgerow.cli.candidates import objects
from hedgerow.cli.connecting import Context, Kubeconfig, connected
from hedgerow.cli.exits import Exit
from hedgerow.cli.options import Namespace, TableOutput
from hedgerow.cli.output import echo_data
from hedgerow.cli.program import say
from hedgerow.cli.targets import joined, located, parted, read
from hedgerow.kube.errors import Missing
from hedgerow.manifest import ManifestError, objects_in, sources
from hedgerow.objects import ObjectRef
from hedgerow.runtime.clock import SystemClock
from hedgerow.schedule import ScheduleError, timetable
from hedgerow.schedule.durations import nanoseconds
from hedgerow.texts import printable
from hedgerow_schemas.cronjob import CronJob
from hedgerow_tools.render.times import moment
from hedgerow_tools.schedule.documents import Document, cronjobs, of_object
from hedgerow_tools.schedule.explained import ExplainedCronJob, as_data, show
from hedgerow_tools.schedule.simulation import Question, forecast

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import tzinfo

    from hedgerow.kube.cluster import Cluster
    from hedgerow_schemas.base import ApiResource, Object

LONGEST = timedelta(days=36525)
"""The longest range, and the longest duration of a Job: a hundred years."""


Target = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[KIND/NAME]",
        autocompletion=objects,
        help="A CronJob in the cluster: cronjob/demo, or cronjob demo. Or a Deployment or"
        " StatefulSet whose annotations say when to scale it.",
        show_default=False,
    ),
]
Filename = Annotated[
    str | None,
    typer.Option(
        "--filename",
        "-f",
        metavar="FILE",
        help="YAML or JSON with CronJobs: a file, a directory of them, or - for standard input.",
    ),
]
Since = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="TIME",
        help="Begin here: RFC 3339 or a date; without an offset, in the schedule's zone.",
        show_default="now",
    ),
]
Until = Annotated[
    str | None,
    typer.Option(
        "--to",
        metavar="TIME",
        help="End here.",
        show_default="a day after --from; for windows a week",
    ),
]
Duration = Annotated[
    str, typer.Option(metavar="DURATION", help="How long each Job takes: 90s, 1h30m.")
]
Down = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FROM/TO", help="No operator is running between these times; may be repeated."
    ),
]
Limit = Annotated[int, typer.Option(min=1, max=1000, help="The most starts to show, or windows.")]


@dataclass(frozen=True, slots=True)
class Asked:
    """The command line's question about every CronJob; its times are read in each one's zone."""

    since: str | None
    until: str | None
    down: Sequence[str]
    duration: timedelta
    limit: int

    def question(self, zone: tzinfo, now: datetime) -> Question:
        """Return the question with its times in a zone. Raises BadParameter."""
        since = moment("--from", self.since, zone) if self.since else now.astimezone(zone)
        day = since + timedelta(days=1)  # in local time
        until = moment("--to", self.until, zone) if self.until else day
        _check_order("--to", since, until)
        if until.astimezone(UTC) - since.astimezone(UTC) > LONGEST:
            raise typer.BadParameter("--to is more than a hundred years after --from")
        down = tuple(_interval(text, zone) for text in self.down)
        return Question(_utc(since), _utc(until), self.duration, down, self.limit, _utc(now))


def explain_command(  # noqa: PLR0917 - the parameters are the command's flags, never positional
    target: Target = None,
    filename: Filename = None,
    since: Since = None,
    until: Until = None,
    duration: Duration = "0s",
    down: Down = None,
    limit: Limit = 100,
    output: TableOutput = "table",
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Show what would happen at each start of a CronJob's schedule, and why.

    The CronJob controller itself runs here, on a virtual clock and without a cluster; each Job
    takes --duration. The output marks starts that daylight saving skips or repeats. If the file has
    a status, the controller begins with that status: edit what `kubectl get` prints to see which
    Jobs the edit would start at once.

    - `hedgerow schedule explain cronjob/demo -n shop`
    - `hedgerow schedule explain -f cronjob.yaml --duration 90s`
    - `hedgerow schedule explain -f cronjob.yaml --from 2026-03-07 --to 2026-03-10`
    - `kubectl get cronjobs.batch.tutorial.kubebuilder.io demo -o yaml |
      hedgerow schedule explain -f -`
    - `hedgerow schedule explain -f cronjob.yaml --down 2026-03-07T10:00Z/2026-03-07T13:00Z`

    `cronjob` means hedgerow's CronJob, or that of Kubernetes if hedgerow's has no such object;
    `cronjobs.batch` always means that of Kubernetes.

    For a Deployment or StatefulSet in the cluster, the command shows a week of the windows in its
    annotations, and the number of replicas that each window would set.

    - `hedgerow schedule explain deployment/web -n shop`
    """
    if bool(target) == (filename is not None):
        raise typer.BadParameter("name either KIND/NAME, or a file with -f")
    asked = Asked(since, until, down or (), _duration(duration), limit)
    if target:
        named = parted(joined(target))
        _of_cluster(named, namespace, asked, output, (kubeconfig, context))
        return
    if namespace or kubeconfig or context:
        raise typer.BadParameter(
            "-f asks no cluster: -n, --kubeconfig and --context are not for it"
        )
    found = _documents(filename or "")
    for line in (*found.skipped, *found.problems):
        say(line)
    if found.problems:
        raise typer.Exit(Exit.USAGE)
    _show(found.documents, asked, output)


def _show(documents: Iterable[Document], asked: Asked, output: str) -> None:
    now = SystemClock().now()
    explained = [
        _explained(doc, doc.resource, asked, now) for doc in documents if doc.resource is not None
    ]
    if output == "json":
        echo_data(as_data(explained))
    else:
        show(explained)


def _of_cluster(
    target: tuple[str, str],
    namespace: str | None,
    asked: Asked,
    output: str,
    where: tuple[str | None, str | None],
) -> None:
    """Print the starts of a CronJob, or the windows of a workload, that a cluster has."""
    from hedgerow_tools.schedule import windows  # noqa: PLC0415 - not needed for a file

    now = SystemClock().now()

    async def carry_out() -> Document | windows.WindowsForecast:
        async with connected(*where) as cluster:
            if apis := cronjobs(target[0]):
                place = namespace or cluster.namespace
                return of_object(await _cronjob(cluster, apis, target[1], place))
            ref = await located(cluster, target, namespace)
            if asked.down or asked.duration:
                raise typer.BadParameter(
                    f"{ref} has no Jobs: --down and --duration are for CronJobs"
                )
            span = asked.since, asked.until, asked.limit
            return await windows.explained(cluster, ref, now, span)

    found = anyio.run(carry_out)
    if isinstance(found, Document):
        for problem in found.problems:
            say(f"{found.title}: {printable(problem)}")
        if found.problems:
            raise typer.Exit(Exit.FAILED)
        _show([found], asked, output)
    elif output == "json":
        echo_data(windows.as_data(found))
    else:
        windows.show(found, now)


async def _cronjob(
    cluster: Cluster, apis: Sequence[ApiResource], name: str, namespace: str
) -> Object:
    """Return the CronJob of the first of these kinds that has one of that name; exit if none has.

    Raises Missing if none of the kinds is served, and KubeError.
    """
    *some, last = apis
    for api in some:
        with suppress(Missing):
            if (found := await cluster.read(api, name, namespace)) is not None:
                return found
    return await read(cluster, ObjectRef(last, namespace, name))


def _explained(document: Document, cj: CronJob, asked: Asked, now: datetime) -> ExplainedCronJob:
    schedule = timetable(cj.spec.schedule, cj.spec.time_zone, cj.metadata.creation_timestamp)
    question = asked.question(schedule.zone, now)
    return ExplainedCronJob(cj, schedule.zone, document.foreign, question, forecast(cj, question))


class _FileContents(NamedTuple):
    """The documents of a file, which ones are `skipped`, and what is wrong with the others."""

    documents: list[Document]
    skipped: list[str]
    problems: list[str]


def _documents(filename: str) -> _FileContents:
    """Return the file's documents. Raises BadParameter if it is no manifest."""
    try:
        found = [
            (name, of_object(obj))
            for name, text in sources([filename])
            for obj in objects_in(name, text)
        ]
    except ManifestError as error:
        raise typer.BadParameter(str(error)) from error
    problems = [f"{name}: {doc.title}: {each}" for name, doc in found for each in doc.problems]
    skipped = [
        f"{name}: {doc.title} is skipped: {doc.skipped}"
        for name, doc in found
        if not doc.resource and not doc.problems
    ]
    if len(skipped) == len(found):
        problems = [f"{filename}: there is no CronJob of {CronJob.api.group_version} in it"]
    return _FileContents([document for _, document in found], skipped, problems)


def _interval(text: str, zone: tzinfo) -> tuple[datetime, datetime]:
    begin, slash, end = text.partition("/")
    if not slash:
        raise typer.BadParameter(f"--down takes two times, FROM/TO, not {text!r}")
    first, last = moment("--down", begin, zone), moment("--down", end, zone)
    _check_order("--down", first, last)
    return _utc(first), _utc(last)


def _check_order(option: str, begin: datetime, end: datetime) -> None:
    if begin.astimezone(UTC) >= end.astimezone(UTC):
        raise typer.BadParameter(f"{option}: {end.isoformat()} is not after {begin.isoformat()}")


def _utc(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(microsecond=0)


def _duration(text: str) -> timedelta:
    try:
        read_duration = timedelta(microseconds=nanoseconds(text) // 1000)
    except ScheduleError as error:
        reason = str(error).partition(": ")[2]
        raise typer.BadParameter(f"--duration {text!r}: {reason}") from error
    if not timedelta() <= read_duration <= LONGEST:
        raise typer.BadParameter(f"--duration {text!r}: it is not between 0 and a hundred years")
    return read_duration
