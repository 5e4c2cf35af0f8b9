"""Texts of others, such as a webhook's refusal, without the values of a Secret."""

from __future__ import annotations

from base64 import b64encode

import pytest

from hedgerow.fields.redaction import without_values

VALUE = "hunter2-hunter2"
CODED = b64encode(VALUE.encode()).decode()
BODY = {"kind": "Secret", "data": {"password": CODED, "short": "YQ=="}}


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (f"refused: {VALUE} is weak", "refused: (hidden) is weak"),
        (f'{{"password":"{CODED}"}} is not allowed', '{"password":"(hidden)"} is not allowed'),
        ("a field is immutable", "a field is immutable"),
    ],
)
def test_values_are_hidden_as_they_are_and_in_base64(text, left):
    assert without_values(BODY, text) == left


def test_other_kinds_have_no_values_to_hide():
    assert without_values({**BODY, "kind": "ConfigMap"}, VALUE) == VALUE


def test_what_is_no_base64_is_hidden_as_it_is():
    assert without_values({"kind": "Secret", "data": {"a": "%%%%"}}, "not %%%%") == "not (hidden)"
