"""The demo's shell: what it shows is what it runs."""

from __future__ import annotations

import os
import subprocess

import pytest
from rich.console import Console

from hedgerow_testing.demo import DemoError
from hedgerow_testing.demo import shell as shells
from hedgerow_testing.demo.page import Page
from hedgerow_testing.demo.shell import Ended, Shell

pytestmark = pytest.mark.anyio


@pytest.fixture
def shell(shown, tmp_path):
    page = Page(Console(file=shown, width=80))
    return Shell(page, tmp_path, {"GREETING": "it's me"}, {"PATH": os.environ["PATH"]})


class TestShell:
    async def test_it_shows_the_line_and_what_it_printed_and_gives_that(self, shell, shown):
        printed = await shell.run('echo "$GREETING"; pwd >&2')

        assert printed == f"it's me\n{shell.directory}"
        assert shown.getvalue().startswith('    $ echo "$GREETING"; pwd >&2\n    it\'s me\n')

    @pytest.mark.parametrize(
        ("line", "said"),
        [
            ("echo no; exit 3", "`echo no; exit 3` exits with 3; no"),
            ("exit 4", "`exit 4` exits with 4; it printed nothing"),
        ],
    )
    async def test_one_that_fails_ends_the_demo(self, shell, line, said):
        with pytest.raises(DemoError) as failed:
            await shell.run(line)

        assert str(failed.value) == said

    async def test_one_that_may_fail_says_how_it_ended(self, shell):
        assert await shell.attempt("echo no; exit 3") == Ended(3, "no")

    async def test_one_that_does_not_end_is_ended(self, shell, monkeypatch):
        monkeypatch.setattr(shells, "COMMAND_TIMEOUT", 0.05)

        with pytest.raises(DemoError, match="does not end within"):
            await shell.run("sleep 60")

    def test_another_terminal_is_led_to_the_same_place(self, shell):
        script = f'cd {shell.directory} && . ./env && echo "$GREETING"'
        shown = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)

        assert shown.stdout == "it's me\n"
