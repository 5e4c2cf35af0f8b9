"""Targets: what an API server may answer that is no object."""

from __future__ import annotations

from typing import Any

import pytest

from hedgerow.cli.targets import misshapen

Object = dict[str, Any]


def answer(entry: Any = None, **meta: Any) -> Object:
    managed = {"managedFields": [entry]} if entry is not None else {}
    return {"apiVersion": "v1", "kind": "X", "metadata": {"name": "x", **managed, **meta}}


@pytest.mark.parametrize(
    ("live", "place"),
    [
        ({"apiVersion": "v1", "kind": "X", "metadata": None}, "metadata"),
        ({"apiVersion": "v1", "kind": "X", "metadata": []}, "metadata"),
        ({**answer(), "kind": 7}, "kind"),
        ({**answer(), "apiVersion": None}, "apiVersion"),
        (answer(labels=["a"]), "metadata.labels"),
        (answer(annotations="a"), "metadata.annotations"),
        (answer(managedFields={"a": "b"}), "metadata.managedFields"),
        (answer(managedFields="a"), "metadata.managedFields"),
        (answer(7), "metadata.managedFields"),
        (answer(ownerReferences=[None]), "metadata.ownerReferences"),
        (answer({"manager": 7}), "metadata.managedFields[].manager"),
        (answer({"time": ["a"]}), "metadata.managedFields[].time"),
        (answer({"fieldsV1": ["a"]}), "metadata.managedFields[].fieldsV1"),
        (answer({"fieldsV1": {"f:spec": {"f:a": None}}}), "metadata.managedFields[].fieldsV1"),
        (answer({"fieldsV1": {"f:spec": {"f:a": {}}}, "time": None}), ""),
        (answer(labels=None, managedFields=None), ""),
        (answer(), ""),
    ],
)
def test_the_first_place_of_a_wrong_type_is_named(live: Object, place: str) -> None:
    assert misshapen(live) == place
