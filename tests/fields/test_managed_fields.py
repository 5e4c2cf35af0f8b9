from __future__ import annotations

import pytest

from hedgerow.fields.managed_fields import Holder, all_holders, applied, entry, held_items
from hedgerow_schemas.base import View
from hedgerow_schemas.builtin import Secret
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
        assert () == all_holders(live)

    def test_holders_come_in_the_servers_order(self) -> None:
        assert (
            Holder("us", "Update", "", "t"),
            Holder("us", "Apply", "status"),
            Holder("us", "Apply"),
            Holder("us2", "Apply"),
        ) == all_holders(LIVE)

    def test_what_a_manager_applied_below_a_place_is_told_by_name(self) -> None:
        fields = {"f:data": {".": {}, "f:a": {}, "f:b.c": {}}}
        ours = {"manager": "us", "operation": "Apply", "fieldsV1": fields}
        update = {"manager": "us", "operation": "Update", "fieldsV1": {"f:data": {"f:d": {}}}}
        view = Secret({"metadata": {"managedFields": [update, ours]}})

        assert applied(view, "us", "data") == {"a", "b.c"}
        assert applied(view, "us", "data", "a") == applied(view, "them", "data") == frozenset()

    def test_a_subresource_which_the_server_takes_as_it_comes_is_printable(self) -> None:
        odd = {"manager": "us", "operation": "Update", "subresource": POISON}

        (holder,) = all_holders({"metadata": {"managedFields": [odd]}})

        assert holder.subresource.isprintable()


class TestHeldItems:
    def test_an_item_is_told_by_its_keys_with_the_fields_of_each_holder(self) -> None:
        ports = {
            'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:targetPort": {}},
            "k:{": {"f:name": {}},
            "f:odd": {},
        }
        tree = {"f:spec": {"f:ports": ports, "f:type": {}}}
        entries = [
            {"manager": "one", "operation": "Apply", "fieldsV1": tree},
            {"manager": "two", "operation": "Update", "fieldsV1": {"f:spec": {}}},
        ]
        live = View({"metadata": {"managedFields": entries}})

        [(holder, keys, names)] = held_items(live, "spec", "ports")

        assert (holder.manager, names) == ("one", {".", "targetPort"})
        assert keys.raw == {"port": 80, "protocol": "TCP"}
        assert list(held_items(live, "spec", "type")) == []
