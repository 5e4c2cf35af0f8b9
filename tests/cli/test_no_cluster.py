"""What a user meets who names no cluster, or one that does not answer: one line, its exit code."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from hedgerow.encoding import encode
from support.operator.running import PORTLESS
from support.programs.typed import answer

COMMANDS = {
    "run": ("run", "--log-format", "json", *PORTLESS),
    "install": ("install",),
}
each_command = pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
NOWHERE = {
    "apiVersion": "v1",
    "kind": "Config",
    "current-context": "there",
    "contexts": [{"name": "there", "context": {"cluster": "there", "user": "me"}}],
    "clusters": [{"name": "there", "cluster": {"server": "https://127.0.0.1:1"}}],
    "users": [{"name": "me", "user": {"token": "t"}}],
}

Told = tuple[int, list[str]]


@pytest.fixture
def told(capsys, monkeypatch, tmp_path) -> Callable[..., Told]:
    """Type a line; give the exit code and the lines on standard error."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def told(words: tuple[str, ...], kubeconfig: Path) -> Told:
        found = answer(capsys, *words, "--kubeconfig", str(kubeconfig))
        return found.code, found.err.splitlines()

    return told


@each_command
def test_a_kubeconfig_that_is_not_there(words, told, tmp_path):
    code, [line] = told(words, tmp_path / "none")

    assert code == 2
    assert f"kubeconfig {tmp_path}/none does not exist; name another file" in line


@each_command
def test_a_kubeconfig_that_is_none(words, told, tmp_path):
    path = tmp_path / "kubeconfig"
    path.write_text("{", encoding="utf-8")
    code, [line] = told(words, path)

    assert code == 2
    assert f"kubeconfig {path} is no YAML" in line


@each_command
def test_a_server_that_is_not_there_and_nothing_is_left_behind(words, told, tmp_path):
    path = tmp_path / "kubeconfig"
    path.write_bytes(encode(NOWHERE))
    code, [line] = told(words, path)

    assert code == 4
    assert "cannot reach https://127.0.0.1:1" in line
    assert "choose another one with --context or --kubeconfig" in line
    assert [found.name for found in tmp_path.iterdir()] == ["kubeconfig"]
