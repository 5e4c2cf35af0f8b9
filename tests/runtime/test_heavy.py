"""Heavy work leaves the event loop to others."""

from __future__ import annotations

import gc
import sys
import threading

import anyio
import anyio.lowlevel
import pytest

from hedgerow.runtime import heavy
from hedgerow.runtime.heavy import LARGE, USUAL

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    """A loop on real time: a virtual one cannot wait for threads."""
    return "asyncio"


class TestAside:
    async def test_work_on_what_is_small_is_done_at_once(self):
        assert await USUAL.compute(threading.get_ident) == threading.get_ident()

    async def test_the_loop_turns_while_what_is_large_is_worked_on(self):
        turned = threading.Event()

        async def turn() -> None:
            await anyio.lowlevel.checkpoint()
            turned.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(turn)
            # On the loop itself this would wait for what cannot come.
            assert await LARGE.compute(turned.wait, timeout=60)

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
                tasks.start_soon(LARGE.compute, work)
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
            tasks.start_soon(LARGE.compute, work)
            while not begun.is_set():
                await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()

        assert not ended.is_set()
        let_go.set()
        assert ended.wait(60)

    async def test_what_it_raises_is_raised(self):
        with pytest.raises(ZeroDivisionError):
            await LARGE.compute(lambda: 1 / 0)


async def test_favouring_the_loop_collects_seldom_and_has_threads_give_way(
    monkeypatch,
):
    told: list[tuple[str, object]] = []
    for name in ("freeze", "set_threshold"):
        monkeypatch.setattr(gc, name, lambda *given, name=name: told.append((name, given)))
    monkeypatch.setattr(sys, "setswitchinterval", lambda given: told.append(("switch", given)))

    heavy.tune_for_event_loop()

    assert [name for name, _ in told] == ["freeze", "set_threshold", "switch"]
    # Than the interpreter's own, which another test may have changed in this process.
    assert dict(told)["set_threshold"] > (700, 10, 10)
    assert 0 < float(str(dict(told)["switch"])) < 0.005
