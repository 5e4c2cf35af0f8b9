"""Adoption: the one write that is no apply, and all that it cannot express."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hedgerow.kube import errors
from hedgerow_schemas.base import ApiResource
from hedgerow_tools.moving.adoption import replace_managed_fields, request

DEPLOYMENT = ApiResource("apps/v1", "Deployment", "deployments")
NODE = ApiResource("v1", "Node", "nodes", namespaced=False)
LEAF: dict[str, Any] = {}
TREE = {"f:spec": {"f:a": LEAF, "f:m": {".": LEAF, "f:b": LEAF}}}


def entry(manager: str, tree: Any = None) -> dict[str, Any]:
    return {"manager": manager, "operation": "Update", "fieldsV1": TREE if tree is None else tree}


def live(*entries: Any, **meta: Any) -> dict[str, Any]:
    identity = {"name": "x", "namespace": "ns", "uid": "u", "resourceVersion": "7"}
    return {"metadata": {**identity, "managedFields": list(entries), **meta}}


def operations(*edited: Any) -> list[dict[str, Any]]:
    return json.loads(request(*edited).content)


class TestRequest:
    def test_it_tests_uid_version_and_entry_and_replaces_all_entries(self):
        found = request(DEPLOYMENT, live(entry("a"), entry("b")), {1: ()})

        assert (found.method, found.path) == ("PATCH", "/apis/apps/v1/namespaces/ns/deployments/x")
        assert found.content_type == "application/json-patch+json"
        assert found.params == {"fieldManager": "hedgerow-cli"}
        assert not found.repeatable
        assert json.loads(found.content) == [
            {"op": "test", "path": "/metadata/uid", "value": "u"},
            {"op": "test", "path": "/metadata/resourceVersion", "value": "7"},
            {"op": "test", "path": "/metadata/managedFields/1", "value": entry("b")},
            {"op": "replace", "path": "/metadata/managedFields", "value": [entry("a")]},
        ]

    def test_a_dry_run_is_one_and_may_be_repeated(self):
        found = request(DEPLOYMENT, live(entry("a"), entry("b")), {1: ()}, dry_run=True)

        assert found.params["dryRun"] == "All"
        assert found.repeatable

    @pytest.mark.parametrize(
        ("edits", "entries"),
        [
            ({0: (), 2: ()}, [entry("b")]),
            ({0: (entry("z"),)}, [entry("z"), entry("b"), entry("c")]),
            ({0: (), 1: (entry("z"),)}, [entry("z"), entry("c")]),
            (
                {1: (entry("y", {"f:spec": {"f:a": LEAF}}), entry("z"))},
                [entry("a"), entry("y", {"f:spec": {"f:a": LEAF}}), entry("z"), entry("c")],
            ),
            (
                {0: (entry("a", {"f:spec": {"f:m": LEAF}}),)},
                [entry("a", {"f:spec": {"f:m": LEAF}}), entry("b"), entry("c")],
            ),
        ],
        ids=["removed", "relabelled", "joined", "split", "narrowed"],
    )
    def test_others_stay_where_they_are(self, edits, entries):
        found = operations(DEPLOYMENT, live(*map(entry, "abc")), edits)

        assert found[-1]["value"] == entries
        assert [one["path"][-1] for one in found[2:-1]] == [str(index) for index in edits]

    def test_what_is_cluster_wide_has_no_namespace(self):
        obj = live(entry("a"), entry("b"))
        del obj["metadata"]["namespace"]

        assert request(NODE, obj, {0: ()}).path == "/api/v1/nodes/x"

    @pytest.mark.parametrize(
        ("entries", "edits", "told"),
        [
            ([entry("a")], {0: ()}, "no entry would be left"),
            ([entry("a"), entry("b", {})], {0: ()}, "no entry would be left"),
            ([entry("a")], {}, "nothing is changed"),
            ([entry("a")], {0: (entry("a"),)}, "nothing is changed"),
            ([entry("a")], {1: ()}, "no entry 1"),
            ([entry("a")], {-1: ()}, "no entry -1"),
            ([entry("a")], {0: (entry("a", {"f:spec": LEAF}),)}, "more than before"),
            ([entry("a")], {0: (entry("a", {"f:spec": {"f:z": LEAF}}),)}, "more than before"),
            (
                [entry("a")],
                {0: (entry("a", {"f:spec": {"f:a": {"f:z": LEAF}}}),)},
                "more than before",
            ),
            ([{"manager": "a"}], {0: (entry("a"),)}, "more than before"),
            (
                [entry("a", {"f:spec": {"f:a": LEAF}}), entry("b")],
                {0: (entry("a"),)},
                "more than before",
            ),
        ],
    )
    def test_what_would_empty_or_widen_the_records_cannot_be_said(self, entries, edits, told):
        with pytest.raises(ValueError, match=told):
            request(DEPLOYMENT, live(*entries), edits)

    def test_nor_of_an_object_without_any(self):
        with pytest.raises(ValueError, match="nothing is changed"):
            request(DEPLOYMENT, live(managedFields=None), {})


class Answering:
    """A cluster that gives one answer, or refuses."""

    def __init__(self, answer: dict[str, Any]) -> None:
        self.answer = answer

    async def send(self, _request: Any) -> dict[str, Any]:
        if self.answer["kind"] == "Status":
            raise errors.from_status(self.answer)
        return self.answer


@pytest.mark.anyio
class TestSent:
    async def sent(self, answer: dict[str, Any]) -> dict[str, Any]:
        cluster: Any = Answering(answer)
        return await replace_managed_fields(
            cluster, DEPLOYMENT, live(entry("a"), entry("b")), {0: ()}
        )

    async def test_the_object_is_given_as_it_is_then(self):
        changed = {"kind": "Deployment", **live(entry("b"))}

        assert await self.sent(changed) == changed

    @pytest.mark.parametrize(
        ("code", "causes", "error"),
        [
            (422, [], errors.Stale),
            (422, [{"field": "spec.x", "reason": "FieldValueInvalid"}], errors.Invalid),
            (400, [], errors.Invalid),
            (403, [], errors.Forbidden),
        ],
    )
    async def test_a_test_that_fails_is_a_stale_view(self, code, causes, error):
        told = {"kind": "Status", "reason": "Invalid", "details": {"causes": causes}}

        with pytest.raises(error):
            await self.sent({**told, "code": code})
