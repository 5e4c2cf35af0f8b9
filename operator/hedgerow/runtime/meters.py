"""Meters: the operator's own metrics, for Prometheus.

The number of series is bounded. Controllers and kinds are known when the process starts. Each
controller names at most 20 of the cluster's field managers; the rest count as `other`.
"""

from __future__ import annotations

from collections import Counter as Tally
from functools import partial
from typing import TYPE_CHECKING

from prometheus_client import (
    REGISTRY,
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
)
from prometheus_client.registry import Collector

from hedgerow.runtime.metric_names import DurationMetric

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import datetime

    from prometheus_client import Metric

    from hedgerow.contract import Key, Lag
    from hedgerow.runtime.cache.door import Door
    from hedgerow_schemas.base import ApiResource, Object, Status

OUTCOMES = ("success", "retry", "put_off", "failed")
ACTIONS = ("created", "configured", "released", "unchanged", "deleted", "conflicted")
MANAGERS = 20
"""The most field managers that each controller's series name; an attacker could invent many."""
OTHER, UNKNOWN, LOST = "other", "unknown", "<error>"

FAST = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
SLOW = (0.001, 0.01, 0.1, 0.5, 1, 2, 5, 10, 30, 60, 300)
LATE = (0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 60, 300, 1800)
"""Buckets in seconds: for a pass or a request, for waiting for a pass, for a scheduled start."""


class _OfAuthors(Collector):
    """The metrics that authors of controllers have in the library's own registry."""

    def collect(self) -> Iterable[Metric]:
        """Return them, without those that the registry has by itself."""
        return (m for m in REGISTRY.collect() if not m.name.startswith(("process_", "python_")))


class Meters:
    """All metrics, in a registry of their own; `of_controller` returns one controller's part."""

    def __init__(self, version: str = "") -> None:
        """Create the metrics; with a version, also those of the process and of Python."""
        disable_created_metrics()  # they would double the series, for a time that nobody needs
        self.registry = CollectorRegistry()
        self.api_requests = self._counter(
            "api_requests", "Requests to the API server.", "verb code"
        )
        self.api_duration = self._histogram(
            DurationMetric.API_REQUEST,
            "Time until an API request was answered; until it was open, for a watch.",
            "verb",
            FAST,
        )
        self.leader = self._gauge("leader", "Whether this replica does the work: 1 for the leader.")
        self.loop_lag = self._gauge(DurationMetric.LOOP_LAG, "How late the event loop last turned.")
        self._lags: dict[str, Histogram] = {}
        self._missed: dict[str, Gauge] = {}
        self._numbers: dict[Gauge, list[Callable[[], int]]] = {}
        self._exchanges: dict[
            tuple[str, int], tuple[Callable[[], None], Callable[[float], None]]
        ] = {}
        self._of_passes()
        self._of_fields()
        self._of_caches()
        if version:
            build = self._gauge("build_info", "The version that runs, with the value 1.", "version")
            build.labels(version).set(1)
            ProcessCollector(registry=self.registry)
            GCCollector(registry=self.registry)
            self.registry.register(_OfAuthors())

    def _of_passes(self) -> None:
        self.passes = self._counter(
            "reconcile", "Passes over a resource, by how they ended.", "controller outcome"
        )
        self.pass_duration = self._histogram(
            DurationMetric.RECONCILE, "Time that a pass took.", "controller", FAST
        )
        self.queue_depth = self._gauge(
            "workqueue_depth", "Resources that are ready for a pass.", "controller"
        )
        self.queue_wait = self._histogram(
            DurationMetric.IN_QUEUE,
            "Time for which a resource that was ready waited for its pass.",
            "controller",
            SLOW,
        )
        self.queue_retries = self._counter(
            "workqueue_retries", "Passes requested again after a failed one.", "controller"
        )

    def _of_fields(self) -> None:
        self.applies = self._counter(
            "apply", "Writes to children, by their outcome.", "controller action"
        )
        self.contested = self._gauge(
            "contested_fields",
            "Fields that hedgerow declares and another field manager holds with another value.",
            "controller manager",
        )
        self.conflicts = self._counter(
            "conflicts",
            "Fields for which the API server refused a write because another manager holds them.",
            "controller manager",
        )
        self.forced = self._counter(
            "forced_claims",
            "Fields taken from another field manager by the annotation hedgerow.dev/claim.",
            "controller manager",
        )
        self.problems = self._counter(
            "logged_problems",
            "Problems of resources that get neither a status nor Events: only the log has them.",
            "controller",
        )

    def _of_caches(self) -> None:
        self.refusals = self._counter(
            "refusals",
            "Requests that the API server refused, by request and answer.",
            "controller request answer",
        )
        self.watch_restarts = self._counter(
            "watch_restarts",
            "Watches opened again, by why the last one ended.",
            "controller resource reason",
        )
        self.undecodable = self._counter(
            "undecodable_objects",
            "Objects that were received with JSON that cannot be decoded; what was cached stays.",
            "controller resource",
        )
        self.cache_objects = self._gauge(
            "cache_objects", "Objects in a cache.", "controller resource"
        )
        self.cache_taken = self._gauge(
            "cache_bytes", "Bytes that are kept of the cached objects, with what indexes them."
        )
        self.cache_budget = self._gauge(
            "cache_budget_bytes", "How many bytes may be kept of the cached objects."
        )
        self.cache_stubs = self._gauge(
            "cache_stubs",
            "Objects that are not cached whole: too many bytes or values, or too much in sum.",
            "bound",
        )

    def of_controller(self, controller: str, lag: Lag | None = None) -> Meter:
        """Return the part of one controller; `lag` is its own lag metric, if any."""
        return Meter(self, controller, lag)

    def lag(self, lag: Lag) -> Histogram:
        """Return the histogram of how late children are created; the first call creates it."""
        if lag.name not in self._lags:
            self._lags[lag.name] = self._histogram(f"{lag.name}_seconds", lag.help, "", LATE)
        return self._lags[lag.name]

    def missed(self, lag: Lag) -> Gauge:
        """Return the gauge of overdue children; the first call creates it."""
        if lag.name not in self._missed:
            self._missed[lag.name] = self._gauge(
                f"{lag.name}_missed",
                "What was due and is not created: in a row, of all resources that wait for it.",
            )
        return self._missed[lag.name]

    def measure(self, gauge: Gauge, number: Callable[[], int]) -> None:
        """Measure this number; several controllers of one name are measured together."""
        numbers = self._numbers.setdefault(gauge, [])
        numbers.append(number)
        gauge.set_function(lambda: float(sum(number() for number in numbers)))

    def exchanged(self, verb: str, code: int, seconds: float) -> None:
        """Count a request to the API server; code 0 means no response."""
        known = self._exchanges.get((verb, code))
        if known is None:
            counter = self.api_requests.labels(verb, str(code) if code else LOST)
            known = counter.inc, self.api_duration.labels(verb).observe
            self._exchanges[verb, code] = known
        count, observe = known
        count()
        observe(seconds)

    def leads(self, leading: Callable[[], bool]) -> None:
        """Measure whether this replica leads, with this function."""
        self.leader.set_function(lambda: float(leading()))

    def guards(self, door: Door) -> None:
        """Measure the bytes of the caches, and the objects that are not let in."""
        self.cache_budget.set(door.most)
        self.cache_taken.set_function(lambda: float(door.taken))
        for limit in door.stubs:
            self.cache_stubs.labels(limit).set_function(partial(door.stubs.get, limit, 0))

    def beat(self, lag: float) -> None:
        """Record how late the event loop turned, in seconds."""
        self.loop_lag.set(lag)

    def _counter(self, name: str, help_text: str, labels: str = "") -> Counter:
        return Counter(f"hedgerow_{name}", help_text, labels.split(), registry=self.registry)

    def _gauge(self, name: str, help_text: str, labels: str = "") -> Gauge:
        return Gauge(f"hedgerow_{name}", help_text, labels.split(), registry=self.registry)

    def _histogram(
        self, name: str, help_text: str, labels: str, buckets: tuple[float, ...]
    ) -> Histogram:
        return Histogram(
            f"hedgerow_{name}", help_text, labels.split(), registry=self.registry, buckets=buckets
        )


class Meter:
    """The metrics of one controller; its series exist from the start, at zero."""

    def __init__(self, meters: Meters, controller: str, lag: Lag | None = None) -> None:
        self._meters, self._lag = meters, lag
        if lag:
            meters.lag(lag)
        if lag and lag.missed:
            meters.missed(lag)
        self._controller = controller
        self._passes = {name: meters.passes.labels(controller, name) for name in OUTCOMES}
        self._applies = {name: meters.applies.labels(controller, name) for name in ACTIONS}
        self._duration = meters.pass_duration.labels(controller)
        self.logged = meters.problems.labels(controller).inc
        """Called when the log has a problem that no status and no Event has."""
        self._names: set[str] = set()
        self._contested: dict[Key, Tally[str]] = {}
        self._missed: dict[Key, int] = {}
        self.waited = meters.queue_wait.labels(controller).observe
        """Called with the seconds that a ready resource waited for its pass."""
        self.retried = meters.queue_retries.labels(controller).inc
        """Called when a pass is queued again after a failure."""

    def passed(self, outcome: str, seconds: float) -> None:
        """Count a pass."""
        self._passes[outcome].inc()
        self._duration.observe(seconds)

    def wrote(self, action: str) -> None:
        """Count a write to a child."""
        self._applies[action].inc()

    def created(self, child: Object, now: datetime) -> None:
        """Measure how late a child was created, if its controller tells when it was due."""
        due = self._lag.due(child) if self._lag else None
        if self._lag and due is not None:
            late = max(0.0, (now - due).total_seconds())
            self._meters.lag(self._lag).observe(late)

    def conflicted(self, managers: Iterable[str]) -> None:
        """Count the fields that a write conflicted with; `managers` has the holder of each."""
        for manager in managers:
            self._meters.conflicts.labels(self._controller, self._named(manager)).inc()

    def refused(self, request: str, answer: str) -> None:
        """Count a refused request."""
        self._meters.refusals.labels(self._controller, request, answer).inc()

    def claimed(self, managers: Iterable[str]) -> None:
        """Count the fields taken by force; `managers` has the former holder of each."""
        for manager in managers:
            self._meters.forced.labels(self._controller, self._named(manager)).inc()

    def contest(self, key: Key, managers: Iterable[str]) -> None:
        """Record who holds a resource's contested fields; none if there are none, or it is gone."""
        held = Tally(map(self._named, managers))
        if not held and key not in self._contested:
            return  # the usual case
        before = self._contested.pop(key, Tally[str]())
        if held:
            self._contested[key] = held
        for manager in held.keys() | before.keys():
            gauge = self._meters.contested.labels(self._controller, manager)
            gauge.inc(held[manager] - before[manager])

    def miss(self, key: Key, status: Status | None) -> None:
        """Record how much a resource has missed, by its status; none if it is gone."""
        if self._lag is None or self._lag.missed is None:
            return
        missed = self._lag.missed(status) if status else 0
        before = self._missed.pop(key, 0)
        if missed:
            self._missed[key] = missed
        if missed != before:
            self._meters.missed(self._lag).inc(missed - before)

    def queue(self, depth: Callable[[], int]) -> None:
        """Measure how many resources are ready for a pass, with this function."""
        self._meters.measure(self._meters.queue_depth.labels(self._controller), depth)

    def caches(self, api: ApiResource, size: Callable[[], int]) -> None:
        """Measure how many objects of a kind are cached, with this function."""
        gauge = self._meters.cache_objects.labels(self._controller, watched(api))
        self._meters.measure(gauge, size)

    def rewatched(self, api: ApiResource, reason: str) -> None:
        """Count a watch that is opened again."""
        self._meters.watch_restarts.labels(self._controller, watched(api), reason).inc()

    def undecodable(self, api: ApiResource) -> None:
        """Count an object that cannot be decoded."""
        self._meters.undecodable.labels(self._controller, watched(api)).inc()

    def _named(self, manager: str) -> str:
        if manager not in self._names and len(self._names) >= MANAGERS:
            return OTHER
        self._names.add(manager)
        return manager or UNKNOWN


def watched(api: ApiResource) -> str:
    """Return the name of a kind as kubectl writes it: `deployments.apps`."""
    return f"{api.plural}.{api.group}" if api.group else api.plural
