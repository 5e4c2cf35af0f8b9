"""hedgerow, as it is typing: help, version, exit codes, and errors of one line."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from hedgerow import __version__
from hedgerow.cli import commands
from hedgerow.cli.commands import LAZY
from hedgerow.cli.exits import Exit
from hedgerow_testing.demo import DemoError


@pytest.fixture
def failing(monkeypatch):
    """Let `hedgerow install` raise."""

    def raising(error: BaseException):
        def command() -> None:
            raise error

        monkeypatch.setattr(commands.Lazy, "load", lambda _lazy, _name: _command(command))

    return raising


def _command(function):
    import typer

    app = typer.Typer()
    app.command()(function)
    return typer.main.get_command(app)


class TestWrongUsage:
    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (("owners", "x/y", "--manager"), "requires an argument; see `hedgerow owners --help`"),
            (
                ("run", "--log-format=human", "--webhooks=x"),
                "does not take a value; see `hedgerow run --help`",
            ),
            (
                ("sandbox", "up", "--nodes", "x"),
                "'--nodes': must be an integer; see `hedgerow sandbox up --help`",
            ),
            (
                ("sandbox", "up", "--nodes", "1001"),
                "'--nodes': must be at most 1000; see `hedgerow sandbox up --help`",
            ),
            (
                ("tree", "-o", "x"),
                "'x' is not one of 'tree', 'json', 'yaml'; see `hedgerow tree --help`",
            ),
            (("nope",), "No such command 'nope'; see `hedgerow --help`"),
            (("sandbox",), "Missing command; see `hedgerow sandbox --help`"),
        ],
        ids=lambda words: " ".join(words) if isinstance(words, tuple) else "",
    )
    def test_it_is_told_in_one_line_that_leads_to_the_commands_help(self, typing, words, said):
        code, out, err = typing(*words)

        assert code == 2
        assert out == ""
        assert err.startswith("hedgerow: ")
        assert err.endswith(f"{said}\n")
        assert err.count("\n") == 1


class TestHelp:
    @pytest.mark.parametrize("words", [(), ("--help",), ("-h",)])
    def test_it_names_every_command_and_the_exit_codes(self, typing, words):
        code, out, err = typing(*words)

        assert (code, err) == (0, "")
        assert "Exit codes: 0 done, 1 failed, 2 wrong usage" in out
        codes = " ".join(out.partition("Exit codes:")[2].split()).partition(".")[0]
        assert [int(code) for code in re.findall(r"\d+", codes)] == [*Exit]
        for name in (*LAZY, "version"):
            assert f" {name} " in out

    def test_commands_are_grouped(self, typing):
        _, out, _ = typing()

        groups = re.findall(r"^(\w[^.]*):$", out, re.MULTILINE)
        assert groups == [
            "Options",
            "The operator",
            "Fields of any cluster",
            "Your own operator",
            "Throwaway clusters",
            "This program",
        ]

    def test_texts_of_options_have_fifty_columns(self, typing, monkeypatch):
        monkeypatch.setenv("COLUMNS", "80")
        _, out, _ = typing("adopt", "--help")

        texts = [line for line in out.splitlines() if line.startswith(" " * 28)]
        assert max(map(len, texts)) == 28 + 50

    @pytest.mark.parametrize(
        ("command", "said"),
        [
            ("demo", "--keep"),
            ("run", "--controllers"),
            ("install", "--dry-run"),
            ("uninstall", "--delete-resources"),
            ("uninstall", "bluegreens.app.demo.kakao.com"),
            ("uninstall", "memcacheds.memcached.cache.example.com"),
            ("uninstall", "cronjobs.batch.tutorial.kubebuilder.io"),
            ("sandbox", "env"),
            ("version", "Print the version"),
        ],
    )
    def test_each_command_has_its_own(self, typing, command, said):
        code, out, _ = typing(command, "--help")

        assert code == 0
        assert said in out
        assert f"hedgerow {command}" in out

    def test_it_loads_nothing_that_only_a_command_needs(self):
        program = (
            "import sys\nfrom hedgerow.cli import main\ntry: main(['--help'])\n"
            "except SystemExit: pass\n"
            "heavy = ('anyio', 'httpx', 'kr8s', 'cryptography', 'importlib.metadata')\n"
            "print([name for name in heavy if name in sys.modules])"
        )
        shown = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True
        )

        assert shown.stdout.splitlines()[-1] == "[]"

    def test_the_list_says_what_the_commands_say_of_themselves(self):
        for name, lazy in LAZY.items():
            assert lazy.load(name).name == name


class TestVersion:
    @pytest.mark.parametrize("word", ["version", "--version"])
    def test_it_is_one_line(self, typing, word):
        assert typing(word) == (0, f"hedgerow {__version__}\n", "")

    def test_python_finds_hedgerow_where_no_script_is(self):
        shown = subprocess.run(
            [sys.executable, "-m", "hedgerow", "version"],
            capture_output=True,
            text=True,
            check=True,
        )

        assert shown.stdout == f"hedgerow {__version__}\n"


class TestErrors:
    def test_a_failure_is_one_line_without_traceback(self, typing, failing):
        failing(DemoError("it is not so", "look there"))

        assert typing("install") == (1, "", "hedgerow: it is not so; look there\n")

    @pytest.mark.parametrize("words", [("--debug", "install"), ("install", "--debug")])
    def test_debug_anywhere_on_the_line_adds_the_traceback(self, typing, failing, words):
        failing(DemoError("it is not so", "look there"))
        code, _, err = typing(*words)

        assert code == 1
        assert err.startswith("Traceback (most recent call last)")
        assert err.endswith("hedgerow: it is not so; look there\n")

    def test_an_interrupted_command_exits_as_a_shell_expects(self, typing, failing):
        failing(KeyboardInterrupt())

        assert typing("install")[0] == 130


@pytest.fixture
def image(monkeypatch):
    """Have what the operator's image has."""

    def only_hedgerow(name: str) -> object:
        return None if name in {"hedgerow_testing", "hedgerow_tools"} else object()

    monkeypatch.setattr(commands, "find_spec", only_hedgerow)


@pytest.mark.usefixtures("image")
class TestImage:
    @pytest.mark.parametrize("word", ["demo", "sandbox", "owners"])
    def test_a_command_that_it_is_made_without_says_so(self, typing, word):
        code, _, told = typing(word)

        left_out = f"hedgerow: `hedgerow {word}` is not part of the operator's image: run it where"
        assert (code, told[: len(left_out)]) == (1, left_out)

    def test_it_lists_only_what_it_has(self, typing):
        _, out, _ = typing("--help")

        listed = set(re.findall(r"^  (\w+)", out, re.MULTILINE))
        assert listed == {"version", "install", "uninstall", "manifests", "run", "completion"}


def test_a_module_that_is_missing_otherwise_is_a_mistake(monkeypatch, typing):
    def missing(_name: str) -> None:
        raise ModuleNotFoundError("No module named 'rich'", name="rich")

    monkeypatch.setattr(commands, "import_module", missing)

    code, _, told = typing("sandbox")
    assert code == 1
    assert "this is a mistake in hedgerow" in told
