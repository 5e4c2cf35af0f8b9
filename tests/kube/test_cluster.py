"""Cluster: what is asked of the server, and what its answers mean."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest

from hedgerow.kube import errors, wire
from hedgerow.kube.cluster import Cluster
from hedgerow_schemas.base import ApiResource
from kube.asking import CONFIG_MAP
from kube.fakes import reply, status
from kube.recordings import Recording

pytestmark = pytest.mark.anyio

Question = Callable[[Cluster], Awaitable[Any]]
PATH = "/api/v1/namespaces/ns/configmaps"
BODY = {"metadata": {"name": "x", "namespace": "ns"}, "data": {"a": "\x85ä"}}
OF_ONE = {**BODY, "metadata": {**BODY["metadata"], "uid": "u"}}
VERSIONED = {**BODY, "metadata": {**BODY["metadata"], "resourceVersion": "1"}}


def apply(body: Any = BODY, **how: Any) -> Question:
    return lambda cluster: cluster.apply(CONFIG_MAP, body, manager="m", **how)


def delete(**how: Any) -> Question:
    return lambda cluster: cluster.delete(CONFIG_MAP, "x", "ns", uid="u", **how)


def read(name: str = "x", **how: Any) -> Question:
    return lambda cluster: cluster.read_object(CONFIG_MAP, name, "ns", **how)


def create(body: Any = BODY) -> Question:
    return lambda cluster: cluster.dry_run_create(CONFIG_MAP, "ns", body, manager="m")


WHOLE = {"apiVersion": "v1", "kind": "ConfigMap", **BODY}
STRICT, DRY = {"fieldManager": "m", "fieldValidation": "Strict"}, {"dryRun": "All"}
REMOVED = {"propagationPolicy": "Background"}
SENT = {
    "an apply is a strict patch under the manager's name": (
        apply(subresource="status"), "PATCH", f"{PATH}/x/status", STRICT, wire.APPLY, WHOLE,
    ),
    "it forces and makes a dry run only when told": (
        apply(force=True, dry_run=True),
        "PATCH", f"{PATH}/x", {**STRICT, **DRY, "force": "true"}, wire.APPLY, WHOLE,
    ),
    "a create is rehearsed by a dry run of a post": (
        create(), "POST", PATH, {**STRICT, **DRY}, "application/json", WHOLE,
    ),
    "a delete names the uid": (
        delete(), "DELETE", f"{PATH}/x", {}, "application/json",
        {**REMOVED, "preconditions": {"uid": "u"}},
    ),
    "and the version, if there is one": (
        delete(version="5"), "DELETE", f"{PATH}/x", {}, "application/json",
        {**REMOVED, "preconditions": {"uid": "u", "resourceVersion": "5"}},
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("question", "method", "path", "params", "kind", "body"), SENT.values(), ids=SENT
)
async def test_what_is_sent(server, ask, question, method, path, params, kind, body):
    assert await ask(question, reply())

    (request,) = server.requests
    assert (request.method, request.url.path, dict(request.url.params)) == (method, path, params)
    assert request.headers["Content-Type"] == kind
    sent = json.loads(request.content)
    assert {name: sent[name] for name in body} == body
    if body is WHOLE:
        assert sent == body


class TestApply:
    async def test_what_yaml_would_fold_is_escaped(self, server, ask):
        await ask(apply(), reply())

        assert b"\\u0085\xc3\xa4" in server.requests[0].content

    async def test_tells_creation_and_warnings(self, server, connected):
        created, warned = Recording.load("created"), Recording.load("warned")
        server.answers = [created.response(), warned.response(), reply()]

        async with connected() as cluster:
            first = await cluster.apply(CONFIG_MAP, BODY, manager="m")
            second = await cluster.apply(CONFIG_MAP, BODY, manager="m")
            third = await cluster.apply(CONFIG_MAP, BODY, manager="m")

        assert (first.created, first.object, first.warnings) == (True, created.body, ())
        assert second.warnings[0].endswith('use "kubernetes.io/arch" instead')
        assert not third.created

    async def test_raises_the_conflict_with_its_causes(self, server, ask):
        with pytest.raises(errors.Conflict) as caught:
            await ask(apply(), Recording.load("conflict").response())

        assert caught.value.causes[0].manager == "hedgerow-recorder"
        assert caught.value.request == f"PATCH {PATH}/x"
        assert len(server.requests) == 1

    @pytest.mark.parametrize(
        "failure",
        [httpx.ReadError("cut"), httpx.ConnectError("no"), status(504), status(429), status(401)],
        ids=repr,
    )
    @pytest.mark.parametrize("write", [apply(VERSIONED), apply(OF_ONE), delete()])
    async def test_of_what_was_read_before_is_never_repeated(self, server, ask, write, failure):
        """Meanwhile the object may be orphaned: the write would make it a child again."""
        with pytest.raises(errors.KubeError):
            await ask(write, failure, reply())

        assert len(server.requests) == 1

    @pytest.mark.parametrize(
        ("body", "failure", "dry_run"),
        [
            (BODY, httpx.ReadError("cut"), False),
            (VERSIONED, httpx.ReadError("cut"), True),
        ],
        ids=["of no object in particular", "a dry run"],
    )
    async def test_is_repeated_otherwise(self, server, ask, body, failure, dry_run):
        await ask(apply(body, dry_run=dry_run), failure, reply())

        assert len(server.requests) == 2

    @pytest.mark.parametrize(
        ("text", "said"),
        [("\ud800", "cannot be written as JSON"), ("x" * wire.BODY_LIMIT, "bytes")],
    )
    @pytest.mark.parametrize("question", [apply, create])
    async def test_never_sends_what_the_server_cannot_take(self, server, ask, question, text, said):
        with pytest.raises(errors.Invalid, match=said):
            await ask(question({**BODY, "data": {"a": text}}))

        assert server.requests == []


class TestRead:
    async def test_gives_the_object_or_none(self, server, connected):
        server.answers = [reply(), Recording.load("missing_object").response()]

        async with connected() as cluster:
            found = await cluster.read_object(CONFIG_MAP, "x", "ns")
            absent = await cluster.read_object(CONFIG_MAP, "y", "ns")

        assert found == {"metadata": {"name": "x", "uid": "u"}}
        assert absent is None
        assert [request.url.path for request in server.requests] == [f"{PATH}/x", f"{PATH}/y"]

    async def test_a_partial_object_has_its_kind_and_else_only_metadata(self, server, ask):
        partial = {"kind": "PartialObjectMetadata", "metadata": {"name": "x"}}
        found = await ask(
            read(partial=True), reply(200, {**partial, "apiVersion": "meta.k8s.io/v1"})
        )

        assert found == {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}
        assert "as=PartialObjectMetadata;" in server.requests[0].headers["Accept"]

    @pytest.mark.parametrize("content", [b"<html>", b"[]", b'{"metadata": 1}', b"\xff"])
    async def test_raises_garbled_for_an_answer_that_is_no_object(self, ask, content):
        with pytest.raises(errors.Garbled):
            await ask(read(), httpx.Response(200, content=content))


@pytest.mark.parametrize("question", [read(), delete()], ids=["read", "delete"])
async def test_a_kind_that_is_not_served_is_an_error_and_no_absent_object(ask, question):
    with pytest.raises(errors.Missing, match="is its CRD installed"):
        await ask(question, Recording.load("missing_kind").response())


class TestDelete:
    async def test_is_no_news_when_the_object_is_gone(self, ask):
        assert not await ask(delete(), Recording.load("missing_object").response())

    @pytest.mark.parametrize(
        "live",
        [Recording.load("missing_object").response(), reply(200, {"metadata": {"uid": "v"}})],
    )
    async def test_leaves_another_object_of_that_name_alone(self, server, ask, live):
        assert not await ask(delete(), Recording.load("delete_of_another_uid").response(), live)

        assert [request.method for request in server.requests] == ["DELETE", "GET"]

    async def test_raises_stale_when_the_object_has_changed(self, ask):
        changed = Recording.load("delete_of_old_version").response()
        with pytest.raises(errors.Stale):
            await ask(delete(version="5"), changed, reply())


class TestGet:
    async def test_reads_json_and_text(self, server, connected):
        server.answers = [reply(200, {"a": 1}), httpx.Response(200, text="ok")]

        async with connected() as cluster:
            assert await cluster.get("/version", params={"p": "q"}) == {"a": 1}
            assert await cluster.get("/readyz") == "ok"

        assert [str(r.url) for r in server.requests] == [
            "https://server/version?p=q",
            "https://server/readyz",
        ]

    async def test_raises_garbled_for_json_that_is_none(self, ask):
        headers = {"Content-Type": "application/json"}
        answer = httpx.Response(200, content=b"{", headers=headers)
        with pytest.raises(errors.Garbled, match="the answer is no JSON"):
            await ask(lambda cluster: cluster.get("/version"), answer)


DISCOVERY = {
    "resources": [
        {"name": "widgets/status", "kind": "Widget", "namespaced": True},
        {"name": "widgets", "kind": "Widget", "namespaced": True},
        {"name": "worlds", "kind": "World", "namespaced": False},
    ]
}


class TestResource:
    async def test_is_what_discovery_says(self, server, connected):
        server.answers = [reply(200, DISCOVERY)]

        async with connected() as cluster:
            widget = await cluster.resource("example.com/v1", "Widget")
            world = await cluster.resource("v1", "World")

        assert widget == ApiResource("example.com/v1", "Widget", "widgets")
        assert world == ApiResource("v1", "World", "worlds", namespaced=False)
        assert [request.url.path for request in server.requests] == [
            "/apis/example.com/v1",
            "/api/v1",
        ]

    @pytest.mark.parametrize(
        "answer", [reply(200, {"resources": None}), Recording.load("missing_kind").response()]
    )
    async def test_raises_missing_with_the_remedy(self, ask, answer):
        with pytest.raises(errors.Missing) as caught:
            await ask(lambda cluster: cluster.resource("example.com/v1", "Widget"), answer)

        assert str(caught.value) == (
            "discovery of Widget in example.com/v1: "
            "the server does not serve it; is its CRD installed?"
        )
