"""Help, however narrow the terminal is: no command in it is broken into lines."""

from __future__ import annotations

import re

import pytest

from hedgerow.cli import main
from hedgerow.cli.unfolded import parted
from support.programs.printed import helped

COMMANDS = dict(helped())
CODE = re.compile(r"`([^`]*)`")
NARROW = 36
"""The longest command that a terminal of 40 columns has room for within a sentence."""


def commands(text: str) -> list[str]:
    found = (" ".join(code.split()) for code in CODE.findall(text))
    return [one for one in found if " " in one]


@pytest.fixture
def shown(monkeypatch, capsys):
    def show(path: str) -> str:
        monkeypatch.setenv("COLUMNS", "40")
        monkeypatch.setenv("TERMINAL_WIDTH", "")
        with pytest.raises(SystemExit):
            main([*path.split()[1:], "--help"])
        return capsys.readouterr().out

    return show


@pytest.mark.parametrize("path", COMMANDS)
def test_each_command_is_on_one_line(shown, path):
    lines = [line.strip() for line in shown(path).splitlines()]
    text, examples = parted(COMMANDS[path].help or "")

    assert [line for line, _ in examples if line not in lines] == []
    assert [one for one in commands(text) if not any(one in line for line in lines)] == []


@pytest.mark.parametrize("path", COMMANDS)
def test_one_within_a_sentence_is_short_in_options_as_well(path):
    command = COMMANDS[path]
    texts = [parted(command.help or "")[0], *(getattr(one, "help", "") for one in command.params)]

    assert [one for text in texts for one in commands(text or "") if len(one) > NARROW] == []


@pytest.mark.parametrize("path", COMMANDS)
def test_none_is_in_the_words_that_a_list_of_commands_shows(path):
    assert commands((COMMANDS[path].help or "").partition("\n\n")[0]) == []


class TestParted:
    def test_a_list_item_that_begins_with_a_command_is_an_example(self):
        text = """Do it.

        - `a b
          c` does this,
          and `that`
        - `d e`
        - no example: `f g`
        - `word` is none

        The end.
        """

        assert parted(text) == (
            "Do it.\n\n- no example: `f g`\n- `word` is none\n\nThe end.",
            [("a b c", "does this, and `that`"), ("d e", "")],
        )
