"""Webhooks: reviews over HTTP, as the API server sends them, and as it never would."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any, cast

import httpx
import pytest
import structlog

from hedgerow.contract import Controller
from hedgerow.controllers.bluegreen import controller as bluegreen
from hedgerow.controllers.cronjob import controller
from hedgerow.serving.httpserver.limits import FREE, Limited
from hedgerow.serving.webhooks.handlers import webhook_app
from serving import reviews

pytestmark = pytest.mark.anyio

Object = dict[str, Any]
CONTROLLERS = cast("list[Controller[Any]]", [bluegreen.CONTROLLER, controller.CONTROLLER])
VALIDATE = "/validate-batch-tutorial-kubebuilder-io-v1-cronjob"


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    app = Limited(webhook_app(CONTROLLERS), body=2 * 1024 * 1024)
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="https://x") as one:
        yield one


def review(schedule: str = "@daily", **meta: Any) -> Object:
    spec = {"schedule": schedule, "jobTemplate": {"spec": {}}}
    return reviews.review({"metadata": {"name": "x", **meta}, "spec": spec})


class TestReviews:
    async def test_a_good_resource_is_admitted(self, client: httpx.AsyncClient):
        answer = await client.post(f"{VALIDATE}?timeout=5s", json=review())

        assert answer.status_code == 200
        assert answer.headers["Content-Type"] == "application/json"
        assert answer.json()["response"] == {"uid": "705ab4f5", "allowed": True}

    async def test_a_bad_one_is_refused_by_an_answer_not_by_http(self, client: httpx.AsyncClient):
        answer = await client.post(VALIDATE, json=review("bad"))

        assert answer.status_code == 200
        assert answer.json()["response"]["allowed"] is False
        assert answer.json()["response"]["status"]["code"] == 422

    async def test_a_large_one_is_judged_alike(self, client: httpx.AsyncClient):
        large = review("bad", labels={"a": "x" * FREE})
        answer = await client.post(VALIDATE, json=large)

        assert answer.json()["response"]["allowed"] is False

    async def test_each_is_told_to_those_who_debug(self, client: httpx.AsyncClient):
        with structlog.testing.capture_logs() as logged:
            await client.post(VALIDATE, json=review())

        (entry,) = logged
        assert entry["log_level"] == "debug"
        assert (entry["uid"], entry["allowed"]) == ("705ab4f5", True)


class TestNonsense:
    @pytest.mark.parametrize(
        "content",
        [b"", b"{", b"[]", b'"x"', b"\xff", b"[" * 100_000, json.dumps({"kind": "Pod"}).encode()],
    )
    async def test_what_is_no_review_is_told_so_in_one_line(self, client, content: bytes):
        headers = {"Content-Type": "application/json; charset=utf-8"}
        answer = await client.post(VALIDATE, content=content, headers=headers)

        assert answer.status_code == 400
        assert answer.text.count("\n") == 1
        assert len(answer.text) < 600

    async def test_an_older_version_is_named_as_what_is_wrong(self, client: httpx.AsyncClient):
        old = review() | {"apiVersion": "admission.k8s.io/v1beta1"}
        answer = await client.post(VALIDATE, json=old)

        assert (answer.status_code, answer.text) == (
            400,
            (
                "this is not an AdmissionReview of admission.k8s.io/v1, the only version that is"
                " accepted\n"
            ),
        )

    @pytest.mark.parametrize("kind", [None, "application/yaml", "text/plain"])
    async def test_only_json_is_read(self, client: httpx.AsyncClient, kind: str | None):
        headers = {"Content-Type": kind} if kind else {}
        answer = await client.post(VALIDATE, content=b"{}", headers=headers)

        assert answer.status_code == 400

    async def test_a_body_without_end_is_refused(self, client: httpx.AsyncClient):
        endless = review(labels={"a": "x" * 3 * 1024 * 1024})
        answer = await client.post(VALIDATE, json=endless)

        assert answer.status_code == 413

    async def test_only_posts_are_taken(self, client: httpx.AsyncClient):
        assert (await client.get(VALIDATE)).status_code == 405

    @pytest.mark.parametrize(
        "path", ["/", "/validate-app-demo-kakao-com-v2-bluegreen", f"{VALIDATE}/x"]
    )
    async def test_there_is_nothing_else(self, client: httpx.AsyncClient, path: str):
        assert (await client.post(path, json=review())).status_code == 404
