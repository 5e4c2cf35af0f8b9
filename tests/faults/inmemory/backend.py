"""Backend: runs on the cluster in memory, in which minutes take no time.

The troubles of a line meet each request of a process between the operator's client and the API
server in memory, and each line of a watch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, TypeVar

import anyio
import httpx

from faults.exchange import Act, Drop, Exchange, Line, Reply, Silence, Trouble, Watch
from faults.inmemory import more
from faults.inmemory.machine import Machine, Process
from faults.inmemory.people import ModelPeople
from faults.run import Pace, Run, Wrong
from faults.scenario import Object, Scenario, jobs
from support.operator.registered import ALL
from support.server import apiserver
from support.server.apiserver import LATENCY
from support.server.store import Entry, Store
from support.server.streams import Opening, Stream

T = TypeVar("T")
PACE = Pace(
    quiet=3.0,
    last_quiet=400.0,  # the longest backoff takes 300
    collected=5.0,
    # It may have to wait ten minutes for what is due, be cut off for some at that time, and wait
    # three more for the Lease that it could not give up.
    patience=1800.0,
    silent=1800.0,
    outage=150.0,
    long_outage=150.0,
    short=5.0,
    long=150.0,
    lag=20.0,
    late=15.0,
    held=60.0,
)
AFTER = 60.0
"""Seconds that a new life has for taking the Lease and writing something that nobody asked for."""
SOON = 1.0
"""Seconds until the end of a namespace comes."""
RESTORING = 20.0
"""Seconds that the API server is away while etcd is restored."""
NEXT_LOOK, SETTLED = 5.0, 0.3
"""Seconds between two looks, and without any change before one is worth it."""
NAMESPACE = "faults-x0000ff"


class MemoryLine(Line):
    """The way of one process to the API server in memory."""

    def __init__(self, process: MemoryOperator) -> None:
        super().__init__(process.name)
        self._api = process.machine.api
        self.asked: dict[apiserver.Exchange, Exchange] = {}

    @property
    def streams(self) -> dict[Exchange, Watch]:
        ours = (s for s in self._api.streams if s.exchange.client == self.client)
        return {self.asked[stream.exchange]: stream for stream in ours}

    async def call(self, act: Callable[[], object]) -> None:
        act()

    def note(self, exchange: apiserver.Exchange) -> Exchange:
        """Put a request on record."""
        request = exchange.request
        asked = Exchange(
            self.client,
            request.method,
            request.path,
            dict(request.params),
            {"content-type": request.content_type},
            exchange.body,
            exchange.sent,
            self.step,
        )
        self.asked[exchange] = asked
        self.record.append(asked)
        return asked


class MemoryOperator(Process):
    """A process, as runs know it."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.line = MemoryLine(self)

    def restart(self) -> None:
        """End this life: the next one comes by itself."""
        self.kill()

    def set_clock(self, seconds: float) -> None:
        self.offset = seconds

    def entries(self) -> list[Object]:
        ends = ({"event": repr(e), "level": "error"} for e in self.ends if not _is_expected(e))
        return [*ends, *(e for e in self.machine.logs if e["process"] == self.name)]

    def complaints(self) -> list[Object]:
        return [e for e in self.entries() if e["level"] in {"warning", "error", "critical"}]

    def measured(self) -> dict[str, float]:
        families = self.meters[-1].registry.collect()
        samples = (sample for family in families for sample in family.samples)
        return {_series(sample.name, sample.labels): sample.value for sample in samples}


def _series(name: str, labels: Mapping[str, str]) -> str:
    told = ",".join(f'{key}="{value}"' for key, value in labels.items())
    return f"{name}{{{told}}}"


def _is_expected(error: BaseException) -> bool:
    """Whether a life may end so: a pod's next one makes it good."""
    if isinstance(error, BaseExceptionGroup):
        return all(map(_is_expected, error.exceptions))
    return type(error).__name__ in {"LeadershipLost", "Unreachable", "Unavailable", "Throttled"}


class MemoryPeople(ModelPeople):
    """People, and an administrator."""

    def __init__(self, store: Store, scenario: Scenario) -> None:
        super().__init__(store, NAMESPACE, scenario.elsewhere)
        self._store = store
        self._own: Object = {"apiVersion": "v1", "kind": "Namespace"}
        self._own["metadata"] = {"name": NAMESPACE}

    def version(self, back: int = 0) -> str:
        """Return the version that the store has come to, or the one of so many changes before."""
        versions = [entry.version for entry in self._store.log if entry.key[1] != "Lease"]
        return str(versions[max(0, len(versions) - 1 - back)] if versions else 0)

    def release(self, target: Object) -> None:
        if self.get(target) is not None:
            self.edit(target, {"metadata": {"finalizers": None}}, "admin")

    def close_namespace(self) -> None:
        self._store.terminate(NAMESPACE)
        held = {"metadata": {"finalizers": ["kubernetes"]}}
        self._store.merge(self._own, held, "kube-apiserver")
        self._store.delete(self._own)

    def empty_namespace(self) -> None:
        """Have all be gone that is in the namespace, and the namespace."""
        for key, obj in self._store.all().items():
            if key[2] == NAMESPACE:
                self._store.merge(obj, {"metadata": {"finalizers": None}}, "namespace-controller")
                if self._store.peek(obj) is not None:
                    self._store.delete(obj)
        self._store.merge(self._own, {"metadata": {"finalizers": None}}, "namespace-controller")
        self._store.forget_namespace(NAMESPACE)


class MemoryRun(Run):
    """A run in memory."""

    people: MemoryPeople

    def __init__(self, machine: Machine, scenario: Scenario) -> None:
        people = MemoryPeople(machine.api.store, scenario)
        super().__init__(scenario, NAMESPACE, people, list(machine.processes), PACE)
        self._machine, self._api = machine, machine.api
        self._lines = {operator.name: operator.line for operator in self.operators}
        self._changed = anyio.Event()
        self._away_until = self._last_due = 0.0
        self._kept = 0
        self._api.hook, self._api.watch_hook = self._request, self._watch
        self._api.line_hook = self._told
        before = self._api.store.on_entry

        def on_entry(entry: Entry) -> None:
            before(entry)
            if entry.key[1] != "Lease":
                self._changed.set()

        self._api.store.on_entry = on_entry

    def begin(self, number: int) -> None:
        for line in self.lines:
            line.step = number
            line.trouble.begins(line, number)

    def strike(self, act: Callable[[], object]) -> None:
        act()

    def cut(self, line: Line) -> None:
        for watch in line.streams.values():
            watch.cut()

    async def news(self) -> None:
        with anyio.move_on_after(NEXT_LOOK):
            await self._changed.wait()
        while self._changed.is_set():
            self._changed = anyio.Event()
            with anyio.move_on_after(SETTLED):
                await self._changed.wait()

    async def nap(self, seconds: float) -> None:
        await anyio.sleep(seconds)

    def later(self, seconds: float, act: Callable[[], object]) -> None:
        self._last_due = max(self._last_due, anyio.current_time() + seconds)
        self._machine.later(seconds, act)

    async def later_done(self) -> None:
        await anyio.sleep_until(self._last_due)

    async def rest(self, wanted: Object | None = None) -> None:
        """Nothing is written any more, by another life neither, and all stays as it is."""
        await super().rest(wanted)
        left, before = self.ending(), anyio.current_time()
        for operator in self.operators:
            operator.line.trouble = Trouble()
            operator.terminate()
        await anyio.sleep(AFTER)
        writes = (one for line in self.lines for one in line.writes() if one.began > before)
        # An Event that was told before is there already, and another one is not made.
        later = [w for w in writes if not ("/events/" in w.path and w.done == HTTPStatus.CONFLICT)]
        if later:
            raise Wrong(f"a new life writes: {', '.join(map(str, later[:3]))}")
        if self.ending() != left:
            raise Wrong("it does not stay as it was")

    def observed(self) -> Iterable[str]:
        """No start is lost while an operator is there to make it."""
        return more.lost(jobs(self.people)) if self.scenario.name == "cronjob-on-time" else ()

    def versions(self) -> Counter[str]:
        return Counter(entry.key[1] for entry in self._api.store.log)

    # --- the API server -----------------------------------------------------------------------

    def take_away(self, components: Sequence[str], seconds: float) -> None:
        self._away_until = anyio.current_time() + seconds
        for stream in list(self._api.streams):
            stream.cut()
        if components:  # what happened before is in no cache of it any more
            self._api.compacted = self._api.store.version + 1

    def take_backup(self) -> None:
        self._kept = self._api.store.version

    def restore_backup(self) -> None:
        self._api.store.restore(self._kept)
        self.take_away((), RESTORING)

    def make_namespace_anew(self) -> None:
        identity = self.scenario.resource
        live = self.people.get(identity)
        self.people.close_namespace()

        def anew() -> None:
            self.people.empty_namespace()
            self.people.open_namespace(NAMESPACE)
            if live is not None:
                self.people.apply({**identity, **self.scenario.written(live)}, "user")

        self.later(SOON, anew)

    async def _request(self, exchange: apiserver.Exchange, act: apiserver.Act) -> apiserver.Reply:
        """Let a request through, or not."""
        asked = self._lines[exchange.client].note(exchange)

        async def carried_out() -> Reply:
            reply = act()
            asked.done, asked.answer = reply.code, reply.body if asked.writes else b""
            return Reply(reply.code, reply.body, dict(reply.headers))

        reply = await self._met(asked, carried_out)
        await anyio.sleep(LATENCY / 2)
        return apiserver.Reply(reply.status, reply.body, reply.headers)

    async def _watch(self, exchange: apiserver.Exchange, _: bool) -> Opening | apiserver.Reply:
        """Open a watch, or not."""
        asked = self._lines[exchange.client].note(exchange)

        async def opened() -> Reply:
            return Reply(200, opens=True)

        reply = await self._met(asked, opened)
        await anyio.sleep(LATENCY / 2)
        if not reply.opens:
            return apiserver.Reply(reply.status, reply.body, reply.headers)
        return Opening(int(asked.older or 0), asked.lag)

    def _told(self, stream: Stream, told: bytes) -> None:
        line = self._lines[stream.exchange.client]
        line.trouble.event(line, line.asked[stream.exchange], told, stream.send)

    async def _met(self, asked: Exchange, act: Act) -> Reply:
        line = self._lines[asked.client]
        life = self._life(line)
        await anyio.sleep(LATENCY / 2)
        if anyio.current_time() < self._away_until:
            raise httpx.ConnectError("connection refused")
        try:
            return await line.trouble.request(line, asked, act)
        except (Drop, Silence) as error:
            if isinstance(error, Silence) or self._life(line) != life:
                await anyio.sleep_forever()
            if error.refused:
                raise httpx.ConnectError("connection refused") from None
            raise httpx.ReadError("connection reset by peer") from None
        finally:
            asked.ended = anyio.current_time()

    def _life(self, line: Line) -> int:
        return next(one.life for one in self.operators if one.line is line)


class Memory:
    """The backend."""

    pace, name, renewals = PACE, "memory", 8

    def play(
        self,
        scenario: Scenario,
        main: Callable[[Any], Awaitable[T]],
        *,
        replicas: int = 1,
        elected: bool = True,
    ) -> T:
        given = {}
        if scenario.elsewhere:
            names = ",".join(f"{NAMESPACE}-{end}" for end in scenario.elsewhere)
            selector = f"kubernetes.io/metadata.name in ({names})"
            given[scenario.controller] = {"namespace": NAMESPACE, "selector": selector}
        machine = Machine(
            controllers=(scenario.controller,),
            replicas=replicas,
            registry=ALL.configured(given),
            process=MemoryOperator,
            leader_elect=elected,
        )

        async def whole() -> T:
            run = MemoryRun(machine, scenario)
            run.people.settle_in()
            return await main(run)

        return machine.run(whole)
