"""Candidates: what a shell offers after Tab where the cluster has to be asked."""

from __future__ import annotations

import signal
import subprocess
import sys
from contextlib import asynccontextmanager
from typing import Any

import pytest

from hedgerow.cli import main
from hedgerow.kube import client
from hedgerow.kube.errors import Forbidden, Unreachable
from hedgerow.kube.watch import Listing

RESOURCES = {
    "v1": [("pods", "Pod", True, ["po"]), ("nodes", "Node", False, ["no"])],
    "app.demo.kakao.com/v1": [("bluegreens", "BlueGreen", True, ["bg"])],
    "apps/v1": [("deployments", "Deployment", True, ["deploy"])],
    "batch/v1": [("cronjobs", "CronJob", True, ["cj"])],
    "batch.tutorial.kubebuilder.io/v1": [("cronjobs", "CronJob", True, [])],
}
NAMES = {
    ("deployments", "shop"): ["web", "web-old", "api\n"],
    ("deployments", "farm"): ["barn"],
    ("deployments", ""): ["web", "barn"],
    ("bluegreens", "shop"): ["demo", "web"],
    ("bluegreens", "farm"): ["barn"],
    ("nodes", ""): ["node-1"],
    ("cronjobs", "shop"): ["report"],
}


class Cluster:
    namespace = "shop"

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.forbidden = ""

    async def get(self, path: str, **_: Any) -> Any:
        if path == "/api":
            return {"versions": ["v1"]}
        if path == "/apis":
            found = [{"groupVersion": name} for name in RESOURCES if "/" in name]
            return {"groups": [{"preferredVersion": one, "versions": [one]} for one in found]}
        kinds = RESOURCES[path.removeprefix("/apis/").removeprefix("/api/")]
        return {
            "resources": [
                {
                    "name": plural, "kind": kind, "singularName": kind.lower(),
                    "namespaced": namespaced, "shortNames": short, "verbs": ["get", "list"],
                }
                for plural, kind, namespaced, short in kinds
            ]
        }  # fmt: skip

    async def list(self, api: Any, namespace: str, *, reduce: Any, partial: bool) -> Listing:
        assert partial
        if api.group_version == self.forbidden:
            raise Forbidden("you may not", code=403)
        named = NAMES.get((api.plural, namespace), [])
        return Listing(tuple(reduce({"metadata": {"name": one}}) for one in named), "1")


@pytest.fixture
def cluster(monkeypatch) -> Cluster:
    made = Cluster()

    @asynccontextmanager
    async def connect(**given: Any):
        made.asked.append((given["kubeconfig"], given["context"]))
        yield made

    monkeypatch.setattr(client, "connect", connect)
    return made


@pytest.fixture
def offered(monkeypatch, capsys):
    """Press Tab at the end of a line, and return what is offered."""

    def press(line: str, shell: str = "bash") -> list[str]:
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", str(line.count(" ")))
        monkeypatch.setenv("_TYPER_COMPLETE_ARGS", line)
        monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
        monkeypatch.setenv("_HEDGEROW_COMPLETE", f"complete_{shell}")
        with pytest.raises(SystemExit):
            main(())
        out, err = capsys.readouterr()
        assert err == ""
        return out.split()

    return press


class TestCommands:
    @pytest.mark.parametrize(
        ("line", "found"),
        [
            ("sand", ["sandbox"]),
            ("sandbox e", ["env"]),
            ("run --lea", ["--leader-elect", "--lease-duration"]),
            ("tree --output j", ["json"]),
            ("wat", ["watch"]),
            ("watch --s", ["--selector", "--seed-format"]),
            ("completion z", ["zsh"]),
        ],
    )
    def test_commands_options_and_choices_are_offered(self, offered, line, found):
        assert offered(f"hedgerow {line}") == found


class TestNames:
    @pytest.mark.parametrize(
        ("line", "found"),
        [
            ("owners deploy/", ["deploy/web", "deploy/web-old"]),
            ("owners deploy/web-", ["deploy/web-old"]),
            ("owners deploy ", ["web", "web-old"]),
            ("owners -n farm Deployment.apps b", ["barn"]),
            ("tree -A deploy ", ["barn", "web"]),
            ("adopt no/", ["no/node-1"]),
            ("release deploy/x", []),
            ("plan deploy/web", ["deploy/web", "deploy/web-old"]),
            ("schedule explain cronjob ", ["report"]),
            ("promote d", ["demo"]),
            ("rollback -n farm ", ["barn"]),
            ("promote demo ", []),
            ("owners deploy web ", []),
            ("owners deploy/web ", []),
            ("owners nope/", []),
        ],
    )
    def test_those_that_the_word_may_become_are_offered(self, cluster, offered, line, found):
        assert offered(f"hedgerow {line}") == found

    def test_kubeconfig_and_context_choose_the_cluster(self, cluster, offered):
        offered("hedgerow owners --kubeconfig file --context there deploy/")

        assert cluster.asked == [("file", "there")]

    def test_a_kind_that_may_not_be_listed_is_left_out(self, cluster, offered):
        cluster.forbidden = "batch/v1"

        assert offered("hedgerow tree cronjob/") == ["cronjob/report"]

    @pytest.mark.parametrize("shell", ["zsh", "fish"])
    def test_other_shells_get_the_same(self, cluster, offered, shell):
        assert "deploy/web-old" in " ".join(offered("hedgerow owners deploy/", shell))


class TestKinds:
    @pytest.mark.parametrize(
        ("line", "found"),
        [
            ("owners dep", ["deployments"]),
            ("tree c", ["cronjobs", "cronjobs.batch.tutorial.kubebuilder.io"]),
            ("watch no", ["nodes"]),
            ("plan dep", []),
        ],
    )
    def test_before_a_name_kinds_are_offered(self, cluster, offered, line, found):
        assert offered(f"hedgerow {line}") == found


class TestSilence:
    def test_without_a_cluster_nothing_is_offered(self, offered, monkeypatch):
        @asynccontextmanager
        async def connect(**_: Any):
            print("no answer", file=sys.stderr)
            raise Unreachable("nobody is there")
            yield

        monkeypatch.setattr(client, "connect", connect)

        assert offered("hedgerow owners deploy/") == []

    def test_the_alarm_is_as_it_was_afterwards(self, cluster, offered):
        before = signal.getsignal(signal.SIGALRM)
        offered("hedgerow owners deploy/")

        assert signal.getsignal(signal.SIGALRM) is before
        assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)

    def test_a_cluster_that_takes_long_is_not_waited_for(self):
        lines = (
            "import threading",
            "from hedgerow.cli import candidates",
            "candidates.SECONDS = 0.05",
            "with candidates._hurried(): threading.Event().wait()",
        )
        ended = subprocess.run(
            [sys.executable, "-c", "\n".join(lines)], capture_output=True, check=False, timeout=120
        )

        assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")
