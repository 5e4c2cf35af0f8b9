"""What the demo prints: readable in 80 columns, plain where there is no terminal."""

from __future__ import annotations

import os
import sys

import pytest
from rich.console import Console

from hedgerow_testing.demo.errors import UnheardError
from hedgerow_testing.demo.page import WIDTH, Page
from hedgerow_testing.sandbox.locks import LockNotice

pytestmark = pytest.mark.anyio
LONG = "word " * 40


@pytest.fixture
def page(shown):
    return Page(Console(file=shown, width=WIDTH, highlight=False))


def on_a_terminal(shown) -> Page:
    return Page(Console(file=shown, width=WIDTH, force_terminal=True))


class TestPage:
    @pytest.mark.parametrize("print_with", ["say", "checked", "broken"])
    def test_what_does_not_fit_hangs_below_and_no_line_is_too_wide(self, page, shown, print_with):
        getattr(page, print_with)(LONG)
        lines = shown.getvalue().splitlines()

        assert len(lines) > 2
        assert all(len(line) <= WIDTH for line in lines)
        assert all(line.startswith("      ") for line in lines[1:])
        assert shown.getvalue().count("word") == 40

    def test_what_has_no_blanks_is_not_broken(self, page, shown):
        page.say(f"it is in {'/x' * 50}")

        assert shown.getvalue() == f"    it is in\n      {'/x' * 50}\n"

    def test_there_are_no_colours_and_no_blanks_at_the_end_without_a_terminal(self, page, shown):
        page.title("This")
        page.act("Something")
        page.checked("so it is")
        page.output("NAME   \n  a")

        assert "\x1b" not in shown.getvalue()
        assert all(line == line.rstrip() for line in shown.getvalue().splitlines())

    def test_parts_are_numbered(self, page, shown):
        for title in ("One", "Two"):
            page.act(title)

        assert shown.getvalue() == "\n 1  One\n\n 2  Two\n"

    def test_an_empty_output_prints_nothing(self, page, shown):
        page.output("")

        assert shown.getvalue() == ""

    def test_markup_in_what_is_shown_is_only_text(self, page, shown):
        page.output("[bold]containers[name=x][/bold]")

        assert "[bold]containers[name=x][/bold]" in shown.getvalue()

    async def test_without_a_terminal_a_step_is_told_once_and_then_now_and_then(self, page, shown):
        with page.waiting("building") as progress:
            for seconds in range(3):
                progress(f"building etcd: {seconds} s")
            progress("building kwok: 0 s")

        assert shown.getvalue() == "    building etcd: 0 s\n    building kwok: 0 s\n"

    async def test_without_a_terminal_every_notice_is_told(self, page, shown):
        with page.waiting("fetching") as progress:
            for host in ("dl.k8s.io", "github.com"):
                progress(LockNotice(f"fetching: {host}"))

        assert shown.getvalue() == "    fetching: dl.k8s.io\n    fetching: github.com\n"

    async def test_on_a_terminal_a_notice_stays(self, shown):
        page = on_a_terminal(shown)
        with page.waiting("waiting") as progress:
            progress(LockNotice("etcd came from github.com"))

        assert "    etcd came from github.com\n" in shown.getvalue()

    async def test_on_a_terminal_the_latest_line_is_shown_and_goes_again(self, shown):
        page = on_a_terminal(shown)
        with page.waiting("waiting") as progress:
            progress("at [this]")

        assert page.lively
        assert "\x1b[?25l" in shown.getvalue()

    def test_a_page_without_a_terminal_is_not_lively(self, page):
        assert not page.lively

    def test_a_reader_that_goes_away_ends_the_demo_and_the_cleaning_up_is_not_disturbed(
        self, monkeypatch
    ):
        reader, writer = os.pipe()
        os.close(reader)
        with os.fdopen(writer, "w") as unread:
            monkeypatch.setattr(sys, "stdout", unread)
            page = Page()
            with pytest.raises(UnheardError) as ended:
                page.say("Everything is in /here")
            page.checked("nothing of the sandbox is left")

        assert str(ended.value) == "the reader of the output is gone; let it read all of the output"


class TestTypedLines:
    def test_a_short_one_is_left_as_it_is(self, page, shown):
        page.typed("kubectl get pods -n demo")

        assert shown.getvalue() == "    $ kubectl get pods -n demo\n"

    @pytest.mark.parametrize(
        "line",
        [
            f"kubectl set image deploy/{'x' * 20} green=busybox:1 -n hedgerow-demo-123456",
            f"kubectl annotate bluegreen demo 'hedgerow.dev/yield=Deployment/{'x' * 40}: a -b'",
        ],
    )
    def test_a_long_one_stays_on_one_line(self, page, shown, line):
        page.typed(line)

        assert shown.getvalue() == f"    $ {line}\n"


class TestCommandsInTexts:
    COMMAND = f"kubectl annotate bluegreen demo 'hedgerow.dev/yield=Deployment/{'x' * 40}: a -b'"

    def test_one_in_an_output_stays_as_it_was_printed(self, page, shown):
        page.output(f"To leave it as it is:\n  {self.COMMAND}")

        assert shown.getvalue() == f"    To leave it as it is:\n      {self.COMMAND}\n"

    @pytest.mark.parametrize("print_with", ["say", "checked", "broken"])
    def test_one_in_a_sentence_is_not_folded(self, page, shown, print_with):
        getattr(page, print_with)(f"to end the conflict that is there: `{self.COMMAND}` does it")

        assert f"`{self.COMMAND}`" in shown.getvalue()
