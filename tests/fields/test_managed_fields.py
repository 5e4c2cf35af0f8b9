from __future__ import annotations

import pytest

from hedgerow.fields.managed_fields import Holder, entry, managers
from support.objects.foreign import POISON

LIVE = {
    "metadata": {
        "managedFields": [
            {"manager": "us", "operation": "Update", "fieldsV1": {"f:a": {}}, "time": "t"},
            {
                "manager": "us",
                "operation": "Apply",
                "subresource": "status",
                "fieldsV1": {"f:b": {}},
            },
            {"manager": "us", "operation": "Apply", "fieldsV1": {"f:c": {}}},
            {"manager": "us2", "operation": "Apply"},
        ]
    }
}


class TestEntry:
    def test_manager_operation_and_subresource_tell_entries_apart(self) -> None:
        assert {"f:c": {}} == entry(LIVE, "us")
        assert {"f:b": {}} == entry(LIVE, "us", "status")
        assert {} == entry(LIVE, "us2")
        assert entry(LIVE, "us", "scale") is None

    @pytest.mark.parametrize(
        "live", [{}, {"metadata": None}, {"metadata": {"managedFields": None}}]
    )
    def test_an_untracked_object_has_none(self, live: dict[str, object]) -> None:
        assert entry(live, "us") is None
        assert () == managers(live)

    def test_holders_come_in_the_servers_order(self) -> None:
        assert (
            Holder("us", "Update", "", "t"),
            Holder("us", "Apply", "status"),
            Holder("us", "Apply"),
            Holder("us2", "Apply"),
        ) == managers(LIVE)

    def test_a_subresource_which_the_server_takes_as_it_comes_is_printable(self) -> None:
        odd = {"manager": "us", "operation": "Update", "subresource": POISON}

        (holder,) = managers({"metadata": {"managedFields": [odd]}})

        assert holder.subresource.isprintable()
