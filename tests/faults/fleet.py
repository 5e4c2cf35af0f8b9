"""Fleet: replicas that share the work of a dozen namespaces under load, on a server of their own.

In each namespace is a resource of each controller that divides, and a copy of a Secret, which one
replica makes for all. People change all of it again and again; CronJobs start Jobs meanwhile.
"""

from __future__ import annotations

import contextlib
import threading
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Self

from faults.built_in import DB, coded, source
from faults.checks import OF_TROUBLE, failed, told_twice, written_wrongly
from faults.endings import difference, ending, warnings
from faults.machine import LAST_QUIET, WAIT_TIMEOUT, Operator, Run, World, Wrong
from faults.people import RealPeople, Refused
from faults.scenario import (
    USER,
    Object,
    Scenario,
    at,
    both,
    count,
    finish,
    jobs,
    observed,
    running,
    take,
    target,
)
from faults.scenarios import CACHE, CRON, DEMO, ROUTE, SERVERS
from hedgerow.shards.members import LABEL
from hedgerow.shards.slices import ALL
from hedgerow.testing.audit_log import AuditLog
from support.cluster.writers import Entry, Writers, started_twice
from support.operator import sharing

AUDIT_LOG = "audit.log"
"""The name of the file in a world's directory."""
SYSTEM = "sharing"
PLACES = tuple(f"{letter}-shared" for letter in "abcdefghijkl")
COPY = target("v1", "Secret", "app")
ELECTION, ASSIGNED = (
    target("coordination.k8s.io/v1", "Lease", name) for name in ("hedgerow", "hedgerow-shards")
)
INTERVAL = 3
"""Seconds between two starts of a CronJob."""
PACE = 0.3
"""Seconds between two turns of the load."""
SCENARIOS = tuple(
    Scenario(controller, controller, resource, ())
    for controller, resource in (
        ("bluegreen", DEMO),
        ("memcached", CACHE),
        ("cronjob", CRON),
        ("secretsync", DB),
    )
)
FLAGS = (
    *("--controllers", ",".join(each.controller for each in SCENARIOS)),
    f"--secretsync-namespace={SYSTEM}",
    f"--secretsync-selector=kubernetes.io/metadata.name in ({','.join(PLACES)})",
)
SHARED = ("--leader-elect", "--shards")


class Places:
    """People in all namespaces; one object belongs to one thread."""

    def __init__(self, world: World, stack: contextlib.ExitStack) -> None:
        def people(name: str) -> RealPeople:
            found = RealPeople(world.sandbox.kubeconfig, name)
            stack.callback(found.close)
            return found

        self.system = people(SYSTEM)
        self.each = {place: people(place) for place in PLACES}

    def open(self) -> None:
        """Have everything there, before any operator."""
        for people in (self.system, *self.each.values()):
            people.open_namespaces()
        self._share("first")
        for people in self.each.values():
            _memcached(people, 2)
            _bluegreen(people, "Blue")
            _cronjob(people, suspend=False)

    def begun(self) -> bool:
        """Return whether all of it is served."""
        look = both(*(lambda people, one=one: people.get(one) for one in (SERVERS, ROUTE, COPY)))
        return all(look(people) and jobs(people) for people in self.each.values())

    def contest(self) -> None:
        """Have somebody take a field in each namespace, and keep it."""
        container = {"name": "memcached", "image": "memcached:theirs"}
        fields = {"spec": {"template": {"spec": {"containers": [container]}}}}
        for people in self.each.values():
            take(SERVERS, fields)(people)

    def turn(self, number: int) -> None:
        """Change everything once."""
        self._share(f"{number}")
        for people in self.each.values():
            _memcached(people, 2 + number % 2)
            _bluegreen(people, ("Blue", "Green")[number % 2])
            if number % 2:
                _finish(people)

    def end(self) -> None:
        """Have everything be as it is to be in the end."""
        self._share("last")
        for people in self.each.values():
            _memcached(people, 5)
            _bluegreen(people, "Green")
            _cronjob(people, suspend=True)

    def ended(self) -> bool:
        """Return whether all of that is served; Jobs have to end for it."""
        for people in self.each.values():
            _finish(people)
        look = both(
            observed(CACHE, Contested="True/FieldConflict"),
            observed(DEMO),
            at(SERVERS, "spec", "replicas", is_=5),
            at(ROUTE, "spec", "selector", "app.kubernetes.io/phase", is_="Green"),
            at(COPY, "data", "user", is_=coded("last")),
            count(jobs, 1),
            count(running, 0),
        )
        return all(look(people) for people in self.each.values())

    def ending(self) -> Object:
        """Return what there is, comparable between runs."""
        return {
            place: {each.name: ending(people, each, place) for each in SCENARIOS}
            for place, people in self.each.items()
        }

    def told(self) -> frozenset[tuple[str, ...]]:
        """Return all Warning Events."""
        found = self.each.items()
        return frozenset((p, *each) for p, people in found for each in warnings(people, p))

    def _share(self, value: str) -> None:
        self.system.apply(source(DB, {"user": value}), USER, force=True)


def _memcached(people: RealPeople, size: int) -> None:
    people.apply({**CACHE, "spec": {"size": size}}, USER, force=True)


def _bluegreen(people: RealPeople, colour: str) -> None:
    blue, green = (
        {"containers": [{"name": name, "image": "example/echo:1"}]} for name in ("blue", "green")
    )
    spec = {"routeTo": colour, "blueSpec": blue, "greenSpec": green}
    people.apply({**DEMO, "spec": spec}, USER, force=True)


def _cronjob(people: RealPeople, *, suspend: bool) -> None:
    pod = {"restartPolicy": "Never", "containers": [{"name": "hello", "image": "busybox"}]}
    spec = {
        "schedule": f"@every {INTERVAL}s",
        "startingDeadlineSeconds": 60,
        "successfulJobsHistoryLimit": 1,
        "suspend": suspend,
        "jobTemplate": {"spec": {"template": {"spec": pod}}},
    }
    people.apply({**CRON, "spec": spec}, USER, force=True)


def _finish(people: RealPeople) -> None:
    with contextlib.suppress(Refused):  # what is gone meanwhile has ended
        finish(people)


@dataclass(frozen=True)
class Undisturbed:
    """Where everything comes to, and what is told, with one replica and no trouble."""

    ending: Object = field(default_factory=dict[str, Any])
    told: frozenset[tuple[str, ...]] = frozenset()


class Load:
    """People who change everything again and again, in a thread of its own."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._change)
        self.turns = 0
        self.error: Exception | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _change(self) -> None:
        try:
            with contextlib.ExitStack() as stack:
                places = Places(self._world, stack)
                while not self._over.wait(PACE):
                    places.turn(self.turns + 1)
                    self.turns += 1
        except Exception as error:  # noqa: BLE001 - told where it is waited for
            self.error = error


class Fleet:
    """Replicas, and all that is seen of them."""

    def __init__(self, world: World, places: Places, operators: list[Operator]) -> None:
        self.world, self.places, self.operators = world, places, operators
        self.run = Run(world, SCENARIOS[0], SYSTEM, places.system, operators)
        self.load = Load(world)
        self.forgotten: tuple[datetime, datetime] | None = None
        """Of what was done in between the store knows nothing any more."""
        self._audit = AuditLog(world.directory / AUDIT_LOG)

    def until(self, fact: Callable[[], Any], what: str, within: float = WAIT_TIMEOUT) -> None:
        """Wait for a fact while what ends is started again, as long as the load goes on."""

        def look() -> Any:
            if self.load.error:
                raise Wrong(f"the load: {self.load.error}")
            return fact()

        self.run.until(self.run.after_news(look), what, within)

    def turns(self, number: int = 2) -> None:
        """Wait until all was changed so many times more."""
        last = self.load.turns + number
        self.until(lambda: self.load.turns >= last, "changes")

    def leases(self) -> list[Object]:
        """Return the Leases of all who share the work."""
        found = self.places.system.every({key: ELECTION[key] for key in ("apiVersion", "kind")})
        return [each for each in found if LABEL in each["metadata"].get("labels", {})]

    def name(self, operator: Operator) -> str:
        """Return a replica's name in its present life, or in the last one that came so far."""
        return sharing.name_of(operator.written())

    def leader(self) -> Operator | None:
        """Return who leads: the holder of its own Lease holds that of the election too."""
        live = self.places.system.get(ELECTION) or {}
        holder = live.get("spec", {}).get("holderIdentity")
        led = {
            each["metadata"]["name"]
            for each in self.leases()
            if holder and each["spec"].get("holderIdentity") == holder
        }
        return next((each for each in self.operators if self.name(each) in led), None)

    def share(self) -> bool:
        """Return whether all serve a part."""
        return sharing.share(self.leases(), [self.name(each) for each in self.operators])

    def serve_without(self, name: str) -> bool:
        """Return whether all is served by others than the one of that name."""
        names = {self.name(each) for each in self.operators} - {name}
        return sharing.served(self.leases(), names) == ALL

    def written(self) -> Writers:
        """Return what was written so far."""
        return Writers.of(self._audit.since())

    def finish(self, known: Undisturbed) -> None:
        """Come to where one replica comes that works alone."""
        self.places.end()
        self.rest()
        found: Object = {}

        def arrived() -> bool:
            nonlocal found
            found = self.places.ending()
            return found == known.ending

        try:
            self.until(arrived, "the end", within=20)
        except AssertionError as error:
            lines = difference(known.ending, found)
            raise Wrong("; ".join(["in the end", *lines[:6]])) from error

    def rest(self) -> None:
        """Wait until all is served, and nothing is written any more."""
        self.until(self.places.ended, "all is served")
        self.run.until(lambda: self.run.silent() >= LAST_QUIET, "no more writes")

    def broken(self, known: Undisturbed, duration: float) -> list[str]:
        """Return what does not hold, a line each."""
        entries = self._audit.since()
        remembered = [each for each in entries if not self._is_forgotten(each)]
        asked = [one for line in self.run.lines for one in line.record]
        told = self.places.told()
        usual = {each[2] for each in known.told} | OF_TROUBLE
        if self.forgotten:
            usual |= {"FieldRestored"}
        written = Writers.of(entries)
        return [
            *(f"nothing is written in {place}" for place in PLACES if not written.turns(place)),
            *written.broken(duration),
            *started_twice(remembered, INTERVAL),
            *written_wrongly(asked),
            *(line for people in self.places.each.values() for line in told_twice(people)),
            *(f"no Event {each}" for each in sorted(known.told - told)),
            *(f"an Event {each}" for each in sorted(told - known.told) if each[2] not in usual),
            *failed(self.operators),
        ]

    def _is_forgotten(self, entry: Entry) -> bool:
        if not self.forgotten:
            return False
        since, until = self.forgotten
        return since < datetime.fromisoformat(entry["stageTimestamp"]) < until

    def longest(self) -> float:
        """Return the most seconds that a change of a Memcached waited for the first write."""
        entries = self._audit.since(verbs=("patch",), resource="memcacheds")
        waits = [0.0]
        for place, writes in self.written().places.items():
            answers = [each.began for each in writes if each.done and each.name == _name(CACHE)]
            for entry in entries:
                if entry["objectRef"]["namespace"] != place or not _is_change(entry):
                    continue
                began = datetime.fromisoformat(entry["requestReceivedTimestamp"])
                first = bisect_left(answers, began)
                if first < len(answers):
                    waits.append((answers[first] - began).total_seconds())
        return max(waits)


def _name(identity: Object) -> str:
    return identity["metadata"]["name"]


def _is_change(entry: Entry) -> bool:
    is_theirs = f"fieldManager={USER}&" in f"{entry['requestURI']}&"
    return is_theirs and entry["responseStatus"]["code"] == 200


@contextlib.contextmanager
def fleet(world: World, replicas: int, *flags: str) -> Iterator[Fleet]:
    """Lay out replicas, with everything there that they are to serve."""
    with contextlib.ExitStack() as stack:
        places = Places(world, stack)
        places.open()
        lines = [stack.enter_context(world.proxy.line()) for _ in range(replicas)]
        operators = [Operator(world, line, SYSTEM, *FLAGS, *flags) for line in lines]
        for operator in operators:
            stack.callback(operator.kill)
        yield Fleet(world, places, operators)


def undisturbed(world: World) -> Undisturbed:
    """Return what one replica comes to that works alone."""
    with fleet(world, 1) as alone:
        alone.operators[0].start()
        alone.until(alone.places.begun, "all is served")
        alone.places.contest()
        with alone.load:
            alone.turns()
        alone.places.end()
        alone.rest()
        return Undisturbed(alone.places.ending(), alone.places.told())
