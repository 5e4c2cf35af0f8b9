"""Thread: acts that go on whatever blocks the caller's loop, and that hold up nobody."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator

import anyio
import anyio.lowlevel
import pytest
from structlog.testing import capture_logs

from hedgerow.process.leaderelection import thread as module
from hedgerow.process.leaderelection.thread import own_thread, posting

pytestmark = pytest.mark.anyio

LONG = 30
"""Seconds that no test takes unless something is wrong."""


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"  # a loop that jumps over time would run away from the thread's


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """What a thread hangs at, until the test is over."""
    event = threading.Event()
    yield event
    event.set()


def ended() -> bool:
    """Return whether the thread has ended, or does at once."""
    left = [each for each in threading.enumerate() if each.name == "beside"]
    for thread in left:
        thread.join(LONG)
    return not any(thread.is_alive() for thread in left)


class TestRunning:
    async def test_it_goes_on_while_the_callers_loop_is_held_up(self):
        turned = threading.Event()

        async def turn() -> None:
            for _ in range(100):
                await anyio.lowlevel.checkpoint()
            turned.set()

        async with own_thread("beside", turn):
            assert turned.wait(LONG)  # as a pass that takes long holds the loop up

    async def test_what_goes_wrong_is_told_and_the_other_acts_go_on(self):
        error, there = OSError("odd"), set[int]()

        async def fail() -> None:
            raise error

        async def work() -> None:
            there.add(threading.get_ident())
            heard()
            await anyio.sleep_forever()

        here, begun = list[int](), anyio.Event()
        heard = posting(lambda: (here.append(threading.get_ident()), begun.set()))
        async with own_thread("beside", fail, work) as errors:
            assert await errors.get() is error
            await begun.wait()

        assert here == [threading.get_ident()]
        assert not there & set(here)

    async def test_one_that_cannot_begin_says_why(self, monkeypatch):
        def fail() -> None:
            raise OSError("too many open files")

        monkeypatch.setattr(module.asyncio, "new_event_loop", fail)
        with pytest.raises(OSError, match="too many open files"):
            async with own_thread("beside"):
                pytest.fail("it did not begin")


class TestEnding:
    async def acting(self, said: list[str], begun: Callable[[], None]) -> None:
        try:
            begun()
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.lowlevel.checkpoint()
                said.append("cleaned up")

    @pytest.mark.parametrize("is_cancelled", [True, False])
    async def test_what_was_begun_has_ended_when_the_body_has(self, is_cancelled):
        said, begun = list[str](), anyio.Event()

        async def act() -> None:
            await self.acting(said, posted)

        posted = posting(begun.set)
        with anyio.CancelScope() as scope:
            async with own_thread("beside", act):
                await begun.wait()
                if is_cancelled:
                    scope.cancel()
                    await anyio.sleep_forever()

        assert said == ["cleaned up"]
        assert ended()

    async def test_one_that_ends_as_it_begins_leaves_no_thread(self):
        said: list[str] = []

        async def act() -> None:
            await self.acting(said, lambda: said.append("begun"))

        async with own_thread("beside", act):
            pass

        assert said in ([], ["begun", "cleaned up"])
        assert ended()

    async def test_one_that_hangs_is_left_behind(self, gate, monkeypatch):
        monkeypatch.setattr(module, "LEAVE", 0.05)
        begun = anyio.Event()

        async def hang() -> None:
            posted()
            gate.wait()

        posted = posting(begun.set)
        with capture_logs() as logs:
            async with own_thread("beside", hang):
                await begun.wait()

        assert [entry["event"] for entry in logs] == ["thread hangs, left behind"]

    def test_the_process_ends_all_the_same(self):
        ended = subprocess.run(
            [sys.executable, "-c", HANGS], timeout=LONG, check=True, capture_output=True, text=True
        )

        assert ended.stdout.splitlines()[-1] == "over"


HANGS = """
import threading

import anyio
import anyio.lowlevel
from hedgerow.process.leaderelection import thread as module

module.LEAVE = 0.05

async def main():
    begun = anyio.Event()

    async def hang():
        worker = threading.Event()

        def work():
            worker.set()
            threading.Event().wait()

        async with anyio.create_task_group() as group:
            group.start_soon(anyio.to_thread.run_sync, work)
            while not worker.is_set():
                await anyio.lowlevel.checkpoint()
            posted()
            threading.Event().wait()

    posted = module.posting(begun.set)
    async with module.own_thread("beside", hang):
        await begun.wait()
    print("over", flush=True)

anyio.run(main)
"""
