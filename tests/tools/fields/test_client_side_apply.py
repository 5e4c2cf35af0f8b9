"""Client-side apply: the patch is that of kubectl, which these cases were worked out with."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hedgerow_tools.fields.client_side_apply import (
    LAST_APPLIED,
    annotations_size,
    creation,
    patch,
    patched,
)

Object = dict[str, Any]


def stored(last: Object | None, live: Object) -> Object:
    """Return an object of which `last` was applied last; `live` is what is in it now."""
    annotations = {LAST_APPLIED: json.dumps({"spec": last})} if last is not None else {}
    return {"kind": "X", "metadata": {"name": "x", "annotations": annotations}, "spec": live}


def manifest(spec: Any) -> Object:
    return {"kind": "X", "metadata": {"name": "x"}, "spec": spec}


class TestPatch:
    @pytest.mark.parametrize(
        ("last", "live", "now", "sent"),
        [
            ({"a": 1}, {"a": 1}, {"a": 1}, None),
            ({"a": 1}, {"a": 1, "d": 2}, {"a": 1}, None),
            ({"a": 1}, {"a": 1}, {"a": 2}, {"a": 2}),
            ({"a": 1}, {"a": 3}, {"a": 1}, {"a": 1}),
            ({"a": 1, "b": 1}, {"a": 1, "b": 1}, {"a": 1}, {"b": None}),
            ({"a": 1, "b": 1}, {"a": 1}, {"a": 1}, {"b": None}),
            (None, {"a": 1, "b": 1}, {"a": 1}, None),
            ({"m": {"x": 1}}, {"m": {"x": 1}}, {"m": {"y": 1}}, {"m": {"x": None, "y": 1}}),
            ({"l": [1, 2]}, {"l": [1, 2]}, {"l": [2]}, {"l": [2]}),
            ({"l": [1]}, {"l": [1]}, {"l": [True]}, {"l": [True]}),
            ({"a": 1}, {"a": 1}, {"a": 1.0}, None),
            ({"a": 1}, {"a": 1}, {"a": None}, {"a": None}),
            ({}, {}, {"a": None}, {"a": None}),
            ({"a": None}, {}, {"a": None}, None),
            ({}, {}, {"m": {}}, {"m": {}}),
            ({}, {"m": {"x": 1}}, {"m": {}}, None),
            ({}, {}, {"m": {"x": None}}, {"m": {"x": None}}),
            ({"m": 1}, {"m": 1}, {"m": {"x": 1}}, {"m": {"x": 1}}),
            ({"m": {"x": 1}}, {"m": {"x": 1}}, {"m": 1}, {"m": 1}),
            ({"m": {"x": 1}}, {"m": {"x": 1}}, {}, {"m": None}),
        ],
    )  # fmt: skip
    def test_it_has_what_is_wanted_otherwise_and_what_is_no_longer_wanted(
        self, last, live, now, sent
    ):
        assert patch(stored(last, live), manifest(now)).get("spec") == sent

    def test_what_was_applied_last_and_is_as_it_was_is_no_patch(self):
        live = creation(manifest({"a": 1}))

        assert patch(live, manifest({"a": 1})) == {}

    def test_an_annotation_that_is_given_up_goes(self):
        given = {**manifest({}), "metadata": {"name": "x", "annotations": {"a": "b"}}}
        sent = patch(creation(given), manifest({}))

        assert sent["metadata"]["annotations"]["a"] is None

    @pytest.mark.parametrize("copy", ["{", "[]", "7"])
    def test_a_copy_that_is_no_object_is_an_error(self, copy):
        live = {"metadata": {"annotations": {LAST_APPLIED: copy}}}

        with pytest.raises(ValueError, match=r".+"):
            patch(live, manifest({}))


class TestCreation:
    def test_the_copy_is_written_as_go_writes_it(self):
        body = creation(manifest({"b": "<&>\u2028ä", "a": None, "l": [{"x": None}]}))

        assert body["metadata"]["annotations"][LAST_APPLIED] == (
            '{"kind":"X","metadata":{"annotations":{},"name":"x"},'
            '"spec":{"a":null,"b":"\\u003c\\u0026\\u003e\\u2028ä","l":[{"x":null}]}}\n'
        )
        assert body["spec"] == {"b": "<&>\u2028ä", "l": [{}]}

    def test_a_copy_in_the_manifest_is_not_copied(self):
        given = {**manifest({}), "metadata": {"name": "x", "annotations": {LAST_APPLIED: "old"}}}

        assert creation(given) == creation(manifest({}))


class TestSize:
    def test_all_annotations_count_with_their_names(self):
        live = {"metadata": {"annotations": {"ä": "b", LAST_APPLIED: "x" * 1000}}}
        copy = creation(manifest({}))["metadata"]["annotations"][LAST_APPLIED]

        assert annotations_size(live, manifest({})) == len(LAST_APPLIED) + len(copy) + 3
        assert annotations_size(None, manifest({})) == len(LAST_APPLIED) + len(copy)


class TestPatched:
    @pytest.mark.parametrize(
        ("live", "change", "after"),
        [
            ({"a": 1, "b": 2}, {"a": None, "c": 3}, {"b": 2, "c": 3}),
            ({"m": {"x": 1}}, {"m": {"x": None, "y": 1}}, {"m": {"y": 1}}),
            ({}, {"m": {"x": None}}, {"m": {}}),
            ({"a": 1}, {"a": {"b": 1}}, {"a": {"b": 1}}),
            ({"l": [1]}, {"l": [2]}, {"l": [2]}),
        ],
    )
    def test_a_merge_patch_does_what_the_rfc_says(self, live, change, after):
        assert patched(live, change) == after
