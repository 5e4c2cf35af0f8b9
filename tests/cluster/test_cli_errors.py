"""What a user meets when something is wrong: one clear line, on real servers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING, Self

import anyio
import pytest
import yaml

from hedgerow.testing.waiting import eventually
from support.cluster.bluegreens import bluegreen
from support.cluster.clusters import undefine
from support.operator.running import PORTLESS
from support.programs.typed import answer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = pytest.mark.cluster

HEDGEROW = [sys.executable, "-m", "hedgerow"]
COMMANDS = {
    "run": ["run", "--log-format", "json", *PORTLESS],
    "install": ["install"],
    "uninstall": ["uninstall"],
    "demo": ["demo"],
}
each_command = pytest.mark.parametrize(
    "words", [COMMANDS[name] for name in ("run", "install", "demo")], ids=lambda words: words[0]
)


@pytest.fixture
def nobody(bare_sandbox) -> Path:
    """A user who may do nothing."""
    return anyio.run(bare_sandbox.kubeconfig_for, "nobody")


@pytest.fixture
def altered(bare_sandbox, tmp_path):
    """The administrator's kubeconfig with other values."""

    def altered(section: str, inner: str, **values: str) -> Path:
        config = yaml.safe_load(bare_sandbox.kubeconfig.read_text("utf-8"))
        entry = config[section][0][inner]
        entry.update(values)
        authority = config["clusters"][0]["cluster"]["certificate-authority"]
        whole = str(bare_sandbox.kubeconfig.parent / authority)
        config["clusters"][0]["cluster"]["certificate-authority"] = whole
        path = tmp_path / "kubeconfig"
        path.write_text(yaml.safe_dump(config), encoding="utf-8")
        return path

    return altered


Told = tuple[int, list[str]]


def typed(words: list[str], kubeconfig: Path, tmp_path: Path) -> Told:
    """Type a line; give the exit code and the lines on standard error."""
    ended = subprocess.run(
        [*HEDGEROW, *words, "--kubeconfig", str(kubeconfig)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    return ended.returncode, ended.stderr.splitlines()


class Running:
    """`hedgerow run` of one controller as somebody, its log as entries."""

    def __init__(self, kubeconfig: Path, log: Path) -> None:
        self._log = log
        words = [*COMMANDS["run"], "--controllers", "bluegreen"]
        self._command = [*HEDGEROW, *words, "--kubeconfig", str(kubeconfig)]

    def __enter__(self) -> Self:
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(self._command, stderr=log, stdin=subprocess.DEVNULL)
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait(10)

    def entries(self, event: str) -> list[dict]:
        lines = self._log.read_text("utf-8").splitlines(keepends=True)
        entries = [json.loads(line) for line in lines if line.endswith("}\n")]
        return [entry for entry in entries if entry["event"] == event]

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(20)


class TestNoCluster:
    """In this process: what a process of its own prints and exits with, the others show."""

    @pytest.fixture
    def told(self, capsys, monkeypatch, tmp_path) -> Callable[[list[str], Path], Told]:
        """Type a line; give the exit code and the lines on standard error."""
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

        def told(words: list[str], kubeconfig: Path) -> Told:
            found = answer(capsys, *words, "--kubeconfig", str(kubeconfig))
            return found.code, found.err.splitlines()

        return told

    @each_command
    def test_a_kubeconfig_that_is_not_there(self, words, told, tmp_path):
        code, lines = told(words, tmp_path / "none")

        assert (code, lines) == (
            2,
            [f"hedgerow: kubeconfig {tmp_path}/none does not exist; name another file"],
        )

    @each_command
    def test_a_kubeconfig_that_is_none(self, words, told, tmp_path):
        path = tmp_path / "kubeconfig"
        path.write_text("{", encoding="utf-8")
        code, [line] = told(words, path)

        assert code == 2
        assert line.startswith(f"hedgerow: kubeconfig {path} is no YAML")

    @each_command
    def test_a_server_that_is_not_there(self, words, told, altered):
        path = altered("clusters", "cluster", server="https://127.0.0.1:1")
        code, [line] = told(words, path)

        assert code == 4
        assert "cannot reach https://127.0.0.1:1" in line
        assert "choose another one with --context or --kubeconfig" in line

    @each_command
    def test_credentials_that_the_server_does_not_know(self, words, told, altered):
        code, [line] = told(words, altered("users", "user", token="wrong"))

        assert code == 4
        assert "does not accept these credentials" in line
        assert "log in again" in line

    def test_nothing_is_left_behind(self, told, altered, tmp_path):
        path = altered("clusters", "cluster", server="https://127.0.0.1:1")
        told(["demo"], path)

        assert [found.name for found in tmp_path.iterdir()] == ["kubeconfig"]


class TestPermissions:
    @pytest.mark.parametrize("command", ["install", "uninstall"])
    def test_a_command_says_what_is_not_permitted(self, nobody, command, tmp_path):
        code, [line] = typed(COMMANDS[command], nobody, tmp_path)

        assert code == 1
        assert 'User "nobody" cannot' in line
        assert "ask for the right" in line

    def test_the_operator_says_each_thing_once_and_waits(self, nobody, tmp_path):
        with Running(nobody, tmp_path / "log") as running:
            eventually(lambda: running.entries("started"))
            # What is missing is looked for beside the work.
            eventually(lambda: len(running.entries("permission missing")) == 6)
            missing = running.entries("permission missing")
            eventually(lambda: len(running.entries("watch in trouble")) == 6)
            code = running.stop()

        assert code == 0
        assert [entry["resource"] for entry in missing] == [
            "bluegreens.app.demo.kakao.com",
            "pods",
            "endpointslices.discovery.k8s.io",
            "deployments.apps",
            "services",
            "jobs.batch",
        ]
        assert missing[3]["verbs"] == "list,watch,get,create,patch,delete"
        assert running.entries("pass failed") == []


class TestMissingDefinitions:
    @pytest.fixture
    def installed(self, bare_sandbox, tmp_path) -> Iterator[Callable[[], None]]:
        """Install the custom resources, and remove them again: the server is bare for others."""

        def install() -> None:
            code, lines = typed(COMMANDS["install"], bare_sandbox.kubeconfig, tmp_path)
            assert code == 0, lines

        yield install
        undefine(bare_sandbox)

    def test_a_plan_says_so_of_a_manifest_and_of_a_name(self, bare_sandbox, capsys, tmp_path):
        path = tmp_path / "manifest.yaml"
        path.write_text(yaml.safe_dump(bluegreen("default")), "utf-8")
        known = ("--kubeconfig", str(bare_sandbox.kubeconfig))
        told = answer(capsys, "plan", "-f", str(path), *known)

        assert (told.code, told.err) == (1, "")
        assert "✗ BlueGreen/demo would be refused" in told.out
        assert "Run `hedgerow install`" in told.out

        told = answer(capsys, "plan", "demo", *known)

        assert (told.code, told.out) == (1, "")
        assert "run `hedgerow install`" in told.err

    def test_the_operator_names_them_and_goes_on_once_they_are_there(
        self, bare_sandbox, installed, tmp_path
    ):
        with Running(bare_sandbox.kubeconfig, tmp_path / "log") as running:
            [named] = eventually(lambda: running.entries("custom resource not installed"))
            eventually(lambda: running.entries("watch in trouble"))
            installed()
            # A watch in trouble asks again every thirty seconds at last.
            eventually(lambda: running.entries("caches are filled"), within=90)
            code = running.stop()

        assert code == 0
        assert named["resource"] == "bluegreens.app.demo.kakao.com"
        assert named["remedy"] == "`hedgerow install`"
        assert len(running.entries("watch recovered")) == 1
