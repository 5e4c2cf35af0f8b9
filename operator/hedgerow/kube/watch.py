"""Watch: all changes to the objects of one kind, across drops, gaps and restarts.

`reflect` is a thin driver. What it does next is decided by `step`, a pure function from (phase,
arrival) to (outcome, phase), modelled after kube-rs's watcher.
"""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Literal, assert_never

from msgspec import Struct, field
from msgspec.structs import replace

from hedgerow.backoff import backoff
from hedgerow.contract import unreduced
from hedgerow.kube.errors import (
    Dropped,
    Garbled,
    Gone,
    Invalid,
    KubeError,
    Missing,
    Silent,
    Unavailable,
    Unreachable,
)
from hedgerow.kube.fence import unheard
from hedgerow.kube.retry import RetryClock
from hedgerow.objects import Key, version_number

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from hedgerow.kube.cluster import Cluster
    from hedgerow.kube.picked import Picked
    from hedgerow_schemas.base import ApiResource, Object

STEADY = 30.0
"""Seconds after which an open watch counts as a success, even without an event."""
AWAY = 1
"""After more failures in a row than this, the server was away; a single cut may happen."""
IDLE = 90.0
"""Seconds without any event after which a watch counts as cut: bookmarks come each minute."""
UNREPORTED = 3
"""More cuts in a row than this, each soon after the watch was opened, are reported."""


class Snapshot(Struct, frozen=True):
    """All objects as of `version`; any other object that the consumer has was deleted.

    `met` are the keys of listed objects that are not in `items`: `on_listed` was already called
    with them, or they cannot be decoded and the consumer keeps its own. The version is older than
    an earlier one if the API server's store was restored from a backup.
    """

    items: tuple[Object, ...]
    version: str
    met: frozenset[Key] = frozenset()


class Changed(Struct, frozen=True):
    """One object was created, changed or deleted; `object` is its last state."""

    type: Literal["ADDED", "MODIFIED", "DELETED"]
    object: Object
    version: str


class Undecoded(Struct, frozen=True):
    """One object was created, changed or deleted, or is in a list, and cannot be decoded."""

    key: Key
    version: str
    deleted: bool = False


class Bookmark(Struct, frozen=True):
    """All events up to `version` were sent; `synced` ends the initial events of a WatchList."""

    version: str
    synced: bool = False


class Listing(Struct, frozen=True):
    """The objects of one kind as of `version`, each with its apiVersion and kind.

    `undecoded` are those that cannot be decoded.
    """

    items: tuple[Object, ...]
    version: str
    undecoded: tuple[Undecoded, ...] = ()


WatchEvent = Changed | Undecoded | Bookmark


class WatchEnded(Struct, frozen=True):
    """The server ended the watch normally after `lasted` seconds."""

    lasted: float


class Failed(Struct, frozen=True):
    """The list or the watch failed after `lasted` seconds."""

    error: KubeError
    lasted: float


Arrival = Listing | WatchEvent | WatchEnded | Failed


class Filling(Struct, frozen=True):
    """No Snapshot was passed on yet: a WatchList if `streaming`, else a paged list comes next.

    `items` is filled in place: copying it for each initial event would take quadratic time; an
    object that cannot be decoded is None. `last` is the last version that was passed on, if any.
    """

    failures: int = 0
    streaming: bool = True
    items: dict[Key, Object | None] = field(default_factory=dict[Key, "Object | None"])
    gaps: int = 0
    last: str = ""


class Live(Struct, frozen=True):
    """A Snapshot was passed on, and all events since then up to `version`.

    `is_cut` tells that the connection was lost, and nothing has come since.
    """

    version: str
    failures: int = 0
    gaps: int = 0
    is_cut: bool = False


WatchPhase = Filling | Live


class StepResult(Struct, frozen=True):
    """The outcome of an arrival: an event to pass on, a problem to report, a restart after `wait`.

    `wait` is in seconds; None while the stream goes on.
    """

    event: Snapshot | Changed | Bookmark | None = None
    problem: KubeError | None = None
    wait: float | None = None


def step(phase: WatchPhase, arrival: Arrival, draw: float) -> tuple[StepResult, WatchPhase]:
    """Return the outcome of one arrival, and the next phase; `draw` in [0, 1) is for jitter."""
    match arrival:
        case Listing(items, version, undecoded):
            snapshot = Snapshot(items, version, frozenset(item.key for item in undecoded))
            return StepResult(snapshot), Live(version, phase.failures, phase.gaps)
        case Changed() | Undecoded() | Bookmark():
            return _received(phase, arrival)
        case WatchEnded(lasted):
            return _stopped(phase, 0 if lasted >= STEADY else phase.failures + 1, draw)
        case Failed(error, lasted):
            return _failed(phase, error, 0 if lasted >= STEADY else phase.failures, draw)
        case _:
            assert_never(arrival)


def _received(phase: WatchPhase, arrival: WatchEvent) -> tuple[StepResult, WatchPhase]:
    if isinstance(phase, Live):
        if _is_older(arrival.version, phase.version):
            return StepResult(wait=0.0), Filling(last=phase.version)
        event = _undecoded_event(arrival) if isinstance(arrival, Undecoded) else arrival
        return StepResult(event), Live(arrival.version)
    if isinstance(arrival, Bookmark):
        if not arrival.synced:
            return StepResult(), phase
        if _is_older(arrival.version, phase.last):
            # The server's cache lags behind, or the store was restored. A list shows which, because
            # it is read from the store itself.
            return StepResult(wait=0.0), replace(phase, items={}, streaming=False)
        items = tuple(item for item in phase.items.values() if item is not None)
        undecoded = frozenset(key for key, item in phase.items.items() if item is None)
        snapshot = Snapshot(items, arrival.version, undecoded)
        # A watch that is cut each time right after its list is in trouble all the same.
        return StepResult(snapshot), Live(arrival.version, phase.failures, phase.gaps)
    if isinstance(arrival, Undecoded):
        key, item, is_gone = arrival.key, None, arrival.deleted
    else:
        key, item, is_gone = _key(arrival.object), arrival.object, arrival.type == "DELETED"
    if is_gone:
        phase.items.pop(key, None)
    else:
        phase.items[key] = item
    return StepResult(), phase


def _undecoded_event(undecoded: Undecoded) -> Changed | Bookmark:
    """Return the event to pass on: a deletion, or a bookmark, since the consumer keeps its copy."""
    if not undecoded.deleted:
        return Bookmark(undecoded.version)
    last = _named(undecoded.key)
    last["metadata"]["resourceVersion"] = undecoded.version
    return Changed("DELETED", last, undecoded.version)


def _stopped(
    phase: WatchPhase,
    failures: int,
    draw: float,
    problem: KubeError | None = None,
    *,
    is_cut: bool = False,
) -> tuple[StepResult, WatchPhase]:
    """Continue where the watch stopped; after an incomplete WatchList, use a list instead."""
    outcome = StepResult(problem=problem, wait=backoff(failures, draw))
    if isinstance(phase, Live):
        return outcome, Live(phase.version, failures, phase.gaps, is_cut)
    return outcome, replace(phase, failures=failures, streaming=False, items={})


def _failed(
    phase: WatchPhase, error: KubeError, before: int, draw: float
) -> tuple[StepResult, WatchPhase]:
    # A server that answers 410 works again: do not wait because of earlier failures.
    gaps = (phase.gaps if before else 0) + 1 if isinstance(error, Gone) else 0
    failures = gaps or before + 1
    if isinstance(error, Silent) and isinstance(phase, Live):
        return StepResult(wait=backoff(failures, draw)), Filling(failures, last=phase.version)
    # A server that was away may come back with a store that was restored: the version that was
    # sent last may never be sent again. One that is only busy keeps its store; one that cut the
    # watch and then is busy has been started again.
    is_cut = isinstance(error, (Dropped, Unreachable)) or (isinstance(phase, Live) and phase.is_cut)
    patience = AWAY if is_cut else UNREPORTED
    away = isinstance(error, (Dropped, Unreachable, Unavailable)) and failures > patience
    if isinstance(error, Dropped) and not (away and isinstance(phase, Live)):
        problem = error if failures > UNREPORTED else None
        return _stopped(phase, failures, draw, problem, is_cut=True)
    if isinstance(phase, Filling) and phase.streaming and isinstance(error, Invalid):
        # The server does not know sendInitialEvents, or its feature gate is off.
        return StepResult(wait=0.0), replace(phase, failures=before, streaming=False, items={})
    routine = isinstance(error, (Dropped, Gone)) and failures <= UNREPORTED
    outcome = StepResult(None, None if routine else error, backoff(failures, draw, error.after))
    worthless = away or isinstance(error, (Gone, Garbled, Invalid, Missing))
    if isinstance(phase, Live) and not worthless:
        return outcome, Live(phase.version, failures, is_cut=is_cut)
    streaming = isinstance(phase, Live) or phase.streaming
    return outcome, Filling(failures, streaming=streaming, gaps=gaps, last=_last(phase))


def _last(phase: WatchPhase) -> str:
    """Return the last version that was passed on."""
    return phase.version if isinstance(phase, Live) else phase.last


def _is_older(version: str, last: str) -> bool:
    """Return whether a version is older than `last`; versions are comparable (KEP-5504)."""
    return 0 < version_number(version) < version_number(last)


class _Subject(Struct, frozen=True):
    """The objects to watch, and how long a silence may be."""

    api: ApiResource
    namespace: str
    labels: str
    fields: str
    reduce: Callable[[Object], Object]
    on_listed: Callable[[Object], object] | None
    on_undecoded: Callable[[Key], object]
    seconds: int
    idle: float

    def listed(self, item: Object) -> Object:
        """Return the object for the Snapshot; only its name if `on_listed` was called with it."""
        item = self.reduce(item)
        if self.on_listed is None:
            return item
        self.on_listed(item)
        return _named(_key(item))


async def reflect(
    cluster: Cluster | Picked,
    api: ApiResource,
    namespace: str = "",
    *,
    labels: str = "",
    fields: str = "",
    reduce: Callable[[Object], Object] = unreduced,
    on_problem: Callable[[KubeError], None] = unheard,
    on_restart: Callable[[str], None] = unheard,
    on_listed: Callable[[Object], object] | None = None,
    on_undecoded: Callable[[Key], object] = unheard,
    seconds: int = 290,
    idle: float = IDLE,
    timing: RetryClock | None = None,
) -> AsyncGenerator[Snapshot | Changed | Bookmark]:
    """Yield all objects and then all changes, for ever; raises no KubeError.

    After a gap that the server cannot fill, it yields a new Snapshot; a consumer that compares it
    with its own objects misses no deletion. A stream without any event for `idle` seconds counts as
    dropped; a bookmark comes each minute. A consumer that stops early must close the generator
    (`contextlib.aclosing`).

    - `reduce` is applied to each object when it arrives, and must keep `metadata.name` and
      `metadata.namespace`.
    - `on_problem` is called at each attempt with the error that keeps the watch from working: no
      permission, no such kind, no server. Short drops and gaps are not reported.
    - `on_restart` is called with a word for why a list or watch starts again; `ended` is normal.
    - `on_listed` is called with each object of a list when it arrives. The Snapshot then has only
      their names, so that a list is never in memory as a whole.
    - `on_undecoded` is called with the key of each object that cannot be decoded when it arrives.
      The consumer keeps its own copy of it, if any.
    """
    timing = timing or RetryClock()
    subject = _Subject(
        api, namespace, labels, fields, reduce, on_listed, on_undecoded, seconds, idle
    )
    phase: WatchPhase = Filling()
    while True:
        outcome, arrival = StepResult(), None
        async with aclosing(_arrivals(cluster, subject, phase, timing)) as arrivals:
            async for arrival in arrivals:
                outcome, phase = step(phase, arrival, timing.draw())
                if outcome.problem is not None:
                    on_problem(outcome.problem)
                if outcome.event is not None:
                    yield _by_name(outcome.event) if on_listed else outcome.event
                if outcome.wait is not None:
                    break
        if outcome.wait is not None:
            on_restart(_why(arrival))
            await timing.sleep(outcome.wait)


async def _arrivals(
    cluster: Cluster | Picked, subject: _Subject, phase: WatchPhase, timing: RetryClock
) -> AsyncGenerator[Arrival]:
    """List or watch as `phase` requires; yield the events, and how it ended."""
    began = timing.now()
    where = (subject.api, subject.namespace)
    filling = isinstance(phase, Filling)
    try:
        if filling and not phase.streaming:
            listing = await cluster.list(
                *where, labels=subject.labels, fields=subject.fields, reduce=subject.listed
            )
            for undecoded in listing.undecoded:
                subject.on_undecoded(undecoded.key)
            yield listing
            return
        watch = cluster.watch(
            *where,
            labels=subject.labels,
            fields=subject.fields,
            since="" if filling else phase.version,
            initial=filling,
            seconds=subject.seconds,
            idle=subject.idle,
        )
        async with aclosing(watch) as events:
            is_initial = filling
            async for event in events:
                yield _reduced(event, subject, listing=is_initial)
                is_initial = is_initial and not (isinstance(event, Bookmark) and event.synced)
    except KubeError as error:
        yield Failed(error, timing.now() - began)
    else:
        yield WatchEnded(timing.now() - began)


def _why(end: Arrival | None) -> str:
    if isinstance(end, Failed):
        return type(end.error).__name__.lower()
    return "ended" if isinstance(end, WatchEnded) else "behind"


def _reduced(event: WatchEvent, subject: _Subject, *, listing: bool) -> WatchEvent:
    if isinstance(event, Undecoded):
        subject.on_undecoded(event.key)
    if not isinstance(event, Changed):
        return event
    listed = listing and event.type != "DELETED"
    reduce = subject.listed if listed else subject.reduce
    return Changed(event.type, reduce(event.object), event.version)


def _by_name(event: Snapshot | Changed | Bookmark) -> Snapshot | Changed | Bookmark:
    """Return an event; of a Snapshot only the names, as `on_listed` got the objects."""
    if not isinstance(event, Snapshot):
        return event
    return Snapshot((), event.version, event.met | frozenset(map(_key, event.items)))


def _key(item: Object) -> Key:
    metadata: Object = item["metadata"]
    return Key(metadata.get("namespace", ""), metadata["name"])


def _named(key: Key) -> Object:
    return {"metadata": {"namespace": key.namespace, "name": key.name}}
