"""Detached processes and their pid files."""

import json
import os
import signal
import sys
from pathlib import Path

import pytest

from hedgerow_testing.sandbox.processes import (
    Started,
    alive,
    birth,
    end,
    launch,
    memory,
    recorded,
    send,
)
from hedgerow_testing.waiting import eventually

SLEEP = "import time; print('on', flush=True); time.sleep(600)"
DEAF = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {SLEEP}"


@pytest.fixture
def start(tmp_path: Path):
    begun: list[Started] = []

    def run(script: str = SLEEP, **environment: str) -> Started:
        log = tmp_path / "it.log"
        begun.append(
            launch(
                [sys.executable, "-IS", "-c", script],
                record=tmp_path / "it.json",
                log=log,
                environment=environment,
            )
        )
        eventually(lambda: log.read_text() or not alive(begun[-1]))
        return begun[-1]

    yield run
    for started in begun:
        send(started, signal.SIGKILL)
        eventually(lambda pid=started: not alive(pid))


class TestLaunch:
    def test_it_is_in_a_session_of_its_own_and_has_only_its_own_environment(
        self, start, tmp_path: Path
    ) -> None:
        script = "import os; print(os.getsid(0) == os.getpid(), sorted(os.environ), flush=True);"

        start(script + SLEEP, ONLY="this")

        told = (tmp_path / "it.log").read_text().splitlines()[0]
        assert told.startswith("True")
        assert "'ONLY'" in told
        assert "'PATH'" not in told

    def test_its_pid_file_finds_it_again(self, start, tmp_path: Path) -> None:
        started = start()

        assert recorded(tmp_path / "it.json") == started
        assert alive(started)
        assert memory(started) > 1_000_000

    def test_the_log_of_the_start_before_is_kept(self, start, tmp_path: Path) -> None:
        start("print('one')")
        start("print('two')")

        eventually(lambda: (tmp_path / "it.log").read_text() == "two\n")
        assert (tmp_path / "it.previous.log").read_text() == "one\n"

    def test_it_inherits_no_open_file(self, start) -> None:
        inherited, kept = os.pipe()
        os.set_inheritable(kept, True)
        start("import os; print(sorted(os.listdir('/proc/self/fd')), flush=True);" + SLEEP)
        os.close(kept)

        assert os.read(inherited, 1) == b""
        os.close(inherited)


class TestRecorded:
    @pytest.mark.parametrize("content", ["", "12", '{"pid": 1}', '{"pid": "x", "birth": ""}', "{"])
    def test_a_half_written_pid_file_names_nobody(self, tmp_path: Path, content) -> None:
        path = tmp_path / "it.json"
        path.write_text(content)

        assert recorded(path) is None

    def test_a_missing_one_names_nobody(self, tmp_path: Path) -> None:
        assert recorded(tmp_path / "it.json") is None


class TestAlive:
    def test_a_successor_under_the_same_pid_is_neither_it_nor_ever_signalled(self, start) -> None:
        successor = start()
        stale = Started(successor.pid, "another boot/1")

        assert not alive(stale)
        assert not send(stale, signal.SIGKILL)
        assert alive(successor)

    def test_a_zombie_is_dead_even_before_its_parent_asks(self) -> None:
        pid = os.posix_spawn(sys.executable, [sys.executable, "-IS", "-c", ""], {})
        try:
            eventually(lambda: birth(pid) == "", 10)
        finally:
            os.waitpid(pid, 0)

    def test_a_child_that_somebody_else_asked_for_is_dead_all_the_same(self, start) -> None:
        started = start()
        os.kill(started.pid, signal.SIGKILL)
        os.waitpid(started.pid, 0)

        assert not alive(started)

    def test_nobody_is_not_alive(self) -> None:
        assert not alive(None)
        assert not alive(Started(0, ""))
        assert not send(None, signal.SIGTERM)
        assert memory(None) == 0
        assert memory(Started(2**22 + 1, "")) == 0


@pytest.mark.anyio
class TestEnd:
    async def test_sigterm_is_enough_for_most(self, start) -> None:
        started = start()

        await end(started, grace=10)

        assert not alive(started)

    async def test_who_does_not_hear_is_killed_after_the_grace(self, start) -> None:
        started = start(DEAF)

        await end(started, grace=0.1)

        assert not alive(started)

    async def test_who_is_suspended_hears_at_once(self, start) -> None:
        started = start()
        send(started, signal.SIGSTOP)

        await end(started, grace=10)

        assert not alive(started)

    async def test_who_is_gone_already_is_no_error(self, start, tmp_path: Path) -> None:
        started = start("")
        (tmp_path / "it.json").write_text(json.dumps({"pid": started.pid, "birth": "x"}))

        await end(recorded(tmp_path / "it.json"))
        await end(None)
