"""Apart: a loop in a thread that turns on, ends with what it was asked for, and holds up nobody."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager

import anyio
import anyio.lowlevel
import pytest
from structlog.testing import capture_logs

from hedgerow.runtime.leaderelection import thread as module
from hedgerow.runtime.leaderelection.thread import OwnThread, own_thread

pytestmark = pytest.mark.anyio

LONG = 30
"""Seconds that no test takes unless something is wrong."""


class OddError(Exception):
    """What goes wrong."""


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"  # a loop that jumps over time would run away from the thread's


@pytest.fixture
async def thread() -> AsyncGenerator[OwnThread]:
    async with own_thread("beside") as running:
        yield running


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """What a thread hangs at, until the test is over."""
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture
def hasty(monkeypatch) -> None:
    """Wait for a thread that hangs no longer than has to be."""
    monkeypatch.setattr(module, "STOP_TIMEOUT", 0.05)
    monkeypatch.setattr(module, "LEAVE", 0.05)


class Note:
    """What happened, and in which thread."""

    def __init__(self) -> None:
        self.said: list[tuple[str, int]] = []

    def __call__(self, what: str) -> None:
        self.said.append((what, threading.get_ident()))

    @property
    def words(self) -> list[str]:
        return [what for what, _ in self.said]

    @property
    def threads(self) -> set[int]:
        return {number for _, number in self.said}

    @asynccontextmanager
    async def manager(self) -> AsyncGenerator[str]:
        self("entered")
        try:
            yield "value"
        finally:
            await anyio.lowlevel.checkpoint()
            self("left")


class TestRunning:
    async def test_it_goes_on_while_the_callers_loop_is_held_up(self, thread):
        turned = threading.Event()

        async def turn() -> str:
            for _ in range(100):
                await anyio.lowlevel.checkpoint()
            turned.set()
            return "done"

        outcomes: list[str] = []

        async def call() -> None:
            outcomes.append(await thread.run(turn))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            await anyio.lowlevel.checkpoint()
            await anyio.lowlevel.checkpoint()
            held_up = turned.wait(LONG)  # as a pass that takes long holds the loop up

        assert held_up
        assert outcomes == ["done"]

    async def test_what_goes_wrong_there_is_raised_here(self, thread):
        error = OddError()

        async def fail() -> None:
            await anyio.lowlevel.checkpoint()
            raise error

        with pytest.raises(OddError) as caught:
            await thread.run(fail)
        assert caught.value is error

        async def work() -> int:
            return 1

        assert await thread.run(work) == 1  # the others go on

    async def test_what_it_tells_is_heard_on_the_callers_loop(self, thread):
        note, heard = Note(), anyio.Event()

        def hear() -> None:
            note("heard")
            heard.set()

        async def work() -> int:
            thread.posting(hear)()
            return threading.get_ident()

        there = await thread.run(work)
        await heard.wait()

        assert note.threads == {threading.get_ident()}
        assert there != threading.get_ident()

    async def test_what_ends_the_thread_is_raised_too(self, thread):
        async def leave() -> None:
            raise SystemExit(3)

        with pytest.raises(SystemExit):
            await thread.run(leave)

    async def test_a_thread_that_cannot_turn_says_why(self, monkeypatch):
        def fail(*_: object) -> None:
            raise OSError("too many open files")

        monkeypatch.setattr(module.anyio, "run", fail)
        with pytest.raises(OSError, match="too many open files"):
            async with own_thread("beside"):
                pytest.fail("it did not begin")


class TestCancelling:
    async def test_a_call_that_is_cancelled_has_ended_when_that_is_over(self, thread):
        note, begun = Note(), anyio.Event()

        async def work() -> None:
            try:
                thread.posting(begun.set)()
                await anyio.sleep_forever()
            finally:
                with anyio.CancelScope(shield=True):
                    await anyio.lowlevel.checkpoint()
                    note("cleaned up")

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(thread.run, work)
            await begun.wait()
            tasks.cancel_scope.cancel()

        assert note.words == ["cleaned up"]

    async def test_what_goes_wrong_at_that_is_raised(self, thread):
        begun = anyio.Event()

        async def work() -> None:
            try:
                thread.posting(begun.set)()
                await anyio.sleep_forever()
            finally:
                raise OddError

        with pytest.raises(ExceptionGroup) as caught:
            await self.cancel_once(begun, thread, work)
        assert caught.group_contains(OddError)

    async def cancel_once(self, begun, thread, work) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(thread.run, work)
            await begun.wait()
            tasks.cancel_scope.cancel()

    async def test_one_that_is_cancelled_before_it_begins_does_nothing(self, thread):
        note = Note()

        async def work() -> None:
            await anyio.lowlevel.checkpoint()
            note("worked")

        with anyio.CancelScope() as scope:
            scope.cancel()
            await thread.run(work)

        assert note.words == []


class TestEntering:
    async def test_a_context_is_entered_and_left_there(self, thread):
        note = Note()
        async with thread.entered(note.manager()) as value:
            assert (value, note.words) == ("value", ["entered"])

        assert note.words == ["entered", "left"]
        assert threading.get_ident() not in note.threads

    async def test_it_is_left_when_what_is_done_meanwhile_fails(self, thread):
        note = Note()
        with pytest.raises(OddError):
            async with thread.entered(note.manager()):
                raise OddError

        assert note.words == ["entered", "left"]

    async def test_it_is_left_when_what_is_done_meanwhile_is_cancelled(self, thread):
        note = Note()
        with anyio.CancelScope() as scope:
            async with thread.entered(note.manager()):
                scope.cancel()
                await anyio.sleep_forever()

        assert note.words == ["entered", "left"]


@pytest.mark.usefixtures("hasty")
class TestHanging:
    async def test_a_thread_that_hangs_is_left_behind(self, gate):
        note, begun = Note(), anyio.Event()
        with capture_logs() as logs:
            async with (
                own_thread("beside") as thread,
                thread.entered(note.manager()),
                anyio.create_task_group() as tasks,
            ):

                async def hang() -> None:
                    thread.posting(begun.set)()
                    gate.wait()

                tasks.start_soon(thread.run, hang)
                await begun.wait()
                tasks.cancel_scope.cancel()

        assert [entry["event"] for entry in logs] == ["thread hangs, left behind"]
        assert note.words == ["entered"]

    async def test_so_is_one_that_hangs_when_a_context_is_left(self, gate):
        class Hanging:
            async def __aenter__(self) -> None:
                return

            async def __aexit__(self, *_: object) -> None:
                gate.wait()

        with capture_logs() as logs:
            async with own_thread("beside") as thread, thread.entered(Hanging()):
                pass

        assert [entry["waited_for"] for entry in logs] == ["a call"]

    def test_the_process_ends_all_the_same(self):
        ended = subprocess.run(
            [sys.executable, "-c", HANGS], timeout=LONG, check=True, capture_output=True, text=True
        )

        assert ended.stdout.splitlines()[-1] == "over"


HANGS = """
import threading

import anyio
import anyio.lowlevel
from hedgerow.runtime.leaderelection import thread as module

module.STOP_TIMEOUT = 0.05

async def main():
    begun = anyio.Event()
    async with module.own_thread("beside") as thread, anyio.create_task_group() as tasks:

        async def hang():
            worker = threading.Event()

            def work():
                worker.set()
                threading.Event().wait()

            async with anyio.create_task_group() as group:
                group.start_soon(anyio.to_thread.run_sync, work)
                while not worker.is_set():
                    await anyio.lowlevel.checkpoint()
                thread.posting(begun.set)()
                threading.Event().wait()

        tasks.start_soon(thread.run, hang)
        await begun.wait()
        tasks.cancel_scope.cancel()
    print("over", flush=True)

anyio.run(main)
"""
