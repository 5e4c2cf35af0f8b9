"""One operator process: what it starts with, and how it stops."""

from __future__ import annotations

import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from structlog.testing import capture_logs

from hedgerow import app
from hedgerow.kube import errors
from hedgerow.process import api_server, leadership
from hedgerow.process.leaderelection import thread
from hedgerow.process.services import Services
from support.operator.inline import inline
from support.operator.operating import BLUEGREEN, Process, quiet
from support.operator.registered import REGISTRY

pytestmark = pytest.mark.anyio


@pytest.fixture
def process(monkeypatch) -> Process:
    return Process(monkeypatch)


@pytest.fixture
def patient(monkeypatch) -> None:
    """Have running passes take as long as they like."""
    monkeypatch.setattr(app, "GRACE", 3600.0)


class TestStarting:
    async def test_it_says_what_it_is_and_where(self, process):
        settings = quiet(kubeconfig="k", context="c", namespaces=("default",))
        with capture_logs() as logs:
            async with anyio.create_task_group() as tasks:
                await tasks.start(app.run, settings, REGISTRY)
                signal.raise_signal(signal.SIGTERM)

        started = next(entry for entry in logs if entry["event"] == "started")
        assert started["server"] == "https://model.invalid"
        assert started["kubernetes"] == "v1.37.2"
        assert (started["controllers"], started["namespaces"]) == (
            [one.name for one in REGISTRY.chosen(())],
            ["default"],
        )
        (asked,) = process.asked
        assert (asked["kubeconfig"], asked["context"]) == ("k", "c")
        assert asked["user_agent"].startswith("hedgerow/")

    async def test_a_kubernetes_that_is_not_supported_is_told_of(self, process, monkeypatch):
        async def version(_path: str) -> dict[str, str]:
            return {"gitVersion": "v1.29.4"}

        monkeypatch.setattr(process.cluster, "get", version, raising=False)
        with capture_logs() as logs:
            async with anyio.create_task_group() as tasks:
                await tasks.start(app.run, quiet(), REGISTRY)
                signal.raise_signal(signal.SIGTERM)

        assert "1.35 is the oldest" in " ".join(entry["event"] for entry in logs)

    async def test_a_controller_named_twice_runs_once(self, process):
        async with anyio.create_task_group() as tasks:
            await tasks.start(app.run, quiet(controllers=("bluegreen", "bluegreen")), REGISTRY)
            await process.until(lambda: "bluegreens" in process.cluster.tried)
            signal.raise_signal(signal.SIGTERM)

        assert process.cluster.tried.count("bluegreens") == 1

    async def test_without_a_cluster_it_does_not_begin(self, process, monkeypatch):
        async def away(_path: str) -> None:
            raise errors.Unreachable("connection refused", sent=False)

        monkeypatch.setattr(process.cluster, "get", away)

        with pytest.raises(errors.Unreachable, match="connection refused"):
            await app.run(quiet(), REGISTRY)
        assert process.closed

    async def test_in_a_pod_it_waits_for_one_and_is_not_ready_meanwhile(self, process, monkeypatch):
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
        monkeypatch.setattr(api_server, "FIRST", 0.01)
        answers, there = process.cluster.get, anyio.Event()
        made: list[Services] = []

        class Kept(Services):
            def __init__(self, *given: Any, **more: Any) -> None:
                super().__init__(*given, **more)
                made.append(self)

        async def away(path: str) -> Any:
            if there.is_set():
                return await answers(path)
            raise errors.Unreachable("connection refused", sent=False)

        monkeypatch.setattr(app, "Services", Kept)
        monkeypatch.setattr(process.cluster, "get", away)
        process.server.apply(BLUEGREEN, "user")
        with capture_logs() as logs:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(app.run, quiet(), REGISTRY)
                await process.until(lambda: [e for e in logs if e["event"].startswith("waiting")])
                ready, live = made[0].health.ready.reasons(), made[0].health.live.reasons()
                assert ready["api-server"].endswith("does not answer: connection refused")
                assert not any(live.values())
                assert process.cluster.writes == []
                there.set()
                await process.until(lambda: len(process.writes) >= 3)
                assert not any(made[0].health.ready.reasons().values())
                signal.raise_signal(signal.SIGTERM)

        said = [entry["event"] for entry in logs]
        assert said[:3] == ["waiting for the API server", "the API server answers", "started"]
        assert process.closed

    async def test_in_a_pod_a_refusal_ends_it_all_the_same(self, process, monkeypatch):
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")

        async def refuse(_path: str) -> None:
            raise errors.Unauthenticated("who?", code=401)

        monkeypatch.setattr(process.cluster, "get", refuse)

        with pytest.raises(ExceptionGroup) as caught:
            await app.run(quiet(), REGISTRY)
        assert caught.group_contains(errors.Unauthenticated)
        assert process.closed

    @pytest.mark.parametrize(
        ("limit", "budget", "needed"),
        [
            (256, None, "320.0 MiB"),
            (319, None, "320.0 MiB"),
            (320, None, ""),
            (512, None, ""),
            (512, "192Mi", ""),
            (512, "256Mi", "576.0 MiB"),
            (None, None, ""),
            (None, "2Gi", ""),
        ],
    )
    async def test_a_memory_limit_that_leaves_too_little_is_told_of_at_the_start(
        self, process, monkeypatch, limit, budget, needed
    ):
        monkeypatch.setattr(app, "memory_limit", lambda: limit and limit * 1024**2)
        with capture_logs() as logs:
            async with anyio.create_task_group() as tasks:
                await tasks.start(app.run, quiet(memory_budget=budget), REGISTRY)
                signal.raise_signal(signal.SIGTERM)

        told = [entry for entry in logs if entry["event"] == "the memory limit is too low"]
        assert [entry["needed"] for entry in told] == ([needed] if needed else [])
        assert all(entry["log_level"] == "warning" for entry in told)

    async def test_the_instance_is_part_of_what_is_written(self, process):
        process.server.apply(BLUEGREEN, "user")
        async with anyio.create_task_group() as tasks:
            await tasks.start(app.run, quiet(instance="two"), REGISTRY)
            await process.until(lambda: len(process.writes) >= 3)
            signal.raise_signal(signal.SIGTERM)

        assert {sent.manager for sent in process.writes} == {"hedgerow-two-bluegreen"}


class TestBeginning:
    """A signal before anything is at work; whatever it waits for may take for ever."""

    @pytest.mark.parametrize("pod", ["", "10.0.0.1"], ids=["outside", "in a pod"])
    @pytest.mark.parametrize("waits_for", ["login", "version", "leader"])
    async def test_it_ends_in_good_order_and_has_written_nothing(
        self, process, monkeypatch, waits_for, pod
    ):
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", pod)
        waiting = anyio.Event()

        async def wait(*_args: object, **_more: object) -> None:
            waiting.set()
            await anyio.sleep_forever()

        places = {
            "version": (process.cluster, "get"),
            "leader": (process.cluster, "list"),
        }
        if waits_for == "login":
            process.log_in = wait
        else:
            monkeypatch.setattr(*places[waits_for], wait)
        with capture_logs() as logs, anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(app.run, quiet(), REGISTRY)
                await waiting.wait()
                signal.raise_signal(signal.SIGTERM)

        assert [entry["event"] for entry in logs] == ["stopping", "stopped"]
        assert (process.cluster.writes, process.cluster.tried, process.closed) == ([], [], True)

    async def test_with_an_election_it_does_so_while_that_logs_in(self, process, monkeypatch):
        waiting = anyio.Event()

        @asynccontextmanager
        async def connect(**_how: object) -> AsyncGenerator[None]:
            waiting.set()
            await anyio.sleep_forever()
            yield

        monkeypatch.setattr(thread, "start", inline)
        monkeypatch.setattr(leadership, "connect", connect)
        with capture_logs() as logs, anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(app.run, quiet(leader_elect=True), REGISTRY)
                await waiting.wait()
                signal.raise_signal(signal.SIGTERM)

        assert [entry["event"] for entry in logs] == ["started", "stopping", "stopped"]
        assert process.writes == []


class TestStopping:
    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
    async def test_the_first_signal_lets_passes_under_way_end(self, process, number):
        process.server.apply(BLUEGREEN, "user")
        gate = process.hold_writes()
        with capture_logs() as logs:
            async with anyio.create_task_group() as tasks:
                await tasks.start(app.run, quiet(), REGISTRY)
                await process.until(lambda: process.writes)
                signal.raise_signal(number)
                await process.until(lambda: any(e["event"] == "stopping" for e in logs))
                assert not process.closed
                gate.set()

        # Both children, the status and the Event of both.
        assert len(process.writes) == 4
        assert [entry["event"] for entry in logs][-1] == "stopped"
        assert (process.cluster.open, process.closed) == (0, True)
        stopping = next(entry for entry in logs if entry["event"] == "stopping")
        assert stopping["signal"] == number.name

    @pytest.mark.usefixtures("patient")
    async def test_the_second_signal_stops_at_once(self, process):
        process.server.apply(BLUEGREEN, "user")
        process.hold_writes()
        with capture_logs() as logs:
            async with anyio.create_task_group() as tasks:
                await tasks.start(app.run, quiet(), REGISTRY)
                await process.until(lambda: process.writes)
                signal.raise_signal(signal.SIGTERM)
                await process.until(lambda: any(e["event"] == "stopping" for e in logs))
                signal.raise_signal(signal.SIGINT)

        assert len(process.writes) == 1
        assert (process.cluster.open, process.closed) == (0, True)
