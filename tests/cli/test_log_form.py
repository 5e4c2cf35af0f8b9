"""What `hedgerow run` says on standard error where its log has JSON lines: each line is one."""

from __future__ import annotations

import gc
import json
import logging
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import typer

from hedgerow import app
from hedgerow.cli import main
from hedgerow.cli.log_form import logs_json
from hedgerow.kube import errors as kube
from hedgerow.process.leaderelection.elector import LeadershipLost
from hedgerow.process.leadership import AnotherOperatorError
from hedgerow.runtime import logs
from hedgerow.serving.httpserver.connections import ListenError

ENDS: dict[str, tuple[BaseException, int]] = {
    "no kubeconfig": (kube.ConfigError("none; name one"), 2),
    "no server": (kube.Unreachable("cannot reach it", sent=False), 4),
    "unknown credentials": (kube.Unauthenticated("who?"), 4),
    "no right": (kube.Forbidden("you may not"), 1),
    "another operator": (AnotherOperatorError("x is at work"), 1),
    "a lost Lease": (ExceptionGroup("tasks", [LeadershipLost("not renewed for 10 s")]), 1),
    "a taken port": (ExceptionGroup("tasks", [ListenError("cannot listen on :8080")]), 1),
    "a file": (PermissionError(13, "Permission denied", "/x/y"), 1),
    "an exit with words": (SystemExit("enough\nof it"), 1),
    "an exit with a value": (SystemExit({"enough": True}), 1),
    "a mistake": (ValueError("boo\nhoo"), 1),
    "an abort": (typer.Abort(), 130),
    "text that steers a terminal": (ValueError("\x1b[2J\x7f\u202e"), 1),
}
WRONG: dict[str, tuple[tuple[str, ...], str]] = {
    "an option that there is not": (("--bogus",), "No such option: --bogus"),
    "an argument": (("shop",), "(shop)"),
    "a value": (("--lease-duration", "soon"), "--lease-duration takes a duration"),
    "a setting": (("--instance", "-"), "--instance takes"),
    "settings together": (("--webhooks", "--webhook-bind-address", "0"), "--webhooks needs"),
    "a form that there is not": (("--log-format", "xml"), "'xml' is not one of"),
    "a controller": (("--controllers", "nope"), "no controller is called 'nope'"),
    "an option of a controller": (("--secretsync-type", "a"), "needs `--controllers secretsync`"),
}

Said = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def said(monkeypatch, capsys) -> Said:
    """Type `hedgerow run …`, which raises an error; return the exit code and all entries."""
    monkeypatch.setattr(app, "configure", lambda *_, **__: None)
    monkeypatch.setattr(app, "tune_for_event_loop", lambda: None)
    monkeypatch.setenv("HEDGEROW_LOG_FORMAT", "json")

    def typed(*words: str, error: BaseException | None = None, code: int) -> list[dict[str, Any]]:
        async def run(*_: object) -> None:
            if error:
                raise error

        monkeypatch.setattr(app, "run", run)
        with pytest.raises(SystemExit) as ended:
            main(["run", *words])
        assert ended.value.code == code
        lines = capsys.readouterr().err.split("\n")
        assert lines.pop() == ""
        assert all(line.isascii() and line.isprintable() for line in lines)
        return [json.loads(line) for line in lines]

    return typed


class TestTheLineBeforeAnExit:
    @pytest.mark.parametrize(("error", "code"), ENDS.values(), ids=ENDS)
    def test_is_an_entry_with_the_error_and_the_exit_code(self, said, error, code):
        [entry] = said(error=error, code=code)

        assert (entry["event"], entry["level"], entry["exit_code"]) == ("ended", "error", code)
        assert entry["error"]
        assert "exception" not in entry

    @pytest.mark.parametrize(("words", "what"), WRONG.values(), ids=WRONG)
    def test_so_is_what_is_wrong_with_the_command_line(self, said, words, what):
        [entry] = said(*words, code=2)

        assert (entry["event"], entry["exit_code"]) == ("ended", 2)
        assert what in entry["error"]

    def test_with_debug_the_traceback_is_on_it(self, said):
        error, code = next(iter(ENDS.values()))
        [entry] = said("--debug", error=error, code=code)

        assert entry["exception"].startswith(("Traceback", "  + Exception Group Traceback"))

    def test_what_is_told_before_the_start_is_an_entry_too(self, said, monkeypatch):
        monkeypatch.setenv("HEDGEROW_BOGUS", "1")
        [entry] = said(code=0)

        assert entry["level"] == "warning"
        assert "HEDGEROW_BOGUS means nothing" in entry["event"]

    def test_for_people_it_is_a_sentence_as_of_all_commands(self, monkeypatch, capsys):
        monkeypatch.setenv("HEDGEROW_LOG_FORMAT", "human")
        with pytest.raises(SystemExit):
            main(["run", "--bogus"])

        assert capsys.readouterr().err.startswith("hedgerow: No such option: --bogus; ")

    def test_of_a_command_that_does_not_log_it_is_one(self, monkeypatch, capsys):
        monkeypatch.setenv("HEDGEROW_LOG_FORMAT", "json")
        with pytest.raises(SystemExit):
            main(["install", "--bogus"])

        assert capsys.readouterr().err.startswith("hedgerow: No such option: --bogus; ")


class TestForm:
    @pytest.mark.parametrize(
        ("words", "variable", "terminal", "json_lines"),
        [
            ("run", "", False, True),
            ("run", "", True, False),
            ("run", "json", True, True),
            ("run", "human", False, False),
            ("run", "xml", True, False),
            ("--debug run", "json", True, True),
            ("run --log-format json", "human", True, True),
            ("run --log-format=json", "human", True, True),
            ("run --log-format=human", "json", False, False),
            ("run --log-format json --log-format human", "", False, False),
            ("run --log-format", "", True, False),
            ("run --log-format auto", "json", True, False),
            ("", "json", False, False),
            ("nope", "json", False, False),
            ("--version", "json", False, False),
            ("check --log-format json", "json", False, False),
        ],
    )
    def test_is_that_of_the_log(self, monkeypatch, words, variable, terminal, json_lines):
        monkeypatch.setenv("HEDGEROW_LOG_FORMAT", variable)
        monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal, raising=False)

        assert logs_json(words.split(), "hedgerow") is json_lines

    def test_is_told_by_the_programs_own_variable(self, monkeypatch):
        monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
        monkeypatch.setenv("GREETER_LOG_FORMAT", "json")

        assert logs_json(["run"], "greeter")
        assert not logs_json(["run"], "hedgerow")


PROGRAM = """
import hedgerow
hedgerow.run(hedgerow.Settings(controllers=("nope",), log_format="json"), ())
"""


def test_a_program_without_a_command_line_ends_with_an_entry_too():
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False, timeout=60
    )

    assert ended.returncode == 1
    [line] = ended.stderr.splitlines()
    entry = json.loads(line)
    assert (entry["event"], entry["level"]) == ("uncaught", "critical")
    assert "ValueError: no controller is called nope" in entry["exception"]


class TestWhatPythonPrintsItself:
    @pytest.fixture(autouse=True)
    def unhooked(self, monkeypatch) -> Iterator[None]:
        """Have Python as it was afterwards."""
        for where, name in (
            (sys, "excepthook"),
            (sys, "unraisablehook"),
            (threading, "excepthook"),
        ):
            monkeypatch.setattr(where, name, getattr(where, name))
        with warnings.catch_warnings():
            yield
            logging.captureWarnings(capture=False)

    def entry(self, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
        [line] = capsys.readouterr().err.splitlines()
        return json.loads(line)

    def test_of_an_error_that_nobody_catches_is_an_entry(self, capsys):
        logs.configure("json", for_good=True)
        error = ValueError("boo")
        sys.excepthook(ValueError, error, None)

        entry = self.entry(capsys)
        assert (entry["event"], entry["level"]) == ("uncaught", "critical")
        assert entry["exception"] == "ValueError: boo"

    def test_of_a_thread_too(self, capsys):
        logs.configure("json", for_good=True)
        thread = threading.Thread(target=lambda: 1 / 0)
        thread.start()
        thread.join()

        assert "ZeroDivisionError" in self.entry(capsys)["exception"]

    def test_a_thread_that_leaves_says_nothing(self, capsys):
        logs.configure("json", for_good=True)
        thread = threading.Thread(target=sys.exit)
        thread.start()
        thread.join()

        assert capsys.readouterr().err == ""

    def test_of_an_error_in_a_destructor_too(self, capsys):
        logs.configure("json", for_good=True)

        class Odd:
            def __del__(self) -> None:
                raise ValueError("odd")

        Odd()
        gc.collect()

        assert "ValueError: odd" in self.entry(capsys)["exception"]

    def test_of_a_warning_too(self, capsys):
        logs.configure("json", for_good=True)
        warnings.simplefilter("always")
        warnings.warn("take care", UserWarning, stacklevel=1)

        entry = self.entry(capsys)
        assert entry["logger"] == "py.warnings"
        assert "take care" in entry["event"]
