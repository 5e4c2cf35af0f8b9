"""Reviews: what is asked, and what is made of the answers."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest

from hedgerow.kube import errors, reviews
from hedgerow.kube.cluster import Cluster
from hedgerow.kube.reviews import User
from kube.fakes import reply, status

pytestmark = pytest.mark.anyio

TOKEN = "eyJ.secret.xyz"
INFO: dict[str, Any] = {
    "username": "system:serviceaccount:monitoring:prometheus",
    "uid": "0a1b",
    "groups": ["system:serviceaccounts", "system:authenticated"],
    "extra": {"authentication.kubernetes.io/pod-name": ["prometheus-0"]},
}
PROMETHEUS = User(**INFO)


def answer(**told: Any) -> Any:
    return reply(201, {"kind": "Review", "metadata": {}, "status": told})


async def authenticate(cluster: Cluster) -> User | None:
    return await reviews.authenticate(cluster, TOKEN)


async def authorize(cluster: Cluster) -> bool:
    return await reviews.authorize(cluster, PROMETHEUS, "get", "/metrics")


class TestAuthenticate:
    async def test_a_token_is_reviewed_for_the_servers_own_audiences(self, server, ask):
        user = await ask(authenticate, answer(authenticated=True, user=INFO))

        (asked,) = server.requests
        assert (asked.method, asked.url.path) == (
            "POST", "/apis/authentication.k8s.io/v1/tokenreviews"
        )  # fmt: skip
        assert json.loads(asked.content) == {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "spec": {"token": TOKEN},
        }
        assert user == PROMETHEUS

    @pytest.mark.parametrize(
        "told",
        [
            {},
            {"authenticated": False, "error": "expired"},
            {"authenticated": False, "user": INFO},
            {"authenticated": True},
            {"authenticated": True, "user": {"username": ""}},
        ],
        ids=str,
    )
    async def test_whoever_is_not_vouched_for_is_nobody(self, ask, told):
        assert await ask(authenticate, answer(**told)) is None

    @pytest.mark.parametrize(
        "told",
        [
            {"authenticated": "true", "user": INFO},
            {"authenticated": True, "user": {**INFO, "groups": "admins"}},
            {"authenticated": True, "user": {**INFO, "username": 7}},
        ],
        ids=str,
    )
    async def test_what_is_no_review_is_not_believed(self, ask, told):
        with pytest.raises(errors.Garbled) as caught:
            await ask(authenticate, answer(**told))

        assert str(caught.value) == "POST tokenreviews: the answer is no TokenReview"

    async def test_an_error_does_not_tell_the_token(self, ask):
        with pytest.raises(errors.Forbidden) as caught:
            await ask(authenticate, status(403, "Forbidden"))

        assert TOKEN not in str(caught.value)
        assert TOKEN not in repr(caught.value)


class TestAuthorize:
    async def test_all_that_is_known_of_the_user_is_passed_on(self, server, ask):
        assert await ask(authorize, answer(allowed=True))

        (asked,) = server.requests
        assert asked.url.path == "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        assert json.loads(asked.content)["spec"] == {
            "user": INFO["username"],
            "uid": INFO["uid"],
            "groups": INFO["groups"],
            "extra": INFO["extra"],
            "nonResourceAttributes": {"path": "/metrics", "verb": "get"},
        }

    @pytest.mark.parametrize("told", [{}, {"allowed": False}, {"allowed": True, "denied": True}])
    async def test_what_is_not_allowed_is_denied(self, ask, told):
        assert not await ask(authorize, answer(**told))


class TestMayWe:
    @pytest.mark.parametrize(("namespace", "may"), [("ns", True), ("", False)])
    async def test_asks_the_server(self, server, ask, namespace, may):
        asking = partial(
            reviews.may_we,
            verb="patch",
            group="apps",
            resource="deployments/scale",
            namespace=namespace,
            name="x",
        )

        assert await ask(asking, answer(allowed=may)) is may

        (request,) = server.requests
        assert request.method == "POST"
        assert json.loads(request.content)["spec"]["resourceAttributes"] == {
            "verb": "patch", "group": "apps", "resource": "deployments", "subresource": "scale",
            "namespace": namespace, "name": "x",
        }  # fmt: skip
