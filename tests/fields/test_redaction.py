"""How values are shown: those of a Secret never, long ones cut, all in one line."""

from __future__ import annotations

import pytest

from hedgerow.fields.redaction import (
    HIDDEN,
    LONGEST_VALUE,
    both,
    is_private,
    is_secret,
    shown,
)

PASSWORD = "hunter2-of-the-test"


class TestSecrets:
    @pytest.mark.parametrize("kind", ["Secret", "secret", "SECRETS", "secrets"])
    def test_a_secret_is_one_in_any_spelling(self, kind):
        assert is_secret(kind)

    @pytest.mark.parametrize("kind", ["ConfigMap", "SecretSync", "", "Secret/x"])
    def test_nothing_else_is_one(self, kind):
        assert not is_secret(kind)

    @pytest.mark.parametrize(
        "field_path",
        [
            (),
            ("f:data",),
            ("f:data", "f:password"),
            ("f:stringData", "f:password"),
            ("f:metadata",),
            ("f:metadata", "f:annotations"),
            ("f:metadata", "f:annotations", "f:kubectl.kubernetes.io/last-applied-configuration"),
        ],
    )
    def test_its_values_are_hidden_wherever_they_are(self, field_path):
        assert is_private("Secret", field_path)
        assert shown("Secret", field_path, {"password": PASSWORD}) == HIDDEN
        assert PASSWORD in shown("ConfigMap", field_path, {"password": PASSWORD})

    @pytest.mark.parametrize("field_path", [("f:type",), ("f:metadata", "f:labels", "f:team")])
    def test_what_holds_no_value_is_shown(self, field_path):
        assert shown("Secret", field_path, "Opaque") == "Opaque"


class TestBoth:
    def test_of_two_maps_what_differs_is_shown_first_and_what_is_cut_is_marked(self):
        want = {"a": "x" * 200, "b": 1, "c": "only ours"}
        live = {"a": "x" * 200, "b": True, "d": "only theirs"}

        declared, there = both("Service", ("f:spec", "f:selector"), want, live)
        assert (declared or "").startswith('{"b": 1, "c": "only ours", "a": "xx')
        assert (there or "").startswith('{"b": true, "d": "only theirs", "a": "xx')
        assert {(text or "")[-1] for text in (declared, there)} == {"…"}

    def test_small_maps_are_shown_whole(self):
        want, live = {"a": "y", "x": "z"}, {"a": "y"}

        assert both("Service", ("f:spec", "f:selector"), want, live) == (
            '{"x": "z", "a": "y"}',
            '{"a": "y"}',
        )

    def test_what_is_not_there_has_no_words(self):
        assert both("Service", ("f:spec",), None, {"a": 1}) == (None, '{"a": 1}')
        assert both("Service", ("f:spec",), 1, None) == ("1", None)

    def test_of_a_secret_neither_is_shown(self):
        assert both("Secret", ("f:data",), {"a": PASSWORD}, {"a": "b"}) == (HIDDEN, HIDDEN)


class TestShown:
    @pytest.mark.parametrize(
        ("value", "told"),
        [
            ("nginx:1.2", "nginx:1.2"),
            ("3", '"3"'),
            (3, "3"),
            (None, "null"),
            ({"a": ["b"]}, '{"a": ["b"]}'),
            ("two\nlines", '"two\\nlines"'),
            ("\x1b[31m", '"\\u001b[31m"'),
        ],
    )
    def test_a_value_is_one_line(self, value, told):
        assert shown("ConfigMap", ("f:data",), value) == told

    @pytest.mark.parametrize("value", ["x" * 4000, ["y"] * 4000, "\u200b" * 4000])
    def test_a_long_one_is_cut(self, value):
        assert len(shown("ConfigMap", ("f:data",), value)) == LONGEST_VALUE
