"""How the tutorial's blocks are read and done: what is not as the page says fails."""

from __future__ import annotations

import os

import pytest

from support.programs.tutorial import Terminal, matches


@pytest.mark.parametrize(
    ("shown", "output", "same"),
    [
        ("one\n", "one  \n\n", True),
        ("one …\n", "one 2 s\n", True),
        ("…\ntwo", "zero\none\ntwo", True),
        ("one\n", "one\ntwo\n", False),
        ("", "one\n", False),
        ("a.c", "abc", False),
    ],
)
def test_an_output_is_compared_but_for_what_is_left_open(shown, output, same):
    assert matches(shown, output) is same


def test_what_is_exported_stays_and_a_failure_fails(tmp_path):
    with Terminal(tmp_path, os.environ) as terminal:
        terminal.run("NAME=value")

        assert terminal.run('echo "$NAME"').strip() == "value"
        with pytest.raises(AssertionError, match="false"):
            terminal.run("false")
