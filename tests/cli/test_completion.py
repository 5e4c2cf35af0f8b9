"""Completion: what shells and kubectl are told when Tab is pressed, and the plugin itself."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from hedgerow.cli.completion import complete_for_kubectl

ROOT = Path(__file__).parents[2]
SCRIPTS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["scripts"]


@pytest.fixture
def programs(tmp_path: Path) -> dict[str, str]:
    """Return an environment in which each of our programs is the one of this source."""
    place = tmp_path / "bin"
    place.mkdir()
    for name, target in SCRIPTS.items():
        module, _, function = target.partition(":")
        script = place / name
        script.write_text(f"#!{sys.executable}\nfrom {module} import {function}\n{function}()\n")
        script.chmod(0o755)
    given = {name: value for name, value in os.environ.items() if not name.startswith("_TYPER")}
    return given | {"PATH": f"{place}{os.pathsep}{os.environ['PATH']}"}


def run(programs: dict[str, str], *words: str, **more: str) -> tuple[int, str, str]:
    ended = subprocess.run(
        words, env=programs | more, capture_output=True, text=True, check=False, timeout=120
    )
    return ended.returncode, ended.stdout, ended.stderr


class TestShells:
    def test_bash_completes_what_is_offered(self, programs):
        script = r"""
            source <(hedgerow completion bash)
            COMP_WORDS=(hedgerow manifests --overlay n) COMP_CWORD=3
            _hedgerow_completion hedgerow
            printf '%s\n' "${COMPREPLY[@]}"
        """
        assert run(programs, "bash", "-c", script) == (0, "namespaced\nno-webhook\n", "")

    @pytest.mark.parametrize(
        ("shell", "said"),
        [
            ("zsh", "compdef _hedgerow_completion hedgerow"),
            ("fish", "complete --command hedgerow --no-files"),
        ],
    )
    def test_each_other_shell_has_its_script(self, typing, shell, said):
        code, out, err = typing("completion", shell)

        assert (code, err) == (0, "")
        assert said in out

    def test_another_shell_is_wrong_usage(self, typing):
        code, out, err = typing("completion", "csh")

        assert (code, out) == (2, "")
        assert "'csh' is not one of 'bash', 'zsh', 'fish'" in err


class TestPlugin:
    def test_it_is_called_as_kubectl_calls_it(self, programs):
        code, out, _ = run(programs, "kubectl-hedgerow", "sandbox", "env", "--help")

        assert code == 0
        assert "Usage: kubectl hedgerow sandbox env" in out

    def test_an_error_leads_to_its_help(self, programs):
        code, _, err = run(programs, "kubectl-hedgerow", "nope")

        assert code == 2
        assert err == "hedgerow: No such command 'nope'; see `kubectl hedgerow --help`\n"

    @pytest.mark.parametrize(
        ("words", "found", "directive"),
        [
            (["sandbox", ""], ["up", "down", "status", "env"], ":4"),
            (["tree", "-o", "j"], ["json"], ":4"),
            (["plan", "-f", ""], [], ":0"),
            (["plan", "-f", "a b/'c"], [], ":0"),
            (["x sand"], [], ":0"),
        ],
    )
    def test_kubectl_is_told_candidates_and_a_directive(
        self, monkeypatch, capsys, words, found, directive
    ):
        for name in ("_TYPER_COMPLETE_ARGS", "_TYPER_COMPLETE_FISH_ACTION"):
            monkeypatch.setenv(name, "")
        monkeypatch.setattr(sys, "argv", ["kubectl_complete-hedgerow", *words])
        complete_for_kubectl()
        *candidates, last = capsys.readouterr().out.splitlines()

        assert last == directive
        assert [line.split("\t")[0] for line in candidates] == found

    def test_kubectl_asks_a_program(self, programs):
        code, out, err = run(programs, "kubectl_complete-hedgerow", "sand")

        assert (code, err) == (0, "")
        assert [line.split("\t")[0] for line in out.splitlines()] == ["sandbox", ":4"]
