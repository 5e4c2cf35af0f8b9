"""hedgerow sandbox, as it is typed."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from hedgerow_testing import progress
from hedgerow_testing.sandbox.command import app
from hedgerow_testing.sandbox.errors import SandboxError
from hedgerow_testing.sandbox.locks import LockNotice
from hedgerow_testing.sandbox.processes import birth
from hedgerow_testing.waiting import eventually
from support.programs.fakes import Fakes
from support.programs.leftovers import nothing_left

pytestmark = pytest.mark.usefixtures("fakes")

HEDGEROW = [sys.executable, "-m", "hedgerow", "sandbox"]


@pytest.fixture
def fakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    made = Fakes(tmp_path / "assets")
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(made.directory))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("PATH", "/nowhere")
    yield made
    run("down", "--dir", str(tmp_path / "it"))
    run("down")


@pytest.fixture
def directory(tmp_path: Path) -> str:
    return str(tmp_path / "it")


def run(*words: str) -> Result:
    return CliRunner().invoke(app, words)


class TestUp:
    def test_it_says_how_to_go_on_in_lines_that_can_be_copied(self, directory) -> None:
        result = run("up", "--dir", directory)

        assert result.exit_code == 0, result.output
        assert re.match(r"The sandbox is up at https://127\.0\.0\.1:\d+\n", result.stdout)
        assert f'eval "$(hedgerow sandbox env --dir {directory})"\n' in result.stdout
        assert f"hedgerow sandbox down --dir {directory}\n" in result.stdout
        assert "starting etcd, kube-apiserver\n" in result.stderr

    def test_in_its_usual_place_no_directory_is_named(self, tmp_path: Path) -> None:
        result = run("up")

        assert "--dir" not in result.stdout
        assert (tmp_path / "state/hedgerow/sandbox/kubeconfig").exists()

    def test_the_flags_reach_the_servers(self, directory, tmp_path: Path) -> None:
        log = tmp_path / "logs/audit.log"
        words = ("--nodes", "1", "--audit", str(log))

        result = run("up", "--dir", directory, *words)

        assert "starting etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kwok" in (
            result.stderr
        )
        kept = Path(directory, "blueprint.json").read_text()
        assert str(log) in kept

    def test_on_a_terminal_a_notice_stays_and_a_line_goes(self, monkeypatch, capsys) -> None:
        monkeypatch.setenv("FORCE_COLOR", "1")
        monkeypatch.setenv("TERM", "xterm-256color")

        with progress.progress_shown() as show:
            show("a step")
            show(LockNotice("etcd came from github.com"))

        shown, spinner = capsys.readouterr().err, "\x1b[0m "
        assert f"{spinner}a step" in shown
        assert "etcd came from github.com\n" in shown
        assert f"{spinner}etcd" not in shown
        assert "\x1b[?25l" in shown
        assert "\x1b[2K" in shown

    def test_with_nodes_it_says_that_nothing_runs_on_them(self, directory) -> None:
        with_nodes = run("up", "--dir", directory, "--nodes", "1").stdout

        assert "Its nodes are simulated: Pods become Ready there, and nothing runs" in with_nodes
        assert "Start the operator with `hedgerow run`" in with_nodes

    @pytest.mark.parametrize("words", [("--nodes", "-1"), ("--nodes", "x"), ("x",)])
    def test_what_makes_no_sense_is_wrong_usage_and_starts_nothing(self, directory, words) -> None:
        assert run("up", "--dir", directory, *words).exit_code == 2
        assert not Path(directory).exists()

    def test_one_that_is_up_otherwise_is_taken_down_by_a_line_to_paste(self, directory) -> None:
        run("up", "--dir", directory)

        told = str(run("up", "--dir", directory, "--nodes", "1").exception)

        assert f"take it down with `hedgerow sandbox down --dir {directory}` first" in told

    def test_an_error_is_left_to_be_told_in_one_line(self, directory) -> None:
        result = run("up", "--dir", directory, "--kubernetes", "1.2")

        assert isinstance(result.exception, SandboxError)

    def test_a_signal_leaves_nothing_and_says_so(self, fakes, directory) -> None:
        fakes.wish("kube-apiserver", unwell=True)
        command = [*HEDGEROW, "up", "--dir", directory]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as program:
            try:
                eventually(lambda: fakes.starts("kube-apiserver"))
                program.send_signal(signal.SIGTERM)
                _, told = program.communicate(timeout=30)
            finally:
                program.kill()

        assert program.returncode == 128 + signal.SIGTERM
        assert told.endswith("interrupted by SIGTERM\n")
        assert not Path(directory).exists()
        nothing_left(fakes.directory)


class TestStatus:
    def test_it_shows_each_component_and_what_it_costs(self, directory) -> None:
        run("up", "--dir", directory)

        result = run("status", "--dir", directory)

        assert result.exit_code == 0
        first, _, etcd, server, last = result.stdout.splitlines()
        assert first.startswith("Kubernetes 1.37.2 at https://127.0.0.1:")
        assert re.match(r" etcd +\d+ +healthy +\d+ MB", etcd)
        assert re.match(r" kube-apiserver +\d+ +healthy", server)
        assert re.match(r"\d+ MB of memory, \d+ MB of disk", last)

    def test_what_is_down_or_unwell_is_shown_and_exit_code_1(self, fakes, directory) -> None:
        run("up", "--dir", directory)
        fakes.unwell("kube-apiserver")
        pid = int(re.findall(r"etcd +(\d+)", run("status", "--dir", directory).stdout)[0])
        os.kill(pid, signal.SIGKILL)
        eventually(lambda: not birth(pid), what="the end of etcd")

        result = run("status", "--dir", directory)

        assert result.exit_code == 1
        assert re.search(r" etcd +down +0 MB", result.stdout)
        assert re.search(r" kube-apiserver +\d+ +unwell", result.stdout)

    def test_where_nothing_is_up_it_says_so(self, directory) -> None:
        result = run("status", "--dir", directory)

        assert result.exit_code == 1
        assert result.stdout == f"No sandbox is up in {directory}\n"


class TestEnv:
    @pytest.mark.parametrize("name", ["with space and 'quote'", "\x1b[8m\n\x9b\u202e'\\033é"])
    def test_a_shell_can_evaluate_it_whatever_the_path(self, tmp_path: Path, name: str) -> None:
        odd = str(tmp_path / name)
        run("up", "--dir", odd)

        lines = run("env", "--dir", odd).stdout
        script = f'{lines}\nprintf "%s\\n" "$KUBECONFIG" "$PATH"'
        shown = subprocess.run(
            ["/bin/sh", "-c", script], capture_output=True, text=True, check=True
        )
        run("down", "--dir", odd)

        assert shown.stdout == f"{odd}/kubeconfig\n{odd}/bin:/nowhere\n"
        assert lines.replace("\n", "").isprintable()

    def test_after_an_up_that_failed_it_fails_too(self, fakes, directory) -> None:
        fakes.wish("kube-apiserver", exit="no luck")
        run("up", "--dir", directory)

        result = run("env", "--dir", directory)

        assert result.stdout == ""
        assert str(result.exception) == (
            f"no sandbox is up in {directory};"
            f" bring one up with `hedgerow sandbox up --dir {directory}`"
        )

    def test_when_a_server_is_gone_it_fails_too(self, directory) -> None:
        run("up", "--dir", directory)
        pid = int(re.findall(r"etcd +(\d+)", run("status", "--dir", directory).stdout)[0])
        os.kill(pid, signal.SIGKILL)
        eventually(lambda: not birth(pid), what="the end of etcd")

        assert isinstance(run("env", "--dir", directory).exception, SandboxError)


class TestDown:
    def test_it_ends_everything_and_may_be_repeated(self, fakes, directory) -> None:
        run("up", "--dir", directory)

        assert run("down", "--dir", directory).exit_code == 0
        again = run("down", "--dir", directory)

        assert again.exit_code == 0
        assert again.stderr == f"no sandbox in {directory}\n"
        nothing_left(fakes.directory)
