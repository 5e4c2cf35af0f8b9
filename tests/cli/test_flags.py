"""Flags: variables with the program's prefix that no option has."""

from __future__ import annotations

import pytest

from hedgerow.cli.flags import unknown_variables


class TestUnknownVariables:
    KNOWN = frozenset({"HEDGEROW_LEASE_DURATION", "HEDGEROW_INSTANCE"})

    def test_a_misspelt_one_is_named_with_the_nearest(self):
        told = list(unknown_variables(["HEDGEROW_LEASE_DURATON", "PATH"], self.KNOWN, "hedgerow"))

        [sentence] = told
        assert sentence == (
            "the environment variable HEDGEROW_LEASE_DURATON means nothing; did you mean"
            " HEDGEROW_LEASE_DURATION?"
        )

    def test_one_that_is_like_none_is_named_alone(self):
        told = list(unknown_variables(["HEDGEROW_ZZZZ"], self.KNOWN, "hedgerow"))

        assert told == ["the environment variable HEDGEROW_ZZZZ means nothing"]

    @pytest.mark.parametrize(
        "name",
        [
            "HEDGEROW_INSTANCE", "PATH", "HEDGEROW_WEBHOOK_SERVICE_HOST",
            "HEDGEROW_WEBHOOK_SERVICE_PORT_HTTPS", "HEDGEROW_WEBHOOK_PORT",
            "HEDGEROW_WEBHOOK_PORT_443_TCP_ADDR",
        ],
    )  # fmt: skip
    def test_what_is_known_or_set_by_kubernetes_is_not(self, name):
        assert list(unknown_variables([name], self.KNOWN, "hedgerow")) == []
