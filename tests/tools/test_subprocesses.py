"""Subprocesses: what a command prints and how it ends; and that none is lost."""

from __future__ import annotations

import gc
import re
from subprocess import STDOUT

import anyio
import psutil
import pytest

from hedgerow_tools import subprocesses
from support.code.sources import modules

COMMAND = ["sleep", "600.25"]


@pytest.mark.anyio
class TestRun:
    async def test_it_says_how_the_command_ended_and_what_it_printed(self):
        ended = await subprocesses.run(["sh", "-c", "echo out; echo err >&2; exit 3"])

        assert (ended.returncode, ended.stdout, ended.stderr) == (3, b"out\n", b"err\n")

    async def test_both_may_be_one_stream(self):
        ended = await subprocesses.run(["sh", "-c", "echo out; echo err >&2"], stderr=STDOUT)

        assert (ended.stdout, ended.stderr) == (b"out\nerr\n", b"")

    async def test_it_is_given_a_directory_and_an_environment(self, tmp_path):
        ended = await subprocesses.run(
            ["/bin/sh", "-c", "pwd; echo $A"], cwd=tmp_path, env={"A": "b"}
        )

        assert ended.stdout.decode() == f"{tmp_path}\nb\n"

    async def test_one_that_is_not_there_is_an_os_error(self):
        with pytest.raises(FileNotFoundError):
            await subprocesses.run(["/there/is/none"])


@pytest.mark.parametrize("after", range(12))
def test_cancelled_at_any_moment_none_is_lost(after):
    """A ResourceWarning of what is lost would fail the test."""

    async def cancelled() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(subprocesses.run, COMMAND)
            for _ in range(after):
                await anyio.lowlevel.checkpoint()
            group.cancel_scope.cancel()

    anyio.run(cancelled)
    gc.collect()

    assert [one for one in psutil.Process().children() if runs(one)] == []


def runs(child: psutil.Process) -> bool:
    """Whether it is the command of these tests; others may have left children that have ended."""
    try:
        return child.cmdline() == COMMAND
    except (psutil.ZombieProcess, psutil.NoSuchProcess):
        return False


def test_processes_are_started_here_alone():
    found = [
        module.name
        for module in modules()
        if re.search(r"anyio\.(open|run)_process|create_subprocess_", module.text)
    ]

    assert found == ["hedgerow_tools/subprocesses.py"]
