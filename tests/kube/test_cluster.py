"""Cluster: what is asked of the server, and what its answers mean."""

from __future__ import annotations

import json

import httpx
import pytest

from hedgerow.kube import errors, wire
from hedgerow_schemas.base import ApiResource
from kube.asking import CONFIG_MAP
from kube.fakes import reply, status
from kube.recordings import Recording

pytestmark = pytest.mark.anyio

PATH = "/api/v1/namespaces/ns/configmaps"
BODY = {"metadata": {"name": "x", "namespace": "ns"}, "data": {"a": "\x85ä"}}
VERSIONED = {**BODY, "metadata": {**BODY["metadata"], "resourceVersion": "1"}}


class TestApply:
    async def test_is_a_strict_patch_under_the_managers_name(self, server, connected):
        server.answers = [reply()]

        async with connected() as cluster:
            await cluster.apply(CONFIG_MAP, BODY, manager="hedgerow-x", subresource="status")

        (request,) = server.requests
        assert (request.method, request.url.path) == ("PATCH", f"{PATH}/x/status")
        assert dict(request.url.params) == {
            "fieldManager": "hedgerow-x",
            "fieldValidation": "Strict",
        }
        assert request.headers["Content-Type"] == "application/apply-patch+yaml"
        assert json.loads(request.content) == {"apiVersion": "v1", "kind": "ConfigMap", **BODY}
        assert b"\\u0085\xc3\xa4" in request.content

    async def test_forces_and_makes_a_dry_run_only_when_told(self, server, connected):
        server.answers = [reply()]

        async with connected() as cluster:
            await cluster.apply(CONFIG_MAP, BODY, manager="m", force=True, dry_run=True)

        params = server.requests[0].url.params
        assert (params["force"], params["dryRun"]) == ("true", "All")

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

    async def test_raises_the_conflict_with_its_causes(self, server, connected):
        server.answers = [Recording.load("conflict").response()]

        async with connected() as cluster:
            with pytest.raises(errors.Conflict) as caught:
                await cluster.apply(CONFIG_MAP, BODY, manager="m")

        assert caught.value.causes[0].manager == "hedgerow-recorder"
        assert caught.value.request == f"PATCH {PATH}/x"
        assert len(server.requests) == 1

    @pytest.mark.parametrize("failure", [httpx.ReadError("cut"), status(504)])
    async def test_with_a_resource_version_is_not_repeated_if_it_may_have_arrived(
        self, server, connected, failure
    ):
        server.answers = [failure, reply()]

        async with connected() as cluster:
            with pytest.raises((errors.Unreachable, errors.Unavailable)) as caught:
                await cluster.apply(CONFIG_MAP, VERSIONED, manager="m")

        assert getattr(caught.value, "sent", True)
        assert len(server.requests) == 1

    @pytest.mark.parametrize(
        ("body", "failure", "dry_run"),
        [
            (BODY, httpx.ReadError("cut"), False),
            (VERSIONED, httpx.ReadError("cut"), True),
            (VERSIONED, httpx.ConnectError("no"), False),
            (VERSIONED, status(429), False),
        ],
        ids=["without a version", "a dry run", "not sent", "not carried out"],
    )
    async def test_is_repeated_otherwise(self, server, connected, body, failure, dry_run):
        server.answers = [failure, reply()]

        async with connected() as cluster:
            await cluster.apply(CONFIG_MAP, body, manager="m", dry_run=dry_run)

        assert len(server.requests) == 2

    @pytest.mark.parametrize(
        ("text", "said"),
        [("\ud800", "cannot be written as JSON"), ("x" * wire.BODY_LIMIT, "bytes")],
    )
    async def test_never_sends_what_the_server_cannot_take(self, server, connected, text, said):
        async with connected() as cluster:
            with pytest.raises(errors.Invalid, match=said):
                await cluster.apply(CONFIG_MAP, {**BODY, "data": {"a": text}}, manager="m")

        assert server.requests == []


class TestRehearsed:
    async def test_a_create_is_a_dry_run_of_a_post(self, server, connected):
        server.answers = [reply()]

        async with connected() as cluster:
            await cluster.dry_run_create(CONFIG_MAP, "ns", BODY, manager="m")

        (request,) = server.requests
        assert (request.method, request.url.path) == ("POST", PATH)
        assert dict(request.url.params) == {
            "dryRun": "All", "fieldManager": "m", "fieldValidation": "Strict",
        }  # fmt: skip
        assert json.loads(request.content) == {"apiVersion": "v1", "kind": "ConfigMap", **BODY}

    async def test_a_change_is_a_dry_run_of_a_merge_patch(self, server, connected):
        server.answers = [reply()]

        async with connected() as cluster:
            await cluster.dry_run_patch(CONFIG_MAP, "ns", "x", {"data": {"a": None}}, manager="m")

        (request,) = server.requests
        assert (request.method, request.url.path) == ("PATCH", f"{PATH}/x")
        assert request.url.params["dryRun"] == "All"
        assert request.headers["Content-Type"] == "application/merge-patch+json"
        assert json.loads(request.content) == {"data": {"a": None}}

    async def test_what_no_server_takes_is_not_sent(self, server, connected):
        body = {**BODY, "data": {"a": "x" * wire.BODY_LIMIT}}
        async with connected() as cluster:
            with pytest.raises(errors.Invalid):
                await cluster.dry_run_create(CONFIG_MAP, "ns", body, manager="m")

        assert server.requests == []


class TestRead:
    async def test_gives_the_object_or_none(self, server, connected):
        server.answers = [reply(), Recording.load("missing_object").response()]

        async with connected() as cluster:
            found = await cluster.read(CONFIG_MAP, "x", "ns")
            absent = await cluster.read(CONFIG_MAP, "y", "ns")

        assert found == {"metadata": {"name": "x", "uid": "u"}}
        assert absent is None
        assert [request.url.path for request in server.requests] == [f"{PATH}/x", f"{PATH}/y"]

    async def test_a_partial_object_has_its_kind_and_else_only_metadata(self, server, connected):
        partial = {"kind": "PartialObjectMetadata", "metadata": {"name": "x"}}
        server.answers = [reply(200, {**partial, "apiVersion": "meta.k8s.io/v1"})]

        async with connected() as cluster:
            found = await cluster.read(CONFIG_MAP, "x", "ns", partial=True)

        assert found == {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}
        assert "as=PartialObjectMetadata;" in server.requests[0].headers["Accept"]

    @pytest.mark.parametrize("content", [b"<html>", b"[]", b'{"metadata": 1}', b"\xff"])
    async def test_raises_garbled_for_an_answer_that_is_no_object(self, server, connected, content):
        server.answers = [httpx.Response(200, content=content)]

        async with connected() as cluster:
            with pytest.raises(errors.Garbled):
                await cluster.read(CONFIG_MAP, "x", "ns")


@pytest.mark.parametrize(
    "ask",
    [
        lambda cluster: cluster.read(CONFIG_MAP, "x", "ns"),
        lambda cluster: cluster.delete(CONFIG_MAP, "x", "ns", uid="u"),
    ],
    ids=["read", "delete"],
)
async def test_a_kind_that_is_not_served_is_an_error_and_no_absent_object(server, connected, ask):
    server.answers = [Recording.load("missing_kind").response()]

    async with connected() as cluster:
        with pytest.raises(errors.Missing, match="is its CRD installed"):
            await ask(cluster)


class TestDelete:
    async def test_always_names_the_uid(self, server, connected):
        server.answers = [reply()]

        async with connected() as cluster:
            assert await cluster.delete(CONFIG_MAP, "x", "ns", uid="u")
            assert await cluster.delete(CONFIG_MAP, "x", "ns", uid="u", version="5")

        first, second = (json.loads(request.content) for request in server.requests)
        assert server.requests[0].method == "DELETE"
        assert (first["preconditions"], first["propagationPolicy"]) == ({"uid": "u"}, "Background")
        assert second["preconditions"] == {"uid": "u", "resourceVersion": "5"}
        assert second["propagationPolicy"] == "Background"

    async def test_is_no_news_when_the_object_is_gone(self, server, connected):
        server.answers = [Recording.load("missing_object").response()]

        async with connected() as cluster:
            assert not await cluster.delete(CONFIG_MAP, "x", "ns", uid="u")

    @pytest.mark.parametrize(
        "live",
        [Recording.load("missing_object").response(), reply(200, {"metadata": {"uid": "v"}})],
    )
    async def test_leaves_another_object_of_that_name_alone(self, server, connected, live):
        server.answers = [Recording.load("delete_of_another_uid").response(), live]

        async with connected() as cluster:
            assert not await cluster.delete(CONFIG_MAP, "x", "ns", uid="u")

        assert [request.method for request in server.requests] == ["DELETE", "GET"]

    async def test_raises_stale_when_the_object_has_changed(self, server, connected):
        server.answers = [Recording.load("delete_of_old_version").response(), reply()]

        async with connected() as cluster:
            with pytest.raises(errors.Stale):
                await cluster.delete(CONFIG_MAP, "x", "ns", uid="u", version="5")


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

    async def test_raises_garbled_for_json_that_is_none(self, server, connected):
        headers = {"Content-Type": "application/json"}
        server.answers = [httpx.Response(200, content=b"{", headers=headers)]

        async with connected() as cluster:
            with pytest.raises(errors.Garbled, match="the answer is no JSON"):
                await cluster.get("/version")


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
    async def test_raises_missing_with_the_remedy(self, server, connected, answer):
        server.answers = [answer]

        async with connected() as cluster:
            with pytest.raises(errors.Missing) as caught:
                await cluster.resource("example.com/v1", "Widget")

        assert str(caught.value) == (
            "discovery of Widget in example.com/v1: "
            "the server does not serve it; is its CRD installed?"
        )


class TestAllowed:
    @pytest.mark.parametrize(("namespace", "answer"), [("ns", True), ("", False)])
    async def test_asks_the_server(self, server, connected, namespace, answer):
        server.answers = [reply(201, {"metadata": {}, "status": {"allowed": answer}})]

        async with connected() as cluster:
            api = ApiResource("apps/v1", "Deployment", "deployments")
            assert await cluster.allowed("patch", api, namespace) is answer

        (request,) = server.requests
        attributes = json.loads(request.content)["spec"]["resourceAttributes"]
        place = {"namespace": namespace} if namespace else {}
        assert attributes == {"group": "apps", "resource": "deployments", "verb": "patch", **place}
        assert request.method == "POST"
