"""Invalid: errors worded as apimachinery words them."""

from __future__ import annotations

import pytest

from hedgerow.validation import MOST_CAUSES, FieldError, quoted, status
from hedgerow_schemas.cronjob import CronJob


class TestFieldError:
    def test_it_reads_as_the_servers_own(self):
        error = FieldError("spec.size", "x", "must be a number")

        assert str(error) == 'spec.size: Invalid value: "x": must be a number'
        assert error.cause() == {
            "reason": "FieldValueInvalid",
            "message": 'Invalid value: "x": must be a number',
            "field": "spec.size",
        }

    def test_a_required_value_is_not_shown(self):
        error = FieldError("spec.size", None, "why", "FieldValueRequired")

        assert str(error) == "spec.size: Required value: why"


class TestQuoting:
    @pytest.mark.parametrize(
        ("value", "shown"),
        [
            ("a", '"a"'),
            ('say "a"', r'"say \"a\""'),
            ("zwölf", '"zwölf"'),
            ("\x1b[31m\x9b\u202e", r'"\u001b[31m\u009b\u202e"'),
            (5, "5"),
            (None, "null"),
            ({"a": [1]}, '{"a": [1]}'),
        ],
    )
    def test_nothing_in_it_is_obeyed_by_a_terminal(self, value, shown):
        assert quoted(value) == shown

    @pytest.mark.parametrize("value", ["x" * 10_000, ["x"] * 10_000, {"x" * 10_000: 1}])
    def test_what_is_long_is_cut(self, value):
        assert len(quoted(value)) <= 130
        assert "…" in quoted(value)


class TestStatus:
    def test_only_so_many_are_told(self):
        errors = [FieldError(f"spec.f{i}", i, "bad") for i in range(MOST_CAUSES + 3)]
        told = status(CronJob.api, "x", errors)

        assert len(told["details"]["causes"]) == MOST_CAUSES
        assert told["message"].endswith(", and 3 more]")

    def test_one_that_is_there_twice_is_told_once(self):
        errors = [FieldError("spec.a", 1, "bad")] * 2

        assert status(CronJob.api, "x", errors)["message"].endswith(
            "is invalid: spec.a: Invalid value: 1: bad"
        )
