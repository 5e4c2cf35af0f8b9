"""hedgerow run: what its flags become, and what it refuses before it begins."""

from __future__ import annotations

import json
import signal
import socket

import anyio
import pytest

from hedgerow import app, preflight
from hedgerow.cli import main, run
from hedgerow.settings import Settings, default, flags


@pytest.fixture
def began(monkeypatch):
    """Record the settings of each step instead of taking it."""
    steps: list[tuple[str, Settings]] = []

    def recorder(name):
        async def step(settings):
            steps.append((name, settings))

        return step

    monkeypatch.setattr(preflight, "look", recorder("look"))
    monkeypatch.setattr(app, "run", recorder("run"))
    monkeypatch.setattr(run, "configure", lambda *_, **__: None)
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
            (("--grace-period", "1m"), Settings(grace_period=60.0)),
            (("--metrics-bind-address", "0"), Settings(metrics_bind_address="0")),
        ],
    )
    def test_they_become_settings_and_what_is_missing_is_said_first(self, began, words, settings):
        assert typed(*words) == 0
        assert began == [("look", settings), ("run", settings)]

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (
                ("--controllers", "bluegreen,nope"),
                "--controllers: no controller is called 'nope'",
            ),
            (("-n", "Shop_"), "--namespace takes"),
            (("--instance", "-"), "--instance takes"),
            (("--lease-duration", "5s"), "--lease-duration must be longer than --renew-deadline"),
            (("--grace-period", "soon"), "--grace-period takes a positive duration, such as 15s"),
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
            ("HEDGEROW_RETRY_PERIOD", "1s", Settings(retry_period=1.0)),
            ("HEDGEROW_INSTANCE", "", Settings()),
        ],
    )
    def test_a_setting_may_come_from_there(self, began, monkeypatch, variable, value, settings):
        monkeypatch.setenv(variable, value)

        assert typed() == 0
        assert began[0] == ("look", settings)

    def test_an_option_wins_over_it(self, began, monkeypatch):
        monkeypatch.setenv("HEDGEROW_INSTANCE", "two")

        assert typed("--instance", "three") == 0
        assert began[0] == ("look", Settings(instance="three"))

    @pytest.mark.parametrize(
        ("variable", "value", "said"),
        [
            ("HEDGEROW_INSTANCE", "X", "20 characters at most (HEDGEROW_INSTANCE is set)"),
            ("ENABLE_WEBHOOKS", "maybe", "(ENABLE_WEBHOOKS is set)"),
            ("HEDGEROW_CONTROLLERS", "nope", "(HEDGEROW_CONTROLLERS is set)"),
            ("HEDGEROW_LEASE_DURATION", "5s", "(HEDGEROW_LEASE_DURATION is set)"),
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
    def test_sigterm_while_it_still_looks_around_ends_it_with_0(self, began, monkeypatch, capsys):
        left: list[str] = []

        async def look(_settings):
            try:
                signal.raise_signal(signal.SIGTERM)
                await anyio.sleep_forever()
            finally:
                left.append("look")

        before = signal.signal(signal.SIGTERM, signal.SIG_IGN)  # as for a container's first process
        try:
            monkeypatch.setattr(preflight, "look", look)
            assert typed() == 0
            assert signal.getsignal(signal.SIGTERM) == signal.SIG_IGN
        finally:
            signal.signal(signal.SIGTERM, before)
        assert (began, left) == ([], ["look"])
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

        assert "If no API server answers at the start, it exits with code 4" in told


def test_where_no_api_server_answers_it_exits_with_4(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(run, "configure", lambda *_, **__: None)
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    cluster = {"name": "c", "cluster": {"server": f"https://127.0.0.1:{port}"}}
    context = {"name": "c", "context": {"cluster": "c"}}
    config = {"current-context": "c", "clusters": [cluster], "contexts": [context]}
    (tmp_path / "config").write_text(json.dumps(config))

    assert typed("--kubeconfig", str(tmp_path / "config")) == 4
    assert "is the cluster up" in capsys.readouterr().err
