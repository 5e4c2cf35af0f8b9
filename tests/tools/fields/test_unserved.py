from __future__ import annotations

import pytest

from hedgerow_tools.fields.unserved import unserved


@pytest.mark.parametrize(
    ("versions", "found"),
    [
        ([], []),
        (["apps/v1", "v1"], []),
        (["apps/v1", "apps/v1beta1", "extensions/v1beta1"], ["apps/v1beta1", "extensions/v1beta1"]),
        ([None, ""], []),
    ],
)
def test_entries_of_versions_that_are_not_served_are_returned_in_their_order(versions, found):
    entries = [{"manager": "m", "apiVersion": version} for version in versions]

    assert [entry["apiVersion"] for entry in unserved(entries, {"v1", "apps/v1"})] == found
