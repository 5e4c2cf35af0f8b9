"""Fleet: operators that divide a dozen namespaces under load, on a server of their own.

In each namespace is a resource of each controller that divides, and a copy of a Secret, which one
operator makes for all. People change all of it again and again; CronJobs start Jobs meanwhile.
"""

from __future__ import annotations

import contextlib
import threading
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Self

import anyio

from faults.built_in import DB, coded, source
from faults.endings import difference, ending, warnings
from faults.people import RealPeople, Refused
from faults.real import PACE as REAL_PACE
from faults.real import Operator, RealRun, World
from faults.run import Wrong
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
from faults.troubles import Off
from faults.verdict import OF_TROUBLE, failed, told_twice, written_wrongly
from hedgerow.shard import Shard, lease_name
from hedgerow_testing.audit_log import AuditLog
from support.cluster.writers import Entry, Writers, started_twice

AUDIT_LOG = "audit.log"
"""The name of the file in a world's directory."""
SYSTEM = "divided"
PLACES = tuple(f"{letter}-shared" for letter in "abcdefghijkl")
COPY = target("v1", "Secret", "app")
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
DURATION = 9.0
"""Seconds that a Lease lasts."""
ELECTED = ("--leader-elect", "--lease-duration", f"{DURATION:.0f}s")
Flags = tuple[str, ...]


def division(count: int) -> list[Flags]:
    """Return the flags of each shard of so many; 0 is one operator that is elected for all."""
    shards = [("--shard", str(Shard(number, count))) for number in range(count)]
    return [(*ELECTED, *shard) for shard in shards or [()]]


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
    """Operators of one division or several, and all that is seen of them."""

    def __init__(self, world: World, places: Places, divisions: list[list[Operator]]) -> None:
        self.world, self.places, self.divisions = world, places, divisions
        self.all = [operator for each in divisions for operator in each]
        self.run = RealRun(world, SCENARIOS[0], SYSTEM, places.system, [])
        self.load = Load(world)
        self.offs: dict[str, Off] = {}
        self._audit = AuditLog(world.directory / AUDIT_LOG)

    def begin(self, division: list[Operator]) -> None:
        """Start all of a division; they are started again whenever they end."""
        for operator in division:
            operator.line.trouble = self.offs[operator.line.client] = Off()
            operator.start()
        self.run.operators += division

    def leave(self, division: list[Operator]) -> None:
        """Start none of a division again."""
        self.run.operators = [each for each in self.run.operators if each not in division]

    def works(self, operator: Operator) -> bool:
        """Return whether it holds its Lease, and nothing keeps it from working."""
        return operator.measured().get("hedgerow_leader") == 1

    def work(self, division: list[Operator]) -> bool:
        """Return whether all of a division work."""
        return all(map(self.works, division))

    def hold(self, division: list[Operator]) -> bool:
        """Return whether all of a division hold their Leases, whether they work or not."""
        return all(self._holds(operator.flags) for operator in division)

    def _holds(self, flags: Flags) -> bool:
        shard = Shard.parse(flags[flags.index("--shard") + 1]) if "--shard" in flags else None
        live = self.places.system.get(
            target("coordination.k8s.io/v1", "Lease", lease_name("hedgerow", shard))
        )
        return bool((live or {}).get("spec", {}).get("holderIdentity"))

    def until(self, fact: Callable[[], Any], what: str, within: float = REAL_PACE.patience) -> None:
        """Wait for a fact while what ends is started again, as long as the load goes on."""

        def look() -> Any:
            if self.load.error:
                raise Wrong(f"the load: {self.load.error}")
            return fact()

        anyio.run(self.run.until, look, what, within)

    def turns(self, number: int = 2) -> None:
        """Wait until all was changed so many times more."""
        last = self.load.turns + number
        self.until(lambda: self.load.turns >= last, "changes")

    def written(self) -> Writers:
        """Return what was written so far."""
        return Writers.of(self._audit.since())

    def finish(self, known: Undisturbed) -> None:
        """Come to where one operator comes that works alone."""
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
        anyio.run(self.run.quiet, REAL_PACE.last_quiet)

    def broken(self, known: Undisturbed, divisions: list[int]) -> list[str]:
        """Return what does not hold, a line each, if these divisions wrote after each other."""
        entries = self._audit.since()
        asked = [one for operator in self.all for one in operator.line.record]
        told = self.places.told()
        usual = {each[2] for each in known.told} | OF_TROUBLE
        written = Writers.of(entries)
        wrote = written.divisions()
        return [
            *(f"nothing is written in {place}" for place in PLACES if not written.turns(place)),
            *([f"{wrote} wrote, not {divisions}"] if wrote != divisions else []),
            *written.broken(DURATION),
            *started_twice(entries, INTERVAL),
            *written_wrongly(asked),
            *(line for people in self.places.each.values() for line in told_twice(people)),
            *(f"no Event {each}" for each in sorted(known.told - told)),
            *(f"an Event {each}" for each in sorted(told - known.told) if each[2] not in usual),
            *failed(self.all),
        ]

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
def fleet(world: World, *divisions: list[Flags]) -> Iterator[Fleet]:
    """Lay out operators, each with its flags, and everything that they are to serve."""
    with contextlib.ExitStack() as stack:
        places = Places(world, stack)
        places.open()
        laid_out: list[list[Operator]] = []
        for each in divisions:
            lines = [stack.enter_context(world.proxy.line()) for _ in each]
            pairs = zip(lines, each, strict=True)
            laid_out.append([Operator(world, line, SYSTEM, *FLAGS, *own) for line, own in pairs])
        found = Fleet(world, places, laid_out)
        for operator in found.all:
            stack.callback(operator.kill)
        yield found


def undisturbed(world: World) -> Undisturbed:
    """Return what one operator comes to that works alone."""
    with fleet(world, [()]) as alone:
        alone.begin(alone.divisions[0])
        alone.until(alone.places.begun, "all is served")
        alone.places.contest()
        with alone.load:
            alone.turns()
        alone.places.end()
        alone.rest()
        return Undisturbed(alone.places.ending(), alone.places.told())
