"""Conftest: a sandbox whose servers are fakes, so that a whole life of it takes a second."""

from pathlib import Path

import psutil
import pytest

from hedgerow_testing.sandbox.cluster import Sandbox
from hedgerow_testing.waiting import eventually
from support.programs.fakes import Fakes


@pytest.fixture
def fakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    made = Fakes(tmp_path / "assets")
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(made.directory))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", "/nowhere")
    yield made
    _end(made.directory)


@pytest.fixture
def sandbox(tmp_path: Path, fakes: Fakes) -> Sandbox:
    assert fakes.directory.exists()
    return Sandbox(tmp_path / "it")


def _end(directory: Path) -> None:
    """Whatever a failed test left: these are ours, for they run out of this directory."""
    left = [p for p in psutil.process_iter(["cmdline"]) if _within(p, directory)]
    for process in left:
        process.kill()
    eventually(lambda: not any(p.is_running() and p.status() != "zombie" for p in left))


def _within(process: psutil.Process, directory: Path) -> bool:
    return any(part.startswith(str(directory)) for part in process.info["cmdline"] or ())
