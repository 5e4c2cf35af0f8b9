"""Candidates: what a shell offers after Tab where the cluster has to be asked."""

from __future__ import annotations

import signal
import subprocess
import sys
from contextlib import asynccontextmanager
from typing import Any

import pytest

from hedgerow.cli import candidates, main
from hedgerow.kube import client
from hedgerow.kube.errors import Unreachable
from hedgerow_schemas.base import ApiResource
from hedgerow_testing.memory.kind import ServedKind
from support.server.apiserver import Act, ApiServer, Exchange, Reply, refusal

NAMES = {
    ("apps/v1", "Deployment", "shop"): ["web", "web-old", "api\n"],
    ("apps/v1", "Deployment", "farm"): ["barn"],
    ("app.demo.kakao.com/v1", "BlueGreen", "shop"): ["demo", "web"],
    ("app.demo.kakao.com/v1", "BlueGreen", "farm"): ["barn"],
    ("v1", "Node", ""): ["node-1"],
    ("batch/v1", "CronJob", "shop"): ["report"],
    ("batch.tutorial.kubebuilder.io/v1", "CronJob", "shop"): ["report"],
}
NODE = ServedKind(ApiResource("v1", "Node", "nodes", namespaced=False), {})
CRONJOB = ServedKind(ApiResource("batch/v1", "CronJob", "cronjobs"), {})


@pytest.fixture
def cluster(server) -> ApiServer:
    for kind in (NODE, CRONJOB):
        server.store.serve(kind)
    for (version, kind, namespace), names in NAMES.items():
        for name in names:
            metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
            server.store.put({"apiVersion": version, "kind": kind, "metadata": metadata})
    return server


@pytest.fixture
def offered(monkeypatch, capsys):
    """Press Tab at the end of a line, and return what is offered."""

    # A busy machine may take longer than a shell waits; the process of the tests is not to end.
    monkeypatch.setattr(candidates, "SECONDS", 600.0)

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
            ("watch --s", ["--selector"]),
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
            ("tree -A deploy ", ["barn", "web", "web-old"]),
            ("adopt no/", ["no/node-1"]),
            ("release deploy/x", []),
            ("plan deploy/web", ["deploy/web", "deploy/web-old"]),
            ("schedule next cronjob ", ["report"]),
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

        [login] = cluster.logins
        assert (login["kubeconfig"], login["context"]) == ("file", "there")

    def test_a_kind_that_may_not_be_listed_is_left_out(self, cluster, offered):
        def refused(exchange: Exchange, act: Act) -> Reply:
            is_refused = exchange.api.group == "batch"
            return refusal(403, "Forbidden", "you may not") if is_refused else act()

        cluster.answers["list CronJob"] = refused

        assert offered("hedgerow tree cronjob/") == ["cronjob/report"]

    @pytest.mark.parametrize("shell", ["zsh", "fish"])
    def test_other_shells_get_the_same(self, cluster, offered, shell):
        assert "deploy/web-old" in " ".join(offered("hedgerow owners deploy/", shell))


class TestKinds:
    @pytest.mark.parametrize(
        ("line", "found"),
        [
            ("owners dep", ["deployments"]),
            ("tree cr", ["cronjobs", "cronjobs.batch.tutorial.kubebuilder.io"]),
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
