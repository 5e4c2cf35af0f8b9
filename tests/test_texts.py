"""Texts of others, as they may be shown."""

from __future__ import annotations

import json
import sys

import pytest
from hypothesis import given
from hypothesis.strategies import text

from hedgerow.deploy.manifest import from_yaml, to_yaml
from hedgerow.texts import cut, escaped, escaped_lines, printable
from support.objects.foreign import UNMEANT

ANY = text(max_size=40)


@given(ANY)
def test_what_is_escaped_is_one_printable_line_and_means_the_same_in_json(found):
    quoted = found.replace("\\", "\\\\").replace('"', '\\"')

    assert escaped(found).isprintable()
    assert json.loads(f'"{escaped(quoted)}"') == found


@given(ANY)
def test_of_lines_only_their_ends_and_tabs_are_left(found):
    shown = escaped_lines(found)

    assert shown.count("\n") == found.count("\n")
    assert shown.replace("\n", "").replace("\t", "").isprintable()


@pytest.mark.parametrize("char", UNMEANT)
def test_nothing_that_a_terminal_obeys_is_left(char):
    assert char not in escaped(f"a{char}b")
    assert char not in printable(f"a{char}b")
    assert char in "\n\t" or char not in escaped_lines(f"a{char}b")


@pytest.mark.parametrize("char", ["é", "🌳", " ", "…", "中"])
def test_letters_are_left_as_they_are(char):
    assert escaped(char) == escaped_lines(char) == char


def test_what_is_long_is_cut_before_it_is_escaped():
    assert cut("abc", 3) == "abc"
    assert cut("abcd", 3) == "ab…"
    assert len(printable("\x1b" * sys.maxunicode, 100)) == 100


@pytest.mark.parametrize("char", UNMEANT)
def test_yaml_has_it_in_quotes_and_is_read_as_it_was(char):
    found = {"é": f"a{char}b"}
    text = to_yaml(found)

    assert escaped_lines(text) == text
    assert from_yaml(text) == (found,)
