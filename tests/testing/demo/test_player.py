"""The demo's operator: that it began, that it ended well, and what it said if not."""

from __future__ import annotations

import os
import signal

import pytest
from rich.console import Console

from hedgerow_testing.demo import DemoError, player
from hedgerow_testing.demo.page import Page
from hedgerow_testing.demo.player import operator
from hedgerow_testing.demo.shell import Shell
from hedgerow_testing.demo.stage import Stage
from hedgerow_testing.sandbox.cluster import Sandbox

pytestmark = pytest.mark.anyio

BEGINS = """echo '{"event": "started"}'; echo '{"event": "caches are filled"}'"""
WAITS, FAILS = (f"trap 'exit {code}' TERM; while :; do sleep 0.05; done" for code in (0, 1))
WELL = f"{BEGINS}\n{WAITS}"


@pytest.fixture
def stage(tmp_path, shown, monkeypatch):
    """A stage whose operator is a script."""

    def playing(script, *, keep=False):
        program = tmp_path / "python"
        program.write_text(f'#!/bin/sh\necho "$@" > arguments\n{script}\n', encoding="utf-8")
        program.chmod(0o700)
        monkeypatch.setattr(player, "COMMAND", (str(program), "-m", "hedgerow", "run"))
        page = Page(Console(file=shown, width=80))
        shell = Shell(page, tmp_path, {}, {"PATH": os.environ["PATH"]})
        return Stage(page, shell, None, Sandbox(tmp_path / "sandbox"), keep)

    return playing


class TestOperator:
    async def test_it_runs_while_it_is_needed_and_stops_in_good_order(self, stage, shown):
        async with operator(stage(WELL)) as started:
            assert started.running

        assert not started.running
        assert f"$ kill {started.pid}\n    ✓ the operator stopped in good order" in shown.getvalue()

    async def test_one_that_dies_is_told_with_its_last_words(self, stage):
        with pytest.raises(DemoError, match="not ready; its last words: hedgerow: no"):
            async with operator(stage("echo 'hedgerow: no cluster'; exit 4")):
                pytest.fail("it never began")

    async def test_one_that_said_nothing_is_told_too(self, stage):
        with pytest.raises(DemoError, match="its last words: nothing"):
            async with operator(stage("exit 1")):
                pytest.fail("it never began")

    async def test_one_that_never_gets_ready_is_ended(self, stage, monkeypatch):
        monkeypatch.setattr(player, "STEP_TIMEOUT", 0.3)

        with pytest.raises(DemoError, match="the operator is not ready"):
            async with operator(stage(WAITS)):
                pytest.fail("it never began")

    async def test_one_that_does_not_stop_in_good_order_is_told(self, stage):
        with pytest.raises(DemoError, match="the operator did not stop in good order; see "):
            async with operator(stage(f"{BEGINS}\n{FAILS}")):
                pass

    async def test_it_is_stopped_when_the_demo_fails_and_the_failure_is_what_is_told(self, stage):
        made = []
        context = operator(stage(WELL, keep=True))

        async def failing() -> None:
            async with context as started:
                made.append(started)
                raise ValueError("something else")

        with pytest.raises(ValueError, match="something else"):
            await failing()

        assert not made[0].running

    async def test_it_is_left_running_when_it_is_to_be_kept(self, stage):
        async with operator(stage(WELL, keep=True)) as started:
            pid = started.pid

        os.kill(pid, signal.SIGTERM)  # raises ProcessLookupError if it has ended
