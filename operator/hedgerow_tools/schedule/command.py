"""hedgerow schedule: what a CronJob's schedule means, told before it runs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hedgerow import schedule as cron
from hedgerow.cli.options import TableOutput
from hedgerow.cli.output import echo, echo_data
from hedgerow.cli.program import typed
from hedgerow.cli.unfolded import UnfoldedCommand, UnfoldedGroup
from hedgerow_tools.render.times import local, moment, utc
from hedgerow_tools.render.widths import page_terminal
from hedgerow_tools.schedule.explain import explain_command

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import tzinfo

app = typer.Typer(
    name="schedule", cls=UnfoldedGroup, no_args_is_help=True, rich_markup_mode="markdown"
)

_HYPHEN = re.compile(r"-(?:[\d*?]|[^-].*\s)")
"""The start of a word that is no option: those have a letter, and no blank."""
_SKIPPED_SHOWN = 3
_YEARS = range(2, 9990)
_MOST = 1000

app.command("explain", cls=UnfoldedCommand)(explain_command)


@dataclass(frozen=True, slots=True)
class Coming:
    """A start, and what daylight saving has to do with it."""

    start: datetime
    """In the schedule's zone."""
    distance: timedelta
    repeated: int
    """1 or 2 if the clock shows this time twice, else 0."""
    skipped: Sequence[datetime]
    """Skipped local times since the previous start, without a zone."""

    def told(self) -> str:
        """Return in words what daylight saving does to it."""
        notes = [f"{['', 'first', 'second'][self.repeated]} {self.start:%H:%M} of two"]
        if not self.repeated:
            notes = []
        if self.skipped:
            same_day = all(time.date() == self.start.date() for time in self.skipped)
            shown = "%H:%M" if same_day else "%Y-%m-%d %H:%M"
            times = [format(time, shown) for time in self.skipped[:_SKIPPED_SHOWN]]
            more = " and more" if len(self.skipped) > _SKIPPED_SHOWN else ""
            notes.append(f"skipped before it: {', '.join(times)}{more}")
        return "; ".join(notes)

    def as_data(self) -> dict[str, Any]:
        """Return it as an object for programs: times in RFC 3339, the distance in seconds."""
        return {
            "local": self.start.isoformat(),
            "zone": self.start.tzname(),
            "utc": utc(self.start),
            "inSeconds": self.distance.total_seconds(),
            "repeated": (None, "first", "second")[self.repeated],
            "skippedBefore": [time.isoformat() for time in self.skipped],
        }


@app.callback()
def schedule() -> None:
    """Tell what a CronJob's schedule means.

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
def next_command(
    expression: Annotated[
        list[str],
        typer.Argument(
            metavar="EXPR", help="The schedule, quoted, such as '30 2 * * *'.", show_default=False
        ),
    ],
    *,
    zone: Annotated[
        str | None,
        typer.Option(
            metavar="ZONE", help="IANA time zone, such as Europe/Berlin.", show_default="UTC"
        ),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="TIME",
            help="Start here, in RFC 3339; without an offset it is a time in the zone.",
            show_default="now",
        ),
    ] = None,
    count: Annotated[
        int, typer.Option(min=1, max=_MOST, metavar="N", help="How many starts to print.")
    ] = 10,
    output: TableOutput = "table",
) -> None:
    """Print the coming starts of a schedule, and what daylight saving does to them.

    A start that falls into a skipped hour does not run; one in a repeated hour may run twice.
    `@every` counts from --from; in a cluster it counts from the creation of the CronJob.
    """
    found = _parse(_one(expression), zone)
    begin = _now() if since is None else moment("--from", since, found.zone)
    rows = list(coming(found, begin, count))
    if output == "json":
        echo_data([row.as_data() for row in rows])
    elif rows:
        _show(rows, found.zone)
    if len(rows) < count and output == "table":
        last = rows[-1].start if rows else begin
        echo(f"No {'further ' if rows else ''}start within five years of {utc(last)}.")
    if isinstance(found, cron.Every) and output == "table":
        begun = "now" if since is None else "--from"
        echo(
            f"Counted from {begun}; in a cluster @every counts from the creation of the CronJob:"
            f" `{typed()} schedule explain -f` tells."
        )


def coming(found: cron.Schedule, since: datetime, count: int) -> Iterator[Coming]:
    """Yield `count` starts after an instant, or fewer if there are no more."""
    last = since
    for _ in range(count):
        start = found.after(last)
        if start is None or start.year not in _YEARS:
            return
        yield Coming(
            start=start.astimezone(found.zone),
            distance=start - since,
            repeated=cron.repeated(start, found.zone),
            skipped=found.skipped(last, start, _SKIPPED_SHOWN + 1),
        )
        last = start


def _one(words: Sequence[str]) -> str:
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
        found = None if wrong else cron.parse(expression, place)
    except cron.ScheduleError as error:
        wrong.append(error)
        found = None
    if found is None:
        raise typer.BadParameter("; ".join(map(str, wrong)))
    if zone is not None and found.zone_prefixed:
        raise typer.BadParameter(
            f"the schedule names a zone of its own, {found.zone}: drop that or --zone"
        )
    return found


def _now() -> datetime:
    from hedgerow.runtime.clock import SystemClock  # noqa: PLC0415 - not needed with --from

    return SystemClock().now()


def _show(rows: Sequence[Coming], zone: tzinfo) -> None:
    from rich.table import Table  # noqa: PLC0415

    console = page_terminal()
    table = Table(box=None)
    for title in (f"local ({zone})", "UTC", "in"):
        table.add_column(title, no_wrap=True)
    noted = any(row.told() for row in rows)
    if noted:
        table.add_column("daylight saving")
    for row in rows:
        cells = (local(row.start), utc(row.start), _length(row.distance), row.told())
        table.add_row(*cells[: 3 + noted])
    console.print(table)


def _length(distance: timedelta) -> str:
    """Return a duration as `2d 3h 4m 5s`, rounded down to the second, without zeros."""
    hours, seconds = divmod(distance.seconds, 3600)
    parts = {"d": distance.days, "h": hours, "m": seconds // 60, "s": seconds % 60}
    return " ".join(f"{number}{unit}" for unit, number in parts.items() if number) or "0s"
