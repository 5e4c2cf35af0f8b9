from __future__ import annotations

import copy

import pytest

from hedgerow_tools.fields.concealing import concealed


@pytest.mark.parametrize(
    ("live", "found"),
    [
        (
            {"kind": "Secret", "data": {"a": "1"}, "stringData": {"b": "2"}, "type": "x"},
            {"kind": "Secret", "data": {"a": "1!"}, "stringData": {"b": "2!"}, "type": "x"},
        ),
        (
            {"kind": "Secret", "metadata": {"name": "s", "annotations": {"copy": "1"}}},
            {"kind": "Secret", "metadata": {"name": "s", "annotations": {"copy": "1!"}}},
        ),
        (
            {"kind": "secrets", "metadata": {}, "data": "whole"},
            {"kind": "secrets", "metadata": {}, "data": "whole!"},
        ),
        (
            {"kind": "Secret", "metadata": None, "data": None},
            {"kind": "Secret", "metadata": None, "data": None},
        ),
        ({"kind": "ConfigMap", "data": {"a": "1"}}, {"kind": "ConfigMap", "data": {"a": "1"}}),
    ],
)
def test_every_private_value_is_replaced_and_nothing_else(live, found):
    before = copy.deepcopy(live)

    assert concealed(live, "{}!".format) == found
    assert live == before
