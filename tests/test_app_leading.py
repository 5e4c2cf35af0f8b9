"""One operator process among its replicas: when it works, and how each way of ending looks."""

from __future__ import annotations

import json
import signal
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio
import pytest
from structlog.testing import capture_logs

from hedgerow import app
from hedgerow.cli import main
from hedgerow.kube.errors import Unreachable
from hedgerow.process import leadership
from hedgerow.process.leaderelection import thread
from hedgerow.process.leaderelection.elector import LeadershipLost
from hedgerow.process.leaderelection.record import LEASES
from hedgerow_testing.memory.cluster import MemoryCluster, Sent
from hedgerow_testing.memory.watched import Watched
from hedgerow_testing.virtual import BACKEND, VirtualClock, VirtualLoop
from support.operator.inline import inline
from support.operator.operating import BLUEGREEN, Process, quiet
from support.operator.registered import REGISTRY

pytestmark = pytest.mark.anyio

LEASE: dict[str, Any] = {
    "apiVersion": LEASES.group_version,
    "kind": LEASES.kind,
    "metadata": {"name": "hedgerow", "namespace": "hedgerow-system"},
}

VACANT = {"holderIdentity": "", "leaseDurationSeconds": 1}


@pytest.fixture
def anyio_backend() -> object:
    return BACKEND


class Replica(Process):
    """One of several, in virtual time; `fenced` is what it writes through once it leads."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(monkeypatch)
        self.lease_cluster = MemoryCluster(self.server)
        self.fenced: Watched | None = None
        self.wrote = anyio.Event()
        monkeypatch.setattr(leadership, "connect", self._connect)
        monkeypatch.setattr(thread, "start", inline)
        monkeypatch.setattr(app, "SystemClock", VirtualClock)
        monkeypatch.setattr(self.cluster, "fenced", self._fence, raising=False)

    @asynccontextmanager
    async def _connect(self, **_how: Any) -> AsyncGenerator[MemoryCluster]:
        yield self.lease_cluster

    def _fence(self, permit: Callable[[], float], unanswered: Callable[[], object]) -> Any:
        self.fenced = MemoryCluster.fenced(self.cluster, permit, unanswered)  # type: ignore[assignment]
        return self.fenced

    @property
    def holder(self) -> str:
        live = self.server.get(LEASE)
        return live["spec"]["holderIdentity"] if live else ""

    def held_by(self, somebody: str, **more: Any) -> None:
        """Have somebody hold the Lease, as another replica writes it."""
        live = self.server.get(LEASE) or {"spec": {"leaseDurationSeconds": 15}}
        spec = live["spec"] | {"holderIdentity": somebody, **more}
        self.server.apply({**LEASE, "spec": spec}, "hedgerow-lease")

    def on_lease(self, hook: Callable[[Sent], Awaitable[None]]) -> None:
        self.lease_cluster.before = hook

    def hold_writes(self) -> anyio.Event:
        gate = super().hold_writes()
        held = self.cluster.before

        async def hook(sent: Sent) -> None:
            if sent.writes:
                self.wrote.set()
            await held(sent)

        self.cluster.before = hook
        return gate


@pytest.fixture
def replica(monkeypatch) -> Replica:
    return Replica(monkeypatch)


@pytest.fixture
def patient(monkeypatch) -> None:
    """Have running passes take as long as they like."""
    monkeypatch.setattr(app, "GRACE", 3600.0)


ELECTED = partial(quiet, leader_elect=True)
HELD = 9.0
"""Seconds for which a write has no answer; after ten it is given up."""


def events(logs: list[Any]) -> list[str]:
    kept = {"leading", "standing by", "stopping", "lease released", "stopped"}
    return [entry["event"] for entry in logs if entry["event"] in kept]


class TestStandingBy:
    async def test_it_writes_nothing_while_another_leads_and_asked_to_stop_it_ends_well(
        self, replica
    ):
        replica.server.apply(BLUEGREEN, "user")
        replica.held_by("another")
        with capture_logs() as logs:
            async with anyio.create_task_group() as tasks:
                await tasks.start(app.run, ELECTED(), REGISTRY)
                await anyio.sleep(14)
                signal.raise_signal(signal.SIGTERM)

        assert anyio.current_time() == pytest.approx(14, abs=0.1)
        assert events(logs) == ["standing by", "stopping", "stopped"]
        assert (replica.cluster.tried, replica.cluster.writes) == ([], [])
        assert replica.lease_cluster.writes == []
        assert (replica.holder, replica.closed) == ("another", True)

    async def test_it_works_once_the_other_is_not_heard_of_any_more(self, replica):
        replica.server.apply(BLUEGREEN, "user")
        replica.held_by("another")
        gate = replica.hold_writes()
        async with anyio.create_task_group() as tasks:
            await tasks.start(app.run, ELECTED(), REGISTRY)
            await replica.wrote.wait()
            gate.set()
            assert anyio.current_time() >= 15
            assert replica.holder not in {"", "another"}
            signal.raise_signal(signal.SIGTERM)

    async def test_without_a_right_it_leads_once_nobody_else_does_and_serves_what_it_can(
        self, replica
    ):
        replica.server.apply(BLUEGREEN, "user")
        replica.server.apply({**LEASE, "spec": VACANT}, "hedgerow-lease")
        replica.denied.add(("create", "jobs"))
        gate = replica.hold_writes()
        with capture_logs() as logs:
            async with anyio.create_task_group() as tasks:
                await tasks.start(app.run, ELECTED(), REGISTRY)
                await replica.wrote.wait()
                gate.set()
                assert 15 <= anyio.current_time() <= 18
                signal.raise_signal(signal.SIGTERM)

        [line] = [entry for entry in logs if entry["event"] == "rights lack"]
        assert line["lacking"] == "create jobs.batch in all namespaces for bluegreen, cronjob"


class TestLosing:
    async def lose(self, replica: Replica, lose: Callable[[], None]) -> ExceptionGroup[Any]:
        """Lose the lease in the middle of a pass; give what the process ends with."""
        replica.server.apply(BLUEGREEN, "user")
        replica.hold_writes()

        async def until_lost() -> None:
            async with anyio.create_task_group() as tasks:
                await tasks.start(app.run, ELECTED(), REGISTRY)
                await replica.wrote.wait()
                lose()

        with pytest.raises(ExceptionGroup) as caught:
            await until_lost()
        return caught.value

    async def test_a_lease_taken_by_another_ends_the_process_at_once(self, replica):
        ended = await self.lose(replica, lambda: replica.held_by("another"))

        assert ended.subgroup(lost("the lease is held by another now"))
        assert len(replica.cluster.writes) == 1
        assert (replica.fenced.open, replica.fenced.permit(), replica.closed) == (0, 0, True)
        assert replica.holder == "another"

    async def test_a_lease_that_cannot_be_renewed_does_so_at_the_deadline(self, replica):
        since: list[float] = []

        async def away(_: Sent) -> None:
            raise Unreachable("connection refused", sent=False)

        def cut_off() -> None:
            since.append(anyio.current_time())
            replica.on_lease(away)

        ended = await self.lose(replica, cut_off)

        assert ended.subgroup(lost("the lease was not renewed for 10 s"))
        assert anyio.current_time() - since[0] <= 10 + 2.1  # the deadline, and giving it up
        assert len(replica.cluster.writes) == 1


def lost(line: str) -> Callable[[BaseException], bool]:
    def is_it(error: BaseException) -> bool:
        return isinstance(error, LeadershipLost) and str(error).startswith(line)

    return is_it


class TestSigterm:
    @pytest.mark.usefixtures("patient")
    async def test_passes_end_first_then_the_lease_is_given_up_then_the_process_ends(self, replica):
        replica.server.apply(BLUEGREEN, "user")
        gate = replica.hold_writes()
        given_up: list[tuple[int, int, bool]] = []

        async def watch_release(sent: Sent) -> None:
            if sent.verb == "apply" and not sent.body["spec"]["holderIdentity"]:
                writes = len(replica.cluster.writes)
                given_up.append((writes, replica.fenced.open, replica.closed))

        replica.on_lease(watch_release)
        with capture_logs() as logs:
            async with anyio.create_task_group() as tasks:
                await tasks.start(app.run, ELECTED(), REGISTRY)
                await replica.wrote.wait()
                signal.raise_signal(signal.SIGTERM)
                await anyio.sleep(HELD)  # the lease is renewed as long as the pass takes
                assert replica.holder
                assert given_up == []
                gate.set()

        assert given_up == [(4, 0, False)]
        assert (replica.holder, replica.closed) == ("", True)
        assert events(logs) == ["standing by", "leading", "stopping", "lease released", "stopped"]

    @pytest.mark.usefixtures("patient")
    async def test_no_new_work_is_taken_meanwhile(self, replica):
        replica.server.apply(BLUEGREEN, "user")
        gate = replica.hold_writes()
        async with anyio.create_task_group() as tasks:
            await tasks.start(app.run, ELECTED(), REGISTRY)
            await replica.wrote.wait()
            signal.raise_signal(signal.SIGTERM)
            await anyio.sleep(1)
            meta = BLUEGREEN["metadata"] | {"name": "late"}
            replica.server.apply(BLUEGREEN | {"metadata": meta}, "user")
            replica.fenced.wake()
            await anyio.sleep(HELD - 1)
            gate.set()

        assert {sent.name for sent in replica.cluster.writes if "late" in sent.name} == set()
        assert len(replica.cluster.writes) == 4

    async def test_the_lease_is_kept_while_a_write_of_an_abandoned_pass_may_arrive(
        self, replica, monkeypatch
    ):
        monkeypatch.setattr(app, "GRACE", 5.0)
        replica.server.apply(BLUEGREEN, "user")
        replica.hold_writes()
        async with anyio.create_task_group() as tasks:
            await tasks.start(app.run, ELECTED(), REGISTRY)
            await replica.wrote.wait()
            began = anyio.current_time()
            signal.raise_signal(signal.SIGTERM)

        assert anyio.current_time() - began == pytest.approx(5, abs=0.5)
        assert replica.holder != ""
        assert len(replica.cluster.writes) == 1


class TestExitCodes:
    """The whole command, from its flags to its exit code, in virtual time."""

    @pytest.fixture
    def hedgerow(self, monkeypatch, replica) -> Callable[[], int]:
        monkeypatch.setattr(app, "configure", lambda *_, **__: None)
        monkeypatch.setattr(app, "tune_for_event_loop", lambda: None)
        virtual = partial(anyio.run, backend_options={"loop_factory": VirtualLoop})
        monkeypatch.setattr(app.anyio, "run", virtual)

        def typed() -> int:
            off = ["--metrics-bind-address", "0", "--health-probe-bind-address", "0"]
            with capture_logs(), pytest.raises(SystemExit) as ended:
                main(["run", "--leader-elect", *off])
            return int(ended.value.code or 0)

        return typed

    def test_a_lost_lease_is_one_line_of_the_log_and_exit_code_1(self, replica, hedgerow, capsys):
        async def steal(sent: Sent) -> None:
            if sent.writes and replica.holder != "another":
                replica.held_by("another")

        replica.server.apply(BLUEGREEN, "user")
        replica.cluster.before = steal

        assert hedgerow() == 1
        [line] = capsys.readouterr().err.splitlines()
        assert json.loads(line)["error"] == "the lease is held by another now"

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
    def test_a_standing_replica_that_is_asked_to_stop_ends_with_0(
        self, replica, hedgerow, capsys, number
    ):
        async def ask(_: Sent) -> None:
            signal.raise_signal(number)

        replica.held_by("another")
        replica.on_lease(ask)

        assert hedgerow() == 0
        assert capsys.readouterr().err == ""

    def test_a_leader_that_is_asked_to_stop_ends_with_0(self, replica, hedgerow, capsys):
        async def ask(sent: Sent) -> None:
            if sent.writes and len(replica.cluster.writes) == 3:
                signal.raise_signal(signal.SIGTERM)

        replica.server.apply(BLUEGREEN, "user")
        replica.cluster.before = ask

        assert hedgerow() == 0
        assert replica.holder == ""
        assert capsys.readouterr().err == ""
