"""OperatorProcess: what it does with a program, whatever that does."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from hedgerow_testing import OperatorProcess, eventually

WITH_CHILD = "import subprocess, sys; print(subprocess.Popen(['sleep', '600']).pid, flush=True)"


@pytest.fixture
def started(tmp_path) -> Iterator:
    made: list[OperatorProcess] = []

    def start(script: str, until: str = "ready", **how) -> OperatorProcess:
        log = tmp_path / "log"
        process = OperatorProcess(
            ["sh", "-c", script], kubeconfig=tmp_path / "kubeconfig", log=log, **how
        )
        made.append(process)
        return process.start(until, within=20)

    yield start
    for process in made:
        process.kill()


def gone(pid: int) -> bool:
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


class TestStarting:
    def test_it_has_the_cluster_and_the_variables_that_are_given(self, started, tmp_path):
        process = started('echo "$KUBECONFIG $WHAT"; pwd; echo ready; sleep 600',
                          env={"WHAT": "a b"}, cwd=tmp_path)  # fmt: skip

        assert process.output.splitlines()[:2] == [f"{tmp_path}/kubeconfig a b", str(tmp_path)]

    def test_the_output_is_that_since_the_last_start(self, started):
        process = started('echo "ready $$"; sleep 600')
        first = process.output
        process.kill()
        process.start("ready")

        assert process.output != first
        assert process.log.read_text() == first + process.output

    def test_one_that_is_never_ready_is_told_by_its_last_lines(self, tmp_path):
        process = OperatorProcess(
            ["sh", "-c", "echo still waiting; sleep 600"], kubeconfig=tmp_path, log=tmp_path / "log"
        )
        with process, pytest.raises(AssertionError, match=r"(?s)not within 0.5 s.*still waiting"):
            process.wait_for("ready", within=0.5)
        assert not process.running

    def test_nothing_of_one_that_does_not_start_goes_on(self, tmp_path):
        class Never(OperatorProcess):
            def start(self, *_, **__):
                return super().start("ready", within=0.2)

        process = Never(["sleep", "600"], kubeconfig=tmp_path, log=tmp_path / "log")
        with pytest.raises(AssertionError, match="not within"), process:
            pass
        assert gone(process.pid)
        gc.collect()  # A leash that is not released warns, and warnings are errors.

    def test_one_that_was_not_started_has_no_pid(self, tmp_path):
        process = OperatorProcess(["x"], kubeconfig=tmp_path, log=tmp_path / "log")

        with pytest.raises(AssertionError, match="not started: x"):
            _ = process.pid
        process.kill()


class TestEnding:
    def test_a_signal_gives_the_exit_code(self, started):
        assert started("trap 'exit 7' TERM; echo ready; while :; do sleep 0.05; done").stop() == 7

    def test_one_that_goes_on_is_killed_with_its_children(self, started):
        process = started(
            f"trap '' TERM; {sys.executable} -c \"{WITH_CHILD}\"; echo ready; sleep 9"
        )
        child = int(process.output.split()[0])
        with pytest.raises(subprocess.TimeoutExpired):
            process.stop(signal.SIGTERM, within=0.2)

        process.kill()
        assert gone(child)

    def test_children_end_too_that_outlive_it(self, started):
        process = started(f'echo ready; {sys.executable} -c "{WITH_CHILD}"; sleep 0.1')
        eventually(lambda: not process.running)
        child = int(process.output.split()[1])
        assert not gone(child)

        process.kill()
        eventually(lambda: gone(child))

    @pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="it needs /proc")
    def test_it_ends_with_a_test_run_that_is_killed(self, tmp_path):
        program = (
            "import os, signal, sys; from pathlib import Path\n"
            "from hedgerow_testing import OperatorProcess\n"
            f"log = Path('{tmp_path}/log')\n"
            "own = OperatorProcess(['sleep', '600'], kubeconfig=Path('k'), log=log)\n"
            "print(own.start().pid, flush=True); os.kill(os.getpid(), signal.SIGKILL)"
        )
        done = subprocess.run(
            [sys.executable, "-c", program], env=os.environ, capture_output=True, check=False
        )

        assert done.returncode == -signal.SIGKILL
        eventually(lambda: gone(int(done.stdout)))


class TestFigures:
    @pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="they need /proc")
    def test_cpu_and_memory_are_those_of_the_process(self, started):
        busy = (
            "x = bytearray(50_000_000); [i for i in range(3_000_000)]; print('ready', flush=True)"
        )
        process = started(f'exec {sys.executable} -c "{busy}; import time; time.sleep(600)"')

        assert 0.05 < process.cpu < 60
        assert process.peak > 50_000_000
