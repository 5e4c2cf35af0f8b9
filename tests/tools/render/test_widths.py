"""Widths: texts that are cut, and broken where one may break them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.text import Text

from hedgerow_tools.render.widths import broken, shortened, wrapped


class TestShortened:
    def test_wide_characters_are_cut_by_their_width(self):
        assert shortened("日本語", 6) == "日本語"
        assert shortened("日本語日", 6) == "日本 …"
        assert shortened("abc", 0) == "…"


class TestBroken:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("", [""]),
            ("some words that go on", ["some words ", "that go on"]),
            (
                '.spec.containers[name="x"].image: y',
                [".spec", ".containers", '[name="x"]', ".image: y"],
            ),
            ("so `hedgerow adopt x` does", ["so ", "`hedgerow adopt x` ", "does"]),
            ("abcdefghijklmnop", ["abcdefghijkl", "mnop"]),
            ("日本語日本語日本", ["日本語日本語", "日本"]),
        ],
    )
    def test_words_paths_and_commands_stay_whole(self, text, expected):
        assert broken(text, 12) == expected

    @given(st.text(alphabet="ab. `[/日", max_size=40), st.integers(2, 20))
    def test_nothing_is_lost(self, text, width):
        assert "".join(broken(text, width)) == text

    def test_a_wrapped_text_has_no_blanks_at_the_ends_of_its_lines(self):
        assert [line.plain for line in wrapped(Text("some words that go on"), 12)] == [
            "some words", "that go on"
        ]  # fmt: skip
