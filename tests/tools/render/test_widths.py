"""Widths: texts that are cut so that they stay apart, and broken where one may break them."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.text import Text

from hedgerow_tools.render.widths import broken, shortened, shortened_apart, wrapped

NAMES = st.text(alphabet="ab-日", min_size=1, max_size=30)


class TestShortened:
    def test_wide_characters_are_cut_by_their_width(self):
        assert shortened("日本語", 6) == "日本語"
        assert shortened("日本語日", 6) == "日本 …"
        assert shortened("abc", 0) == "…"


class TestShortenedApart:
    @pytest.mark.parametrize(
        ("names", "expected"),
        [
            (["Pod/a"], ["Pod/a"]),
            (["Deployment/some", "Service/some"], ["Deployme…", "Service/…"]),
            (["memcached-sample-a", "memcached-sample-b"], ["mem…ple-a", "mem…ple-b"]),
            (["blueblueblue-x-deploy", "blueblueblue-y-deploy"], ["blu…x-de…", "blu…y-de…"]),
            (["some-long-name", "some-long-name-more-x"], ["som…-name", "som…-mor…"]),
            (
                ["aaaaaaaaaa-b-cccccc-1", "aaaaaaaaaa-b-cccccc-2", "aaaaaaaaaa-d"],
                ["aaa…ccc-1", "aaa…ccc-2", "aaa…aaa-d"],
            ),
        ],
    )
    def test_texts_that_begin_alike_are_cut_where_they_differ(self, names, expected):
        cut = shortened_apart((name, 9) for name in names)

        assert [cut[name, 9] for name in names] == expected

    def test_what_no_cut_tells_apart_stays_whole(self):
        names = ["abcdefgh", "abcdefgi"]

        assert list(shortened_apart((name, 1) for name in names).values()) == names

    @example([("日", 1), ("日a", 1)])
    @given(st.lists(st.tuples(NAMES, st.integers(1, 20)), max_size=12))
    def test_different_texts_stay_different(self, texts):
        cut = shortened_apart(texts)

        assert all(
            text == other
            for (text, _), one in cut.items()
            for (other, _), two in cut.items()
            if one == two
        )
        assert all(cell_len(one) <= cells or one == text for (text, cells), one in cut.items())


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
