"""The leash: what happens to a sandbox whose program is killed."""

import io
import os
import secrets
import subprocess
import sys
from pathlib import Path

import pytest

from hedgerow_testing.sandbox import leash
from hedgerow_testing.sandbox.leash import MARK, Leash, marked
from hedgerow_testing.waiting import eventually

SLEEP = [sys.executable, "-IS", "-c", "import time; print('on', flush=True); time.sleep(600)"]


@pytest.fixture
def mark() -> str:
    return secrets.token_hex(8)


@pytest.fixture
def sleeper(mark: str):
    environment = {**os.environ, MARK: mark}
    with subprocess.Popen(SLEEP, env=environment, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        yield child
        child.kill()


class TestMarked:
    def test_it_finds_what_bears_the_mark_and_nothing_else(self, sleeper, mark) -> None:
        assert marked(mark) == [sleeper.pid]
        assert marked(mark[:-1]) == []

    @pytest.mark.usefixtures("sleeper")
    def test_without_proc_it_finds_nothing(self, mark, tmp_path: Path) -> None:
        assert marked(mark, tmp_path / "proc") == []

    def test_what_may_not_be_read_is_not_ours(self, tmp_path: Path, mark) -> None:
        (tmp_path / "12").mkdir()

        assert marked(mark, tmp_path) == []


class TestLeash:
    def test_released_it_leaves_the_marked_alone(self, sleeper, mark) -> None:
        with Leash(mark):
            pass

        assert sleeper.poll() is None

    def test_a_killed_holder_takes_the_marked_with_it(self, sleeper, mark) -> None:
        script = (
            "import sys; sys.path.insert(0, sys.argv[1]); import leash, os, signal;"
            "held = leash.Leash(sys.argv[2]); os.kill(os.getpid(), signal.SIGKILL)"
        )
        where = str(Path(leash.__file__).parent)

        holder = subprocess.run([sys.executable, "-IS", "-c", script, where, mark], check=False)

        assert holder.returncode == -9
        eventually(lambda: sleeper.poll() == -9, 10)

    def test_a_watcher_that_does_not_end_is_killed(self, mark, monkeypatch) -> None:
        held = Leash(mark)
        monkeypatch.setattr(leash, "PATIENCE", 0.01)
        os.kill(held.watcher.pid, 19)

        held.release()

        assert held.watcher.returncode == -9

    def test_a_process_that_is_gone_is_no_error(self) -> None:
        child = subprocess.Popen([sys.executable, "-IS", "-c", ""])
        child.wait()

        assert not leash.kill(child.pid, 15)


class TestMain:
    @pytest.mark.parametrize(
        ("said", "alive"), [(b"released", True), (b"", False), (b"rel", False)]
    )
    def test_only_the_whole_word_spares_the_marked(
        self, sleeper, mark, monkeypatch, said, alive
    ) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(said)))

        leash.main([mark])

        assert alive or eventually(lambda: sleeper.poll() is not None)
        assert (sleeper.poll() is None) is alive
