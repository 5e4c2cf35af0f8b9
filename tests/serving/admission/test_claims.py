"""Claims: of which kinds somebody must be able to patch what, to write a resource."""

from __future__ import annotations

from typing import Any, cast

import pytest

from hedgerow.contract import Controller
from hedgerow.controllers.bluegreen import controller as bluegreen
from hedgerow.plan.yield_and_claim import CLAIM, YIELD, allows_claims, claims_refused
from hedgerow.serving.admission.claims import claimed_kinds, refusal
from hedgerow.serving.admission.review import Review, ReviewedKind, ReviewedResource
from hedgerow_schemas.builtin import Deployment, Service

BLUEGREEN = cast("Controller[Any]", bluegreen.CONTROLLER)
Object = dict[str, Any]


def resource(claim: str | None = None, spec: Any = 1, **annotations: str) -> Object:
    claims = {} if claim is None else {CLAIM: claim}
    return {"metadata": {"name": "x", "annotations": {**annotations, **claims}}, "spec": spec}


def asked(obj: Object | None, before: Object | None = None, **more: Any) -> list[str]:
    review = Review(
        uid="u",
        kind=ReviewedKind(group="app.demo.kakao.com", version="v1", kind="BlueGreen"),
        resource=ReviewedResource(group="app.demo.kakao.com", version="v1", resource="bluegreens"),
        operation=more.pop("operation", "UPDATE" if before else "CREATE"),
        object=obj,
        old_object=before,
        **more,
    )
    return [api.kind for api in claimed_kinds(review, BLUEGREEN)]


DEPLOYMENTS, ALL = "Deployment/*: spec.replicas", "*/*: **"
OWNED = ["Service", "Deployment", "Job"]


class TestKinds:
    @pytest.mark.parametrize(
        ("obj", "before", "kinds"),
        [
            (resource(), None, []),
            (resource(**{YIELD: ALL}), None, []),
            (resource(DEPLOYMENTS), None, ["Deployment"]),
            (resource(ALL), None, OWNED),
            (resource(f"{DEPLOYMENTS}; Service/x: spec.type"), None, ["Service", "Deployment"]),
            (resource("Pod/*: spec"), None, []),
            (resource("junk"), None, []),
            (resource(ALL), resource(), OWNED),
            (resource(ALL), resource(DEPLOYMENTS), OWNED),
            (resource(ALL, spec=2), resource(ALL, spec=1), OWNED),
            (resource(ALL, other="b"), resource(ALL, other="a"), []),
            (resource(), resource(ALL), []),
        ],
        ids=[
            "no claim", "a yield", "one kind", "all kinds", "two kinds", "a kind never written",
            "what cannot be read", "a new claim", "a wider claim", "another spec under a claim",
            "something else", "a claim that goes",
        ],
    )  # fmt: skip
    def test_they_are_asked_for_where_a_claim_is_made_or_filled_anew(self, obj, before, kinds):
        assert sorted(asked(obj, before)) == sorted(kinds)

    @pytest.mark.parametrize("odd", [7, 1.5, True, [[]], {"a": ALL}])
    def test_what_is_no_text_claims_nothing(self, odd):
        """No API server sends it, and a client of the port may."""
        assert asked(resource(odd)) == []

    def test_what_is_being_deleted_or_a_subresource_is_not_asked_about(self):
        going = resource(ALL)
        going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"

        assert asked(going) == []
        assert asked(resource(ALL), sub_resource="status") == []
        assert asked(None, resource(ALL), operation="DELETE") == []


class TestWords:
    def test_a_refusal_says_who_lacks_what_and_what_to_do(self):
        told = refusal("eve", [Deployment.api, Service.api], "shop")

        assert "eve may not patch deployments, services in namespace shop" in told
        assert "grant that right, or leave the annotation out" in told

    def test_the_namespaces_sentence_can_be_pasted(self):
        told = claims_refused("shop")

        assert "kubectl label namespace shop hedgerow.dev/allow-claims=true" in told


@pytest.mark.parametrize(
    ("labels", "allowed"),
    [(None, False), ({}, False), ({"hedgerow.dev/allow-claims": "true"}, True),
     ({"hedgerow.dev/allow-claims": "True"}, False), ({"other": "true"}, False)],
)  # fmt: skip
def test_one_value_of_one_label_allows_claims(labels, allowed):
    assert allows_claims({"metadata": {"labels": labels}}) is allowed
