"""Threads: long work leaves the event loop to others, and the garbage collector as it was."""

from __future__ import annotations

import gc
import sys
import threading
from functools import partial

import anyio
import anyio.lowlevel
import pytest

from hedgerow import threads
from hedgerow.threads import TEXTS, OneThread

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    """A loop on real time: a virtual one cannot wait for threads."""
    return "asyncio"


class TestOneThread:
    async def test_the_loop_turns_meanwhile(self):
        turned = threading.Event()

        async def turn() -> None:
            await anyio.lowlevel.checkpoint()
            turned.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(turn)
            # On the loop itself this would wait for what cannot come.
            assert await TEXTS.run(partial(turned.wait, timeout=60))

    async def test_one_is_worked_on_at_a_time(self):
        begun, running, most = [0], [0], [0]
        let_go = threading.Event()

        def work() -> None:
            begun[0] += 1
            running[0] += 1
            most[0] = max(most[0], running[0])
            let_go.wait(60)
            running[0] -= 1

        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(TEXTS.run, work)
            while not begun[0]:
                await anyio.lowlevel.checkpoint()
            let_go.set()

        assert (begun, most) == ([3], [1])

    async def test_whoever_is_cancelled_does_not_wait_for_it(self):
        begun, let_go, ended = threading.Event(), threading.Event(), threading.Event()

        def work() -> None:
            begun.set()
            let_go.wait(60)
            ended.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(TEXTS.run, work)
            while not begun.is_set():
                await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()

        assert not ended.is_set()
        let_go.set()
        assert ended.wait(60)

    async def test_what_it_raises_is_raised(self):
        with pytest.raises(ZeroDivisionError):
            await TEXTS.run(lambda: 1 / 0)


class TestCollector:
    async def test_it_is_off_during_the_work_and_on_after_it(self):
        assert await TEXTS.run(gc.isenabled) is False
        assert gc.isenabled()

    async def test_it_is_on_once_the_first_of_two_that_overlap_has_ended(self):
        """Otherwise it would stay off for as long as clients keep one thread busy."""
        begun, let_go = threading.Event(), threading.Event()

        def work() -> bool:
            begun.set()
            let_go.wait(60)
            return gc.isenabled()

        async def long() -> None:
            assert await TEXTS.run(work)
            assert gc.isenabled()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(long)
            while not begun.is_set():
                await anyio.lowlevel.checkpoint()
            await OneThread("other").run(lambda: None)
            let_go.set()


async def test_favouring_the_loop_collects_seldom_and_has_threads_give_way(
    monkeypatch,
):
    told: list[tuple[str, object]] = []
    for name in ("freeze", "set_threshold"):
        monkeypatch.setattr(gc, name, lambda *given, name=name: told.append((name, given)))
    monkeypatch.setattr(sys, "setswitchinterval", lambda given: told.append(("switch", given)))

    threads.tune_for_event_loop()

    assert [name for name, _ in told] == ["freeze", "set_threshold", "switch"]
    # Than the interpreter's own, which another test may have changed in this process.
    assert dict(told)["set_threshold"] > (700, 10, 10)
    assert 0 < float(str(dict(told)["switch"])) < 0.005
