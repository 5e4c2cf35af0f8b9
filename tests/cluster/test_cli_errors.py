"""What a user meets when something is wrong: one clear line, on real servers."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Self

import anyio
import pytest
import yaml

from hedgerow_testing.waiting import eventually
from support.cluster.clusters import undefine
from support.operator.running import PORTLESS
from support.programs.typed import Answer, answer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = pytest.mark.cluster

COMMAND = [sys.executable, "-m", "hedgerow", "run", "--log-format", "json", *PORTLESS]


@pytest.fixture
def nobody(bare_sandbox) -> Path:
    """A user who may do nothing."""
    return anyio.run(bare_sandbox.kubeconfig_for, "nobody")


@pytest.fixture
def unknown(bare_sandbox, tmp_path) -> Path:
    """The administrator's kubeconfig with a token that the server does not know."""
    config = yaml.safe_load(bare_sandbox.kubeconfig.read_text("utf-8"))
    config["users"][0]["user"]["token"] = "wrong"
    cluster = config["clusters"][0]["cluster"]
    authority = bare_sandbox.kubeconfig.parent / cluster["certificate-authority"]
    cluster["certificate-authority"] = str(authority)
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    return path


class Running:
    """`hedgerow run` of one controller as somebody, its log as entries."""

    def __init__(self, kubeconfig: Path, log: Path) -> None:
        self._log = log
        chosen = ["--controllers", "bluegreen", "--kubeconfig", str(kubeconfig)]
        self._command = [*COMMAND, *chosen]

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


def told(capsys: pytest.CaptureFixture[str], kubeconfig: Path, *words: str) -> Answer:
    """Type `hedgerow install …`."""
    return answer(capsys, "install", *words, "--kubeconfig", str(kubeconfig))


def test_credentials_that_the_server_does_not_know_are_said(capsys, unknown):
    """Fact: the server answers 401 to a certificate or token that it does not know."""
    ended = told(capsys, unknown)

    assert ended.code == 4
    [line] = ended.err.splitlines()
    assert "does not accept these credentials" in line
    assert "log in again" in line


class TestPermissions:
    def test_a_command_says_what_is_not_permitted(self, capsys, nobody):
        """Fact: the server's words for what RBAC does not permit."""
        ended = told(capsys, nobody)

        assert ended.code == 1
        [line] = ended.err.splitlines()
        assert 'User "nobody" cannot' in line
        assert "ask for the right" in line

    def test_the_operator_says_each_thing_once_and_waits(self, nobody, tmp_path):
        """Fact: the server refuses lists and watches of a user without rights."""
        with Running(nobody, tmp_path / "log") as running:
            eventually(lambda: running.entries("started"))
            [lacking] = eventually(lambda: running.entries("rights lack"))
            eventually(lambda: len(running.entries("watch in trouble")) == 6)
            code = running.stop()

        assert code == 0
        named = lacking["lacking"].split("; ")
        assert named[0] == "list,watch pods in all namespaces for bluegreen"
        assert "list,watch bluegreens.app.demo.kakao.com in all namespaces for bluegreen" in named
        assert named[-1].startswith("and ")
        assert running.entries("pass failed") == []


class TestMissingDefinitions:
    @pytest.fixture
    def installed(self, bare_sandbox, capsys) -> Iterator[Callable[[], None]]:
        """Install the custom resource, and remove it again: the server is bare for others."""

        def install() -> None:
            ended = told(capsys, bare_sandbox.kubeconfig, "--plain", "--controllers", "bluegreen")
            assert ended.code == 0, ended.err

        yield install
        undefine(bare_sandbox)

    def test_the_operator_names_them_and_goes_on_once_they_are_there(
        self, bare_sandbox, installed, tmp_path
    ):
        """Fact: discovery and watches begin to answer once a definition is established."""
        with Running(bare_sandbox.kubeconfig, tmp_path / "log") as running:
            [named] = eventually(lambda: running.entries("kinds are not served"))
            eventually(lambda: running.entries("watch in trouble"))
            installed()
            # A watch in trouble asks again every thirty seconds at last.
            eventually(lambda: running.entries("caches are filled"), within=90)
            code = running.stop()

        assert code == 0
        assert named["kinds"] == "bluegreens.app.demo.kakao.com"
        assert named["remedy"] == "`hedgerow install`"
        assert len(running.entries("watch recovered")) == 1
