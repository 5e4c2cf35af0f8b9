"""Logs, as a person reads them and as a program does."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

import pytest
import structlog

from hedgerow.runtime import logs
from support.objects.foreign import POISON


@pytest.fixture
def said(capsys) -> Callable[[], list[str]]:
    """What was said on standard error since the last look, line by line."""

    def lines() -> list[str]:
        return capsys.readouterr().err.splitlines()

    return lines


def failing() -> None:
    password = "hunter2"
    if len(password) > 3:
        raise ZeroDivisionError


class TestJson:
    def test_each_event_is_one_json_line_with_level_and_time(self, said):
        logs.configure("json")

        structlog.get_logger().info("created", object="Service/demo", number=3)

        (line,) = said()
        entry = json.loads(line)
        assert entry.pop("timestamp").endswith("Z")
        assert entry == {
            "event": "created",
            "level": "info",
            "object": "Service/demo",
            "number": 3,
        }

    def test_an_exception_stays_on_the_line(self, said):
        logs.configure("json")
        try:
            failing()
        except ZeroDivisionError:
            structlog.get_logger().exception("pass failed", resource="ns/x")

        (line,) = said()
        assert "ZeroDivisionError" in json.loads(line)["exception"]

    def test_what_is_no_json_is_told_in_words(self, said):
        logs.configure("json")

        structlog.get_logger().info("odd", value={1}, text="ünï")
        structlog.get_logger().info("plain", value={1})

        assert [json.loads(line)["value"] for line in said()] == ["{1}", "{1}"]

    @pytest.mark.parametrize("text", ["a\nb", "\x7f", "\x9b31m", "ünï", "\u2028", "\ud800", "\x00"])
    def test_each_line_is_printable_ascii(self, said, text):
        logs.configure("json")

        structlog.get_logger().info("odd", text=text)

        (line,) = said()
        assert line.isascii()
        assert line.isprintable()
        assert json.loads(line)["text"] == text

    def test_elsewhere_than_on_a_terminal_auto_means_json(self, said):
        logs.configure()

        structlog.get_logger().info("created")

        assert json.loads(said()[0])["event"] == "created"


class TestForeign:
    """Names, labels and messages of others are in log lines as well."""

    @pytest.mark.parametrize("form", ["human", "json"])
    def test_a_line_has_nothing_that_a_terminal_obeys(self, said, form):
        logs.configure(form)

        structlog.get_logger().info(POISON, name=POISON)

        (line,) = said()
        assert line.isprintable()

    @pytest.mark.parametrize("form", ["human", "json"])
    def test_each_text_is_cut(self, said, form):
        logs.configure(form)

        structlog.get_logger().info("x" * 99_999, name="y" * 99_999)

        (line,) = said()
        assert (line.count("x"), line.count("y")) == (logs.LONGEST - 1, logs.LONGEST - 1)

    def test_a_traceback_keeps_its_lines_and_its_end(self, said):
        logs.configure("human")
        error = ZeroDivisionError(POISON + "x" * 99_999 + "end")
        try:
            raise error
        except ZeroDivisionError:
            structlog.get_logger().exception("pass failed")

        lines = said()
        assert lines[-1].endswith("xend")
        assert all(map(str.isprintable, lines))
        assert len("".join(lines)) < logs.LONGEST_TRACE + 100


class TestPass:
    """What a pass binds, see `ControllerRunner`."""

    def told(self, said, form, **how):
        logs.configure(form, **how)
        with structlog.contextvars.bound_contextvars(object="ns/x", uid="0a1b", pass_id=7):
            structlog.get_logger().info("created", child="Service/demo")
        return said()[0]

    def test_its_identifiers_are_on_each_json_line(self, said):
        entry = json.loads(self.told(said, "json"))

        assert (entry["object"], entry["uid"], entry["pass_id"]) == ("ns/x", "0a1b", 7)

    def test_people_are_spared_what_only_programs_read(self, said):
        line = self.told(said, "human")

        assert "object=ns/x" in line
        assert "0a1b" not in line

    def test_people_who_ask_for_all_get_all(self, said):
        assert "uid=0a1b" in self.told(said, "human", debug=True)


class TestHuman:
    def test_on_a_terminal_auto_means_human(self, said, monkeypatch):
        monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
        logs.configure()

        structlog.get_logger().info("created", object="Service/demo")

        (line,) = said()
        assert "created" in line
        assert "Service/demo" in line
        assert not line.startswith("{")

    def test_elsewhere_it_has_no_colours(self, said):
        logs.configure("human")

        structlog.get_logger().warning("watch in trouble", watched="pods")

        (line,) = said()
        assert "\x1b" not in line
        assert "watched=pods" in line

    def test_a_traceback_shows_no_values(self, said, monkeypatch):
        monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
        logs.configure("human")
        try:
            failing()
        except ZeroDivisionError:
            structlog.get_logger().exception("pass failed")

        lines = said()
        assert any("ZeroDivisionError" in line for line in lines)
        assert not any("hunter2" in line for line in lines)


class TestLevels:
    @pytest.mark.parametrize(("debug", "lines"), [(False, 0), (True, 1)])
    def test_details_are_told_only_when_asked_for(self, said, debug, lines):
        logs.configure("json", debug=debug)

        structlog.get_logger().debug("detail")

        assert len(said()) == lines

    def test_a_logger_made_before_follows_the_configuration(self, said):
        early = structlog.get_logger("early")
        early.debug("lost")
        logs.configure("json")
        early.info("kept")

        assert json.loads(said()[-1])["event"] == "kept"
