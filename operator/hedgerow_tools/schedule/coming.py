"""Coming: the next starts of a schedule, and the next windows of a workload, as they are shown."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import Struct, field

from hedgerow import schedule as cron
from hedgerow.contract import Observed
from hedgerow.controllers.cronjob.starts import LONGEST_LOOK_BACK, is_ahead
from hedgerow.controllers.scaler import controller as scaler
from hedgerow.controllers.scaler import windows
from hedgerow.deploy.manifest import QUOTED
from hedgerow.schedule import ScheduleError
from hedgerow.texts import numbered, printable
from hedgerow_schemas.base import View, instant
from hedgerow_schemas.builtin import Deployment, HorizontalPodAutoscaler, StatefulSet
from hedgerow_schemas.cronjob import CronJob
from hedgerow_tools.render.times import LATEST, length, utc
from hedgerow_tools.schedule.daylight import repeated, skipped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from datetime import datetime, tzinfo

    from hedgerow.schedule import Schedule
    from hedgerow_schemas.base import ApiResource, Object

SCALED: Final[dict[ApiResource, type[View]]] = {
    Deployment.api: Deployment,
    StatefulSet.api: StatefulSet,
}
SKIPPED_SHOWN: Final = 3
_YEARS: Final = range(2, 9990)
_POLICIES: Final = {
    "Forbid": "A start waits while an earlier Job runs (Forbid), and is missed if the next one"
    " comes before that has ended.",
    "Replace": "A start deletes the Job that still runs (Replace).",
}
ELSEWHERE: Final = (
    "The controller of Kubernetes makes them, which on some days of a change of the clocks does"
    " otherwise."
)


class Start(Struct, frozen=True, rename="camel"):
    """A start, and what daylight saving has to do with it: times that were skipped before it."""

    local: datetime
    zone: str | None
    utc: datetime
    in_seconds: float
    repeated: Literal["first", "second"] | None
    """Which of two it is, if the clock shows its time twice."""
    skipped_before: tuple[datetime, ...]
    """Times of the schedule's zone, which do not exist; a few more than are shown."""


class Starts(Struct, frozen=True, rename="camel", omit_defaults=True):
    """The coming starts of a schedule; `missed` of a CronJob passed before without a Job."""

    object: str = ""
    namespace: str = ""
    schedule: str = ""
    zone: str = ""
    starts: tuple[Start, ...] = ()
    missed: int = 0
    made_at_once: datetime | None = None
    notes: tuple[str, ...] = ()


class Window(Struct, frozen=True, rename="camel"):
    """The time between two transitions; `former`: the replicas are those before the windows."""

    since: datetime | None = field(name="from")
    until: datetime | None
    in_force: bool
    replicas: int
    former: bool


class WindowTarget(Struct, frozen=True):
    """The field that windows set."""

    object: str
    field: str


class Windows(Struct, frozen=True, rename="camel"):
    """The coming windows of a workload, the field that they set, and who else holds that."""

    object: str
    namespace: str
    zone: str
    sets: WindowTarget
    held_by: tuple[str, ...]
    phases: tuple[Window, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked of each schedule: how many starts, since when in its zone; and what is now."""

    now: datetime
    begin: Callable[[tzinfo], datetime]
    count: int


def is_cronjob(api: ApiResource) -> bool:
    """Return whether a kind is CronJob, hedgerow's or that of Kubernetes."""
    return api.kind == CronJob.api.kind and api.group in {CronJob.api.group, "batch"}


def starts(schedule: Schedule, since: datetime, count: int) -> Iterator[Start]:
    """Yield `count` starts after an instant, or fewer if there are no more."""
    last = since
    for _ in range(count):
        start = schedule.after(last)
        if start is None or start.year not in _YEARS:
            return
        local = start.astimezone(schedule.zone)
        yield Start(
            local,
            local.tzname(),
            start,
            (start - since).total_seconds(),
            repeated(local),
            skipped(schedule, last, start, SKIPPED_SHOWN + 1),
        )
        last = start


def of_schedule(schedule: Schedule, asked: Asked) -> Starts:
    """Return the coming starts of a schedule alone."""
    since = asked.begin(schedule.zone)
    runs = tuple(starts(schedule, since, asked.count))
    notes = tuple(_ends(runs, since, asked.count))
    if isinstance(schedule, cron.Every) and schedule.anchor is None:
        whence = f"Counted from {utc(since)}; in a cluster @every counts from the creation of the"
        notes += (f"{whence} CronJob.",)
    return Starts(schedule=schedule.expression, zone=str(schedule.zone), starts=runs, notes=notes)


def _ends(runs: tuple[Start, ...], since: datetime, count: int) -> Iterator[str]:
    if len(runs) < count:
        further, last = ("further ", runs[-1].utc) if runs else ("", since)
        yield f"No {further}start within five years of {utc(last)}."


def of_object(
    obj: Object,
    asked: Asked,
    autoscalers: Iterable[HorizontalPodAutoscaler] = (),
    manager: str = "",
) -> Starts | Windows | None:
    """Return what comes of a CronJob or of a scaled workload; None of anything else.

    `manager` is the field manager of the scaler. Raises ValueError, which says what cannot be read.
    """
    api = next((kind for kind in SCALED if (kind.group_version, kind.kind) == _kind(obj)), None)
    if api:
        return _workload(obj, api, asked, autoscalers, manager)
    return _cronjob(obj, asked) if obj.get("kind") == CronJob.api.kind else None


def _kind(obj: Object) -> tuple[object, object]:
    return obj.get("apiVersion"), obj.get("kind")


def _cronjob(obj: Object, asked: Asked) -> Starts:
    """Return the coming starts of a CronJob, and what becomes of those that are missed."""
    view, spec = View(obj), View(View(obj).mapping("spec"))
    expression = spec.at("schedule")
    if not isinstance(expression, str):
        why = f"it must be a string: quote it, {QUOTED}"
        raise ScheduleError("spec.schedule", str(expression), why)
    created = instant(view.text("metadata", "creationTimestamp"))
    schedule = cron.timetable(expression, spec.text("timeZone") or None, created)
    coming, now = of_schedule(schedule, asked), asked.now
    last = instant(view.text("status", "lastScheduleTime"))
    is_refused = last is not None and is_ahead(last, now)
    known = max(filter(None, (None if is_refused else last, created)), default=now)
    missed = schedule.missed(max(known, now - LONGEST_LOOK_BACK), now)
    count_missed, newest = (0, None) if is_refused else (missed.count, missed.latest)
    deadline = spec.at("startingDeadlineSeconds")
    seconds = deadline if isinstance(deadline, int) else None
    is_late = newest and seconds is not None and (now - newest).total_seconds() >= seconds
    at_once = None if is_late or spec.at("suspend") is True else newest
    notes = list(coming.notes)
    if last and is_refused:
        notes.append(
            f"status.lastScheduleTime {utc(last)} is later than now, so it records no start."
        )
    if newest:
        since_then = f"Since {utc(known)}, {numbered(count_missed, 'start')} passed without a Job"
        notes.append(f"{since_then}: {_of_newest(newest, at_once, is_late=bool(is_late))}")
    notes += _policy(spec, seconds)
    is_theirs = obj.get("apiVersion") != CronJob.api.group_version
    if is_theirs and any(start.repeated or start.skipped_before for start in coming.starts):
        notes.append(ELSEWHERE)
    return Starts(
        object=f"{CronJob.api.kind}/{view.name}",
        namespace=view.namespace,
        schedule=expression,
        zone=coming.zone,
        starts=coming.starts,
        missed=count_missed,
        made_at_once=at_once,
        notes=tuple(notes),
    )


def _of_newest(newest: datetime, at_once: datetime | None, *, is_late: bool) -> str:
    if at_once:
        return f"that of {utc(newest)} is made at once."
    if is_late:
        return f"the deadline of that of {utc(newest)} has passed, so none is made."
    return f"that of {utc(newest)} is made when suspend is taken away."


def _policy(spec: View, deadline: int | None) -> Iterator[str]:
    """Yield what becomes of starts that cannot be made in time."""
    if spec.at("suspend") is True:
        yield "It is suspended: none of them is made."
    if deadline == 0:
        yield "Nothing ever starts: startingDeadlineSeconds is 0, and every start is late by then."
        return
    late = "however late" if deadline is None else f"within {length(timedelta(seconds=deadline))}"
    yield f"A start that was missed is made {late}; of several only the newest."
    if policy := _POLICIES.get(spec.text("concurrencyPolicy")):
        yield policy


def _workload(
    obj: Object,
    api: ApiResource,
    asked: Asked,
    autoscalers: Iterable[HorizontalPodAutoscaler],
    manager: str,
) -> Windows | None:
    """Return the coming windows of a workload; None if its annotations ask for none."""
    view, kind = View(obj), SCALED[api]
    annotations = view.mapping("metadata", "annotations")
    created = instant(view.text("metadata", "creationTimestamp"))
    given = {key: str(value) for key, value in annotations.items()}
    plan = windows.read_plan(given, created)
    if plan is None:
        return None
    aimed = tuple(hpa for hpa in autoscalers if scaler.scaled(hpa) == (api.kind, view.name))
    observed = Observed(now=scaler.NEVER, contributable=aimed, resource=view, field_manager=manager)
    own, targets = scaler.targets(kind, observed)
    if len(targets) > 1:
        names = ", ".join(target.id for target in targets)
        raise ValueError(f"{names} all target it: hedgerow scales nothing until only one does")
    target = targets[0] if targets else own
    record = target.record if target.ours else None
    former = record.replicas if record else target.value
    phases = tuple(islice(plan.phases(asked.begin(plan.zone), LATEST), asked.count))
    sets = WindowTarget(target.id, f"spec.{target.field}")
    return Windows(
        f"{api.kind}/{view.name}",
        view.namespace,
        str(plan.zone),
        sets,
        target.others,
        tuple(
            Window(
                None if phase.since <= scaler.NEVER else phase.since.astimezone(plan.zone),
                phase.until and phase.until.astimezone(plan.zone),
                phase.in_force,
                former if phase.replicas is None else phase.replicas,
                phase.replicas is None,
            )
            for phase in phases
        ),
        tuple(_window_notes(sets, target, phases[-1].until)),
    )


def _window_notes(sets: WindowTarget, target: Any, until: datetime | None) -> Iterator[str]:
    if target.others:
        holders = ", ".join(map(printable, target.others))
        yield (
            f"{sets.object}: {sets.field} is {target.value}, held by {holders}: another number is"
            " contested, and set only where hedgerow.dev/claim allows it."
        )
    if until is None:
        yield "Nothing changes after that."
