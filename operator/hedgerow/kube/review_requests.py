"""Review requests: all that is POSTed besides dry runs; the API server stores none of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from hedgerow.kube.wire import JSON, Request, encode

if TYPE_CHECKING:
    from collections.abc import Mapping

SELF, SUBJECT, TOKEN = "SelfSubjectAccessReview", "SubjectAccessReview", "TokenReview"
RULES = "SelfSubjectRulesReview"
REVIEWS: Final = {
    SELF: "authorization.k8s.io/v1",
    RULES: "authorization.k8s.io/v1",
    SUBJECT: "authorization.k8s.io/v1",
    TOKEN: "authentication.k8s.io/v1",
}


def review(kind: str, spec: Mapping[str, Any]) -> Request:
    """Return the request for a review; raises KeyError if `kind` is not a review."""
    version = REVIEWS[kind]
    body = encode({"apiVersion": version, "kind": kind, "spec": spec})
    return Request("POST", f"/apis/{version}/{kind.lower()}s", content=body, content_type=JSON)
