"""The demo's stage on a cluster that was given, and the directory it plays in."""

from __future__ import annotations

import io
import subprocess

import pytest
from rich.console import Console

from hedgerow.demo import stage as stages
from hedgerow.demo.errors import DemoError, UnheardError
from hedgerow.demo.page import Page
from hedgerow.demo.stage import Target, folder, given, sandboxed
from hedgerow.sandbox.errors import SandboxError
from support.server.apiserver import ApiServer
from support.server.connected import connect

pytestmark = pytest.mark.anyio


@pytest.fixture
def page(shown):
    return Page(Console(file=shown, width=80))


@pytest.fixture
def asked(monkeypatch):
    """What the connection was asked for."""
    server = ApiServer(latency=0)
    monkeypatch.setattr(stages, "connect", connect(server))
    return server.logins


class TestGiven:
    async def test_it_plays_in_a_namespace_of_its_own_each_time_another(
        self, page, asked, tmp_path
    ):
        names = []
        for _ in range(2):
            async with given(page, tmp_path, Target(kubeconfig="k", context="a b")) as stage:
                names.append(stage.namespace)

        assert len(set(names)) == 2
        assert all(name.startswith("hedgerow-demo-") for name in names)
        assert stage.flags == f" -n {names[1]} --context 'a b'"
        assert asked[0]["kubeconfig"] == "k"
        assert asked[0]["context"] == "a b"

    async def test_another_terminal_finds_the_kubeconfig_from_wherever_it_is(
        self, page, asked, tmp_path, monkeypatch
    ):
        monkeypatch.chdir(tmp_path)
        async with given(page, tmp_path, Target(kubeconfig="it")):
            exports = (tmp_path / "env").read_text()

        assert asked
        assert f"export KUBECONFIG={tmp_path}/it\n" in exports

    async def test_its_operator_takes_no_port_that_somebody_may_have(self, page, asked, tmp_path):
        async with given(page, tmp_path, Target(context="there")) as stage:
            environment = stage.environment

        assert asked
        for port in ("METRICS", "HEALTH_PROBE"):
            assert environment[f"HEDGEROW_{port}_BIND_ADDRESS"] == "0"

    async def test_kubectl_is_built_where_the_machine_has_none(
        self, page, asked, tmp_path, monkeypatch
    ):
        class Binaries:
            def __init__(self, _release, progress):
                progress("building kubectl")

            async def find(self, wanted):
                assert wanted == ["kubectl"]
                return {"kubectl": tmp_path / "built" / "kubectl"}

        monkeypatch.setattr(stages, "Binaries", Binaries)
        monkeypatch.setenv("PATH", str(tmp_path / "empty"))
        async with given(page, tmp_path, Target(context="there")) as stage:
            path = stage.shell.environment["PATH"]

        assert asked
        assert path.split(":")[1:] == [str(tmp_path / "built"), str(tmp_path / "empty")]


class TestSandboxed:
    async def test_it_is_brought_up_as_it_is_typed(self, page, shown, tmp_path, monkeypatch):
        asked = []

        async def up(_sandbox, options, _progress):
            asked.append(options)
            raise SandboxError("no", "go")

        monkeypatch.setattr(stages.Sandbox, "up", up)
        with pytest.raises(SandboxError):
            async with sandboxed(page, tmp_path, Target()):
                pass

        assert [options.nodes for options in asked] == [1]
        line = "$ hedgerow sandbox up --nodes 1 --audit audit.log --dir sandbox\n"
        assert line in shown.getvalue()


class TestFolder:
    @pytest.mark.parametrize("keep", [True, False])
    async def test_it_goes_at_the_end_unless_it_is_to_be_kept(
        self, page, keep, tmp_path, monkeypatch
    ):
        monkeypatch.setattr(stages.tempfile, "tempdir", str(tmp_path))
        async with folder(page, keep=keep) as directory:
            assert directory.stat().st_mode & 0o777 == 0o700

        assert directory.exists() is keep

    @pytest.mark.parametrize(
        ("error", "log", "stays"),
        [
            (DemoError("not so", "look"), True, True),
            (DemoError("not so", "look"), False, False),
            (UnheardError("nobody", "reads"), True, False),
            (KeyboardInterrupt(), True, False),
        ],
        ids=["a failure with logs", "a failure without", "nobody reads on", "Ctrl-C"],
    )
    async def test_after_a_failure_it_stays_if_there_is_something_to_read(
        self, page, shown, error, log, stays, tmp_path, monkeypatch
    ):
        monkeypatch.setattr(stages.tempfile, "tempdir", str(tmp_path))

        async def failing():
            async with folder(page, keep=True) as directory:
                if log:
                    (directory / "operator.log").touch()
                raise error

        with pytest.raises(type(error)):
            await failing()

        assert bool(list(tmp_path.iterdir())) is stays
        assert ("What there is to read" in shown.getvalue()) is stays


def test_the_exports_are_what_a_shell_evaluates(tmp_path):
    stages.Shell(Page(Console(file=io.StringIO())), tmp_path, {"A": "x y'z"}, {})
    script = f'. {tmp_path}/env; printf %s "$A"'
    shown = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)

    assert shown.stdout == "x y'z"
