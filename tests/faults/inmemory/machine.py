"""Machine: operator processes over the API server in memory, on a loop whose time jumps.

A process is `hedgerow.app.run` itself, from settings to a clean stop: leader election, watches,
queue, passes and retries are the operator's own. What is replaced is the way to the cluster
(`connect`), the clock and the receiver of signals; the election's thread is the same loop.
"""

from __future__ import annotations

import asyncio
import random
import sys
import traceback
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from signal import SIGTERM, Signals
from typing import Any

import anyio
import httpx
import structlog
from anyio.abc import TaskGroup

from hedgerow import app
from hedgerow.kube import client
from hedgerow.kube.cluster import Cluster
from hedgerow.kube.fence import unheard
from hedgerow.kube.retry import RetryClock
from hedgerow.kube.session import Session
from hedgerow.kube.wire import Request
from hedgerow.process.leaderelection import thread
from hedgerow.registry import Registry
from hedgerow.runtime import clock as clocks
from hedgerow.runtime.meters import Meters
from hedgerow.serving import loop_latency
from hedgerow.settings import Settings
from hedgerow_testing.virtual import VirtualLoop
from support.operator.inline import inline
from support.operator.registered import ALL
from support.server.apiserver import EPOCH, ApiServer
from support.server.connected import Login

RESTART = 2.0
"""Seconds until a process that ended is started again, as a kubelet does."""
SELDOM = 600.0
"""Seconds between two beats of the pulse: a loop whose time jumps is never late."""
TURN = 1e-6
"""Seconds of one turn of the loop."""
_current: ContextVar[Process] = ContextVar("process")
_connect, _apart, _receiver = client.connect, thread.start, anyio.open_signal_receiver


class Loop(VirtualLoop):
    """A loop on which a moment goes by with each turn as well.

    A wait is rounded to microseconds, and may end a moment early. If no time went by meanwhile, it
    would be as early again for ever.
    """

    def _run_once(self) -> None:
        self.elapsed += TURN
        super()._run_once()


class ProcessLogin(Login):
    """The way of one process to the API server; none any more once the process is dead."""

    def __init__(self, process: Process) -> None:
        super().__init__(process.machine.api, process.name)
        self._process, self._life = process, process.life

    @asynccontextmanager
    async def exchange(self, request: Request, *, read: float) -> AsyncGenerator[Any]:
        if self._process.life != self._life:
            raise httpx.ConnectError("the process is dead")
        async with super().exchange(request, read=read) as answer:
            yield answer


class Process:
    """One replica: a life of the operator after another, on a clock that may be set."""

    def __init__(self, machine: Machine, name: str, settings: Settings) -> None:
        self.machine, self.name, self.settings = machine, name, settings
        self.life = 0
        self.births: list[float] = []
        self.offset = 0.0
        """Seconds by which its wall clock is ahead of the server's."""
        self.dice = random.Random(len(name))  # noqa: S311
        self.meters: list[Meters] = []
        """Those of each life."""
        self.ends: list[BaseException] = []
        """What each life ended with that was not killed or asked to stop."""
        self._scope: anyio.CancelScope | None = None
        self._term: anyio.Event | None = None

    async def live(self) -> None:
        """Run one life after another."""
        _current.set(self)
        while True:
            scope = self._scope = anyio.CancelScope()
            self._term = anyio.Event()
            self.births.append(anyio.current_time())
            with scope:
                try:
                    await app.run(self.settings, self.machine.registry)
                except Exception as error:  # noqa: BLE001 - it is looked at in the end
                    self.ends.append(error)
            self.life += 1
            await anyio.sleep(RESTART)

    def start(self) -> None:
        """Begin its first life."""
        self.machine.tasks.start_soon(self.live)

    def kill(self) -> None:
        """End this life at once: nothing that it does from now on reaches anybody."""
        self.life += 1
        if self._scope:
            self._scope.cancel()

    def terminate(self) -> None:
        """Ask this life to stop."""
        if self._term:
            self._term.set()

    @contextmanager
    def signals(self) -> Iterator[AsyncIterator[Signals]]:
        yield self._signals()

    async def _signals(self) -> AsyncIterator[Signals]:
        if self._term:
            await self._term.wait()
        yield SIGTERM
        await anyio.sleep_forever()


class Machine:
    """The API server, the processes, and all that was logged."""

    def __init__(
        self,
        *,
        replicas: int = 1,
        registry: Registry = ALL,
        process: type[Process] = Process,
        **settings: Any,
    ) -> None:
        self.api = ApiServer(self._wall)
        self.registry = registry
        self.logs: list[dict[str, Any]] = []
        self.tasks: TaskGroup
        given = Settings(
            **{
                "health_probe_bind_address": "0",
                "metrics_bind_address": "0",
                "metrics_secure": False,
                "webhooks": False,
                "leader_elect": True,
                "lease_duration": 180,
                **settings,
            }
        )
        self.processes = [process(self, f"replica-{n}", given) for n in range(replicas)]

    def _wall(self) -> float:
        return EPOCH + anyio.current_time()

    def later(self, seconds: float, act: Callable[[], object]) -> None:
        """Do something after a while."""
        asyncio.get_running_loop().call_later(seconds, act)

    def run(self, main: Callable[[], Any]) -> Any:
        """Return what `main` returns on a loop of its own, on which it may start processes."""

        async def whole() -> Any:
            async with anyio.create_task_group() as self.tasks:
                made = asyncio.ensure_future(main())
                await asyncio.wait([made])
                for process in self.processes:
                    process.kill()
                self.tasks.cancel_scope.cancel()
            return made.result()

        random.seed(1)
        with _replaced(self):
            return anyio.run(whole, backend="asyncio", backend_options={"loop_factory": Loop})


@dataclass
class Clock(clocks.SystemClock):
    """The clock of the process that asks."""

    process: Process = field(default_factory=_current.get)

    def now(self) -> datetime:
        return datetime.fromtimestamp(EPOCH + anyio.current_time() + self.process.offset, UTC)

    def monotonic(self) -> float:
        return anyio.current_time()

    def elapsed(self) -> float:
        return anyio.current_time()

    def jitter(self) -> float:
        return self.process.dice.random()


@asynccontextmanager
async def connect(
    *,
    concurrency: int = client.CONCURRENCY,
    on_exchange: Callable[[str, int, float], object] = unheard,
    **_how: Any,
) -> AsyncGenerator[Cluster]:
    """Connect the process that asks."""
    process = _current.get()
    login: Any = ProcessLogin(process)

    async def log_in() -> Any:
        return ProcessLogin(process)

    timing = RetryClock(draw=process.dice.random, elapsed=anyio.current_time)
    session = Session(
        login, log_in, concurrency=concurrency, timing=timing, on_exchange=on_exchange
    )
    yield Cluster(session)


def _meters(*args: Any) -> Meters:
    meters = Meters(*args)
    _current.get().meters.append(meters)
    return meters


def _open_signal_receiver(*_signals: Signals) -> Any:
    return _current.get().signals()


@contextmanager
def _replaced(machine: Machine) -> Iterator[None]:
    """Put the machine's own in place of what reaches out, wherever it was imported."""
    places = _places()
    for module, name, _, ours in places:
        setattr(module, name, ours)
    app.Meters = _meters  # type: ignore[misc,assignment]
    anyio.open_signal_receiver = _open_signal_receiver  # type: ignore[assignment]
    beat = loop_latency.BEAT
    loop_latency.BEAT = SELDOM

    def note(_logger: Any, level: str, entry: Any) -> Any:
        process = _current.get(None)
        entry["process"], entry["level"] = process.name if process else "", level
        if entry.pop("exc_info", None):
            entry["error"] = "".join(traceback.format_exception(sys.exception()))
        machine.logs.append(dict(entry))
        raise structlog.DropEvent

    before = structlog.get_config()
    structlog.configure(
        processors=[structlog.contextvars.merge_contextvars, note], cache_logger_on_first_use=False
    )
    try:
        yield
    finally:
        structlog.configure(**before)
        anyio.open_signal_receiver = _receiver
        loop_latency.BEAT = beat
        app.Meters = Meters
        for module, name, real, _ in places:
            setattr(module, name, real)


@cache
def _places() -> list[tuple[Any, str, Any, Any]]:
    """Find where the real ones were imported."""
    ours = {id(_connect): connect, id(clocks.SystemClock): Clock, id(_apart): inline}
    return [
        (module, name, value, ours[id(value)])
        for path, module in list(sys.modules.items())
        if path.startswith("hedgerow.")
        for name, value in list(vars(module).items())
        if id(value) in ours
    ]
