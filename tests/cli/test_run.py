"""hedgerow run: what its flags become, and what it refuses before it begins."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import httpx
import pytest

from hedgerow import app
from hedgerow.cli import main
from hedgerow.cli.commands import Lazy
from hedgerow.settings import Settings, default, flags
from hedgerow_testing.waiting import eventually
from support.operator.registered import ALL


@pytest.fixture
def began(monkeypatch):
    """Record the settings of each step instead of taking it."""
    steps: list[tuple[str, Settings]] = []

    async def operate(settings, registry):
        assert registry.names == ALL.names
        steps.append(("run", settings))

    monkeypatch.setattr(app, "run", operate)
    monkeypatch.setattr(app, "configure", lambda *_, **__: None)
    monkeypatch.setattr(app, "tune_for_event_loop", lambda: None)
    return steps


def typed(*words: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["run", *words])
    return int(ended.value.code or 0)


class TestFlags:
    @pytest.mark.parametrize(
        ("words", "settings"),
        [
            ((), Settings()),
            (("--controllers", "bluegreen"), Settings(controllers=("bluegreen",))),
            (("--controllers", "bluegreen,"), Settings(controllers=("bluegreen",))),
            (("-n", "a", "--namespace", "b"), Settings(namespaces=("a", "b"))),
            (("--instance", "two"), Settings(instance="two")),
            (("--kubeconfig", "k", "--context", "c"), Settings(kubeconfig="k", context="c")),
            (("--log-format", "json"), Settings(log_format="json")),
            (("--debug",), Settings(debug=True)),
            (("--leader-elect",), Settings(leader_elect=True)),
            (("--shard", "2/8"), Settings(shard="2/8", leader_elect=True)),
            (("--lease-duration", "1m"), Settings(lease_duration=60.0)),
            (("--metrics-bind-address", "0"), Settings(metrics_bind_address="0")),
        ],
    )
    def test_they_become_settings_and_what_is_missing_is_said_first(self, began, words, settings):
        assert typed(*words) == 0
        assert began == [("run", settings)]

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (
                ("--controllers", "bluegreen,nope"),
                "--controllers: no controller is called 'nope'",
            ),
            (("-n", "Shop_"), "--namespace takes"),
            (("--instance", "-"), "--instance takes"),
            (("--shard", "8/8"), "--shard takes a shard, counted from 0, and how many"),
            (("--lease-duration", "0.5s"), "--lease-duration takes a duration of at least 1s"),
            (
                ("--lease-duration", "soon"),
                "--lease-duration takes a duration of at least 1s, such as 15s",
            ),
            (("--metrics-bind-address", "x"), "--metrics-bind-address takes an address to listen"),
            (("--log-format", "xml"), "'xml' is not one of"),
            (("shop",), "(shop); see `hedgerow run --help`"),
        ],
    )
    def test_what_makes_no_sense_is_refused_before_anything_begins(
        self, began, capsys, words, said
    ):
        assert typed(*words) == 2
        assert said in capsys.readouterr().err
        assert began == []


class TestEnvironment:
    @pytest.mark.parametrize(
        ("variable", "value", "settings"),
        [
            ("HEDGEROW_NAMESPACE", "a,b", Settings(namespaces=("a", "b"))),
            ("HEDGEROW_LEADER_ELECT", "true", Settings(leader_elect=True)),
            ("ENABLE_WEBHOOKS", "true", Settings(webhooks=True)),
            ("ENABLE_WEBHOOKS", "false", Settings()),
            ("HEDGEROW_LEASE_DURATION", "6s", Settings(lease_duration=6.0)),
            ("HEDGEROW_SHARD", "2/8", Settings(shard="2/8")),
            ("HEDGEROW_INSTANCE", "", Settings()),
        ],
    )
    def test_a_setting_may_come_from_there(self, began, monkeypatch, variable, value, settings):
        monkeypatch.setenv(variable, value)

        assert typed() == 0
        assert began == [("run", settings)]

    def test_an_option_wins_over_it(self, began, monkeypatch):
        monkeypatch.setenv("HEDGEROW_INSTANCE", "two")

        assert typed("--instance", "three") == 0
        assert began == [("run", Settings(instance="three"))]

    @pytest.mark.parametrize(
        ("variable", "value", "said"),
        [
            ("HEDGEROW_INSTANCE", "X", "20 characters at most (HEDGEROW_INSTANCE is set)"),
            ("ENABLE_WEBHOOKS", "maybe", "(ENABLE_WEBHOOKS is set)"),
            ("HEDGEROW_CONTROLLERS", "nope", "(HEDGEROW_CONTROLLERS is set)"),
            ("HEDGEROW_LEASE_DURATION", "0.5s", "(HEDGEROW_LEASE_DURATION is set)"),
            (
                "HEDGEROW_LOG_FORMAT",
                "yaml",
                "'--log-format': 'yaml' is not one of 'auto', ",
            ),
            ("ENABLE_WEBHOOKS", "maybe", "'--webhooks': must be true or false (ENABLE"),
        ],
    )
    def test_nonsense_from_there_is_refused_as_well(
        self, began, monkeypatch, capsys, variable, value, said
    ):
        monkeypatch.setenv(variable, value)

        assert typed() == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert said in line
        assert began == []


class TestBeginning:
    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
    def test_a_signal_while_it_still_connects_ends_it_with_0(self, monkeypatch, capsys, number):
        left: list[str] = []

        @asynccontextmanager
        async def connect(**_how):
            try:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(anyio.sleep_forever)
                    signal.raise_signal(number)
            finally:
                left.append("connect")
            yield

        before = signal.signal(signal.SIGTERM, signal.SIG_IGN)  # as for a container's first process
        try:
            monkeypatch.setattr(app, "configure", lambda *_, **__: None)
            monkeypatch.setattr(app, "tune_for_event_loop", lambda: None)
            monkeypatch.setattr(app, "connect", connect)
            assert typed() == 0
            assert signal.getsignal(signal.SIGTERM) == signal.SIG_IGN
        finally:
            signal.signal(signal.SIGTERM, before)
        assert left == ["connect"]
        assert capsys.readouterr().err == ""

    def test_so_does_sigterm_while_the_command_is_imported(self, began, monkeypatch, capsys):
        load = Lazy.load

        def slowly(command: Lazy, name: str) -> object:
            signal.raise_signal(signal.SIGTERM)
            return load(command, name)

        monkeypatch.setattr(Lazy, "load", slowly)
        before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
        try:
            assert typed() == 0
            assert signal.getsignal(signal.SIGTERM) == signal.SIG_IGN
        finally:
            signal.signal(signal.SIGTERM, before)
        assert began == []
        assert capsys.readouterr().err == ""


class TestHelp:
    def test_it_tells_every_setting_with_its_default(self, capsys):
        assert typed("--help") == 0
        told = " ".join(capsys.readouterr().out.replace("│", " ").split())

        for name, (_, flag) in flags().items():
            assert flag.long in told
            assert flag.help.split()[0] in told
            assert f"[default: ({default(name)})]" in told

    def test_it_tells_what_becomes_of_a_start_without_an_api_server(self, capsys):
        assert typed("--help") == 0
        told = " ".join(capsys.readouterr().out.split())

        assert "If no API server answers at the start, it exits with code 4; in a pod it" in told


def kubeconfig(tmp_path: Path, server: str) -> str:
    cluster = {"name": "c", "cluster": {"server": server}}
    context = {"name": "c", "context": {"cluster": "c"}}
    config = {"current-context": "c", "clusters": [cluster], "contexts": [context]}
    (tmp_path / "config").write_text(json.dumps(config))
    return str(tmp_path / "config")


def test_where_no_api_server_answers_it_exits_with_4(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(app, "configure", lambda *_, **__: None)
    monkeypatch.setattr(app, "tune_for_event_loop", lambda: None)
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]

    assert typed("--kubeconfig", kubeconfig(tmp_path, f"https://127.0.0.1:{port}")) == 4
    assert "check that the cluster is up" in capsys.readouterr().err


def test_sigterm_while_the_server_gives_no_answer_ends_it_with_0(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(60)
        server = f"http://127.0.0.1:{silent.getsockname()[1]}"
        command = [sys.executable, "-m", "hedgerow", "run"]
        with subprocess.Popen(
            [*command, "--kubeconfig", kubeconfig(tmp_path, server)], stderr=subprocess.PIPE
        ) as process:
            connection, _ = silent.accept()
            with connection:
                process.terminate()
                _, said = process.communicate(timeout=60)

    told = said.decode()
    assert process.returncode == 0, told
    assert [word in told for word in ("stopping", "stopped", "Traceback")] == [True, True, False]


def test_in_a_pod_it_serves_its_probes_while_no_server_answers_and_sigterm_ends_it(tmp_path):
    with (
        socket.create_server(("127.0.0.1", 0)) as closed,
        socket.create_server(("127.0.0.1", 0)) as held,
    ):
        server, port = (one.getsockname()[1] for one in (closed, held))
    command = [sys.executable, "-m", "hedgerow", "run", "--metrics-bind-address", "0"]
    command += [f"--health-probe-bind-address=127.0.0.1:{port}", "--kubeconfig"]
    command.append(kubeconfig(tmp_path, f"https://127.0.0.1:{server}"))
    pod = os.environ | {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}
    with subprocess.Popen(command, stderr=subprocess.PIPE, env=pod) as process:
        try:
            unready = eventually(lambda: probed(port, "readyz", "does not answer: "), 60)
            alive = probed(port, "healthz", "ok")
        finally:
            process.terminate()
            _, said = process.communicate(timeout=60)

    assert "[-]api-server failed: the API server does not answer: GET /version: cannot" in unready
    assert alive == "ok"
    assert process.returncode == 0
    events = [json.loads(line)["event"] for line in said.decode().splitlines()]
    assert events == ["waiting for the API server", "stopping", "stopped"]


def probed(port: int, path: str, expected: str) -> str:
    """Return the answer to a probe if it has the expected text, else nothing."""
    try:
        text = httpx.get(f"http://127.0.0.1:{port}/{path}").text
    except httpx.HTTPError:
        return ""
    return text if expected in text else ""


class TestOptionsOfControllers:
    @pytest.mark.parametrize(
        ("words", "options"),
        [
            (("--secretsync-type", "example.com/a"), {"type": "example.com/a"}),
            (
                ("--secretsync-selector", "a in (b, c),!d", "--secretsync-skip", ""),
                {"selector": "a in (b, c),!d", "skip": ""},
            ),
        ],
    )
    def test_they_reach_the_controller(self, began, words, options):
        assert typed("--controllers", "secretsync", *words) == 0
        (_, settings), *_ = began
        assert settings.options == {"secretsync": options}

    def test_they_may_come_from_the_environment_where_the_controller_runs(self, began, monkeypatch):
        monkeypatch.setenv("HEDGEROW_SECRETSYNC_NAMESPACE", "vault")

        assert typed("--controllers", "secretsync") == 0
        assert typed() == 0
        assert began[0][1].options == {"secretsync": {"namespace": "vault"}}

    @pytest.mark.parametrize("name", ["BLIND", "INTERVAL"])
    def test_the_variable_of_a_removed_one_is_told(self, began, capsys, monkeypatch, name):
        monkeypatch.setenv(f"HEDGEROW_SECRETSYNC_{name}", "10m")

        assert typed("--controllers", "secretsync") == 0
        told = capsys.readouterr().err
        assert f"the environment variable HEDGEROW_SECRETSYNC_{name} means nothing" in told
        assert told.count("\n") == 1
        assert began[0][1].options == {}

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (("--secretsync-type", "a"), "--secretsync-type needs `--controllers secretsync`"),
            (
                ("--controllers", "secretsync", "--secretsync-selector", "a in"),
                "--secretsync-selector: 'a in' is no label selector",
            ),
            (
                ("--controllers", "secretsync", "--secretsync-namespace", "No"),
                "--secretsync-namespace: 'No' is no namespace's name",
            ),
            (
                (
                    "--controllers",
                    "secretsync",
                    "--secretsync-type",
                    "a",
                    "--secretsync-skip",
                    "A_b",
                ),
                "--secretsync-skip: 'A_b' is no namespace's name",
            ),
            (
                ("--controllers", "secretsync", "--secretsync-blind"),
                "No such option: --secretsync-blind",
            ),
            (
                ("--controllers", "secretsync", "--secretsync-interval", "10m"),
                "No such option: --secretsync-interval",
            ),
            (("--controllers", "secretsync", "-n", "shop"), "cannot keep to some of them"),
        ],
    )
    def test_what_cannot_be_is_one_line(self, began, capsys, words, said):
        assert typed(*words) == 2
        told = capsys.readouterr().err
        assert said in told
        assert told.count("\n") == 1
        assert began == []
