"""Claims: which namespaces allow them."""

from __future__ import annotations

import pytest

from hedgerow.plan.yield_and_claim import allows_claims, claims_refused


def test_the_namespaces_sentence_can_be_pasted():
    told = claims_refused("shop")

    assert "kubectl label namespace shop hedgerow.dev/allow-claims=true" in told


@pytest.mark.parametrize(
    ("labels", "allowed"),
    [(None, False), ({}, False), ({"hedgerow.dev/allow-claims": "true"}, True),
     ({"hedgerow.dev/allow-claims": "True"}, False), ({"other": "true"}, False)],
)  # fmt: skip
def test_one_value_of_one_label_allows_claims(labels, allowed):
    assert allows_claims({"metadata": {"labels": labels}}) is allowed
