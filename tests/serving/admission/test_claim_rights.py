"""Claims over HTTP: who may have fields taken by force, as the API server judges."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, cast

import anyio
import httpx
import pytest

from hedgerow.contract import Controller
from hedgerow.controllers.bluegreen import controller as bluegreen
from hedgerow.kube.errors import Unavailable
from hedgerow.plan.yield_and_claim import CLAIM
from hedgerow.serving.admission import claim_rights
from hedgerow.serving.admission.answering import LARGEST
from hedgerow.serving.admission.handlers import webhook_app
from hedgerow.serving.httpserver.limits import FREE
from serving import reviews

pytestmark = pytest.mark.anyio

Object = dict[str, Any]
CONTROLLERS = cast("list[Controller[Any]]", [bluegreen.CONTROLLER])
PATH = "/claims-app-demo-kakao-com-v1-bluegreen"
EVE: Object = {"username": "eve", "uid": "7", "groups": ["team"], "extra": {"a": ["b"]}}


class Judge:
    """A cluster that knows what users may patch, or does not answer."""

    def __init__(self) -> None:
        self.may: set[str] = set()
        self.asked: list[Object] = []
        self.error: Exception | None = None
        self.silent = False

    async def review(self, kind: str, spec: Object, **_: Any) -> Object:
        assert kind == "SubjectAccessReview"
        self.asked.append(spec)
        if self.silent:
            await anyio.sleep_forever()
        if self.error:
            raise self.error
        return {"allowed": spec["resourceAttributes"]["resource"] in self.may}


@pytest.fixture
def judge() -> Judge:
    return Judge()


@pytest.fixture
async def client(judge: Judge) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(webhook_app(CONTROLLERS, cast("Any", judge)))
    async with httpx.AsyncClient(transport=transport, base_url="https://x") as one:
        yield one


def review(claim: str = "*/*: **", user: Any = EVE) -> Object:
    meta = {"name": "x", "namespace": "shop", "annotations": {CLAIM: claim}}
    return reviews.review({"metadata": meta, "spec": {}}, controller=CONTROLLERS[0], userInfo=user)


class TestClaims:
    async def test_who_may_patch_all_that_is_claimed_is_admitted(self, client, judge: Judge):
        judge.may = {"deployments", "services", "jobs"}
        answer = await client.post(PATH, json=review())

        assert answer.json()["response"] == {"uid": "705ab4f5", "allowed": True}
        assert {spec["resourceAttributes"]["resource"] for spec in judge.asked} == judge.may
        first, *_ = judge.asked
        assert (first["user"], first["uid"], first["groups"]) == ("eve", "7", ["team"])
        assert first["extra"] == {"a": ["b"]}
        attributes = first["resourceAttributes"]
        assert (attributes["verb"], attributes["namespace"]) == ("patch", "shop")

    async def test_who_may_not_is_refused_with_the_sentence_why(self, client, judge: Judge):
        judge.may = {"services", "jobs"}
        response = (await client.post(PATH, json=review())).json()["response"]

        assert response["allowed"] is False
        assert response["status"]["code"] == 403
        assert "eve may not patch deployments in namespace shop" in response["status"]["message"]

    async def test_what_claims_nothing_is_asked_about_nobody(self, client, judge: Judge):
        answer = await client.post(PATH, json=review("Pod/*: spec"))

        assert answer.json()["response"]["allowed"] is True
        assert judge.asked == []

    async def test_without_an_answer_it_is_refused(self, client, judge: Judge, monkeypatch):
        judge.error = Unavailable("down", code=503)
        response = (await client.post(PATH, json=review())).json()["response"]

        assert (response["allowed"], response["status"]["code"]) == (False, 503)
        assert "may take the claimed fields: down" in response["status"]["message"]

        monkeypatch.setattr(claim_rights, "SECONDS", 0.01)
        judge.error, judge.silent = None, True
        response = (await client.post(PATH, json=review())).json()["response"]

        assert (response["allowed"], response["status"]["code"]) == (False, 503)

    @pytest.mark.parametrize("user", [None, {}, {"username": ""}, {"username": 7}, "eve"])
    async def test_a_review_of_nobody_is_none(self, client, user):
        answer = await client.post(PATH, json=review(user=user))

        assert answer.status_code == 400
        assert answer.text.startswith("userInfo ")

    async def test_a_large_one_is_asked_about_alike(self, judge: Judge):
        body = review()
        body["request"]["object"]["spec"] = {"note": "x" * FREE}
        transport = httpx.ASGITransport(webhook_app(CONTROLLERS, cast("Any", judge)))
        async with httpx.AsyncClient(transport=transport, base_url="https://x") as client:
            judge.may = {"deployments", "services", "jobs"}
            assert (await client.post(PATH, json=body)).json()["response"]["allowed"] is True
            judge.may = {"services", "jobs"}
            assert (await client.post(PATH, json=body)).json()["response"]["allowed"] is False

        assert {spec["user"] for spec in judge.asked} == {"eve"}

    async def test_what_is_too_large_to_be_judged_is_refused(self, client, judge: Judge):
        body = review()
        body["request"]["object"]["spec"] = {"note": "x" * LARGEST}
        answer = await client.post(PATH, json=body)

        assert answer.json()["response"]["allowed"] is False
        assert judge.asked == []
