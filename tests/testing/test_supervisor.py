"""What came of a command ends with it, whatever it does to get away."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from subprocess import PIPE, Popen

import pytest

from hedgerow_testing.supervisor import Supervised, descendants, work
from hedgerow_testing.waiting import eventually

HOSTILE = """
env -i setsid sh -c 'echo $$ > "$0"; exec sleep 900' "$1" &
exec env -i sleep 800
"""
HOLDER = """
import os, sys, time
from pathlib import Path
from hedgerow_testing.supervisor import Supervised
held = Supervised(sys.argv[2:], os.environ, None, Path(sys.argv[1]))
print(flush=True)
time.sleep(600)
"""

FOUR_ON_ONE_CPU = """
import os
os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
os.fork(), os.fork()
while True:
    pass
"""


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def written(file: Path) -> int:
    eventually(lambda: file.exists() and file.read_text().strip())
    return int(file.read_text())


class TestSupervised:
    def supervised(self, directory: Path, *command: str) -> Supervised:
        return Supervised(command, os.environ, None, directory / "output")

    def test_one_that_drops_its_environment_and_session_ends_whole(self, tmp_path: Path) -> None:
        away = tmp_path / "pid"
        one = self.supervised(tmp_path, "sh", "-c", HOSTILE, "sh", str(away))
        pid = written(away)

        assert pid in one.processes()
        one.end()
        assert not runs(pid)
        assert one.processes() == []

    def test_it_ends_with_its_holder_too(self, tmp_path: Path) -> None:
        away = tmp_path / "pid"
        command = [
            sys.executable,
            "-c",
            HOLDER,
            tmp_path / "output",
            "sh",
            "-c",
            HOSTILE,
            "sh",
            away,
        ]
        with Popen(command, stdout=PIPE) as holder:
            pid = written(away)
            holder.send_signal(signal.SIGKILL)

        eventually(lambda: not runs(pid))

    @pytest.mark.parametrize(("script", "code"), [("exit 7", 7), ("kill -9 $$", -9)])
    def test_how_it_ended_is_told(self, tmp_path: Path, script: str, code: int) -> None:
        one = self.supervised(tmp_path, "sh", "-c", script)

        eventually(lambda: one.code() is not None)
        assert one.code() == code
        one.end()

    def test_what_cannot_be_run_is_told(self, tmp_path: Path) -> None:
        with pytest.raises(OSError, match="No such file"):
            self.supervised(tmp_path, "/no/such")

    @pytest.mark.skipif(
        not Path("/proc/self/schedstat").exists(), reason="the kernel tells no time of waiting"
    )
    def test_it_is_at_work_while_it_waits_for_a_cpu(self, tmp_path: Path) -> None:
        began = time.monotonic()
        one = self.supervised(tmp_path, sys.executable, "-c", FOUR_ON_ONE_CPU)

        def at_work() -> list[float]:
            least = 0.6 * (time.monotonic() - began)
            return [taken for taken in work(one.processes()).values() if taken > least]

        eventually(lambda: len(at_work()) == 4)
        one.end()

    def test_a_supervisor_that_is_killed_is_the_end_of_the_command(self, tmp_path: Path) -> None:
        one = self.supervised(tmp_path, "sleep", "60")
        left = one.processes()
        (supervisor,) = {*descendants(os.getpid())} - {*left}
        os.kill(supervisor, signal.SIGKILL)

        eventually(lambda: one.code() == -signal.SIGKILL)
        one.end()
        for pid in left:
            os.kill(pid, signal.SIGKILL)
