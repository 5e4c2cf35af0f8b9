"""Cluster: lists and watches, page by page and line by line."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import anyio
import anyio.lowlevel
import httpx
import pytest

from hedgerow.kube import errors, wire
from hedgerow.kube.watch import Bookmark, Changed, Undecoded
from hedgerow.objects import Key
from kube.asking import CONFIG_MAP, never
from kube.fakes import Chunks, reply, status

pytestmark = pytest.mark.anyio

ODD = {
    "deep": b'{"f:a":' * 9_900 + b"{}" + b"}" * 9_900,
    "no UTF-8": b'{"f:\xff":{}}',
    "long": b'{"f:' + b"x" * 200_000 + b'":' + b"[" * 900 + b"]" * 900 + b"}",
}
"""Managed fields that cannot be decoded."""


def odd(name: str, fields: bytes) -> bytes:
    """Return an object with such fields, which come before its name as in custom resources."""
    text = b'{"metadata":{"managedFields":[%s],"name":"%s","resourceVersion":"7"},"data":{"a":"b"}}'
    return text % (fields, name.encode())


PATH = "/api/v1/namespaces/ns/configmaps"


def page(*names: str, version: str = "9", token: str = "") -> httpx.Response:
    items = [{"metadata": {"name": name}} for name in names]
    return reply(200, {"metadata": {"resourceVersion": version, "continue": token}, "items": items})


async def endless(code: int) -> httpx.Response:
    """Return an answer that goes on for ever."""
    return httpx.Response(code, stream=Endless())


class Endless(httpx.AsyncByteStream):
    async def __aiter__(self) -> AsyncIterator[bytes]:
        while True:
            await anyio.lowlevel.checkpoint()
            yield b"x" * 100


class TestList:
    async def test_goes_through_all_pages_and_names_every_items_kind(self, server, connected):
        server.answers = [page("a", "b", token="more"), page("c")]

        async with connected() as cluster:
            listing = await cluster.list(
                CONFIG_MAP, "ns", labels="a=b", fields="c=d", version="5", page=2
            )

        assert [item["metadata"]["name"] for item in listing.items] == ["a", "b", "c"]
        assert {(i["apiVersion"], i["kind"]) for i in listing.items} == {("v1", "ConfigMap")}
        assert listing.version == "9"
        selected = {"labelSelector": "a=b", "fieldSelector": "c=d", "limit": "2"}
        assert [dict(request.url.params) for request in server.requests] == [
            {**selected, "resourceVersion": "5", "resourceVersionMatch": "NotOlderThan"},
            {**selected, "continue": "more"},
        ]

    async def test_reduces_each_item(self, server, connected):
        server.answers = [page("a")]

        async with connected() as cluster:
            listing = await cluster.list(CONFIG_MAP, reduce=lambda item: {"kind": item["kind"]})

        assert listing.items == ({"kind": "ConfigMap"},)

    @pytest.mark.parametrize("fields", ODD.values(), ids=ODD)
    async def test_one_object_that_cannot_be_decoded_fails_no_list(self, server, connected, fields):
        items = b",".join((odd("odd", fields), b'{"metadata":{"name":"other"}}'))
        body = b'{"kind":"L","metadata":{"resourceVersion":"9"},"items":[' + items + b"]}"
        server.answers = [httpx.Response(200, content=body)]

        async with connected() as cluster:
            listing = await cluster.list(CONFIG_MAP)

        assert [item["metadata"]["name"] for item in listing.items] == ["other"]
        assert listing.undecoded == (Undecoded(Key("", "odd"), "7"),)
        assert listing.version == "9"

    @pytest.mark.parametrize(
        "content",
        [
            b'{"metadata":{},"items":[{"a":1}',
            b'{"metadata":{"\xff":1}',
            b'{"items":"\xff"}',
            b"\xff",
            b'[["\xff"]]',
            b'{"metadata":{},"items":[1]}',
            b'{"metadata":{},"items":[{"metadata":{"a":"\xff"}}]}',
            b'{"metadata":{},"items":["\xff"]}',
        ],
    )
    async def test_what_is_no_list_of_named_objects_is_garbled(self, server, connected, content):
        """So nothing that is cached looks deleted."""
        server.answers = [httpx.Response(200, content=content)]

        async with connected() as cluster:
            with pytest.raises(errors.Garbled):
                await cluster.list(CONFIG_MAP)

    async def test_asks_for_smaller_pages_where_one_has_too_many_bytes(
        self, server, connected, monkeypatch
    ):
        """Five hundred objects of the largest size that is stored are 750 MB."""
        monkeypatch.setattr(wire, "PAGE_LIMIT", 1000)
        large = page("a" * 1000)
        server.answers = [page("a", token="more"), large, page("b", token="most"), page("c")]

        async with connected() as cluster:
            listing = await cluster.list(CONFIG_MAP)

        assert [item["metadata"]["name"] for item in listing.items] == ["a", "b", "c"]
        asked = [dict(request.url.params) for request in server.requests]
        assert asked == [
            {"limit": "500"},
            {"limit": "500", "continue": "more"},
            {"limit": "50", "continue": "more"},
            {"limit": "50", "continue": "most"},
        ]

    async def test_raises_oversized_for_a_page_of_one_object_that_has_too_many_bytes(
        self, server, connected, monkeypatch
    ):
        monkeypatch.setattr(wire, "ANSWER_LIMIT", 1000)
        server.answers = [lambda _: endless(200)]

        async with connected() as cluster:
            with pytest.raises(errors.Oversized, match="the server's answer has more than"):
                await cluster.list(CONFIG_MAP)

        limits = [request.url.params["limit"] for request in server.requests]
        assert limits == ["500", "50", "5", "1"]

    @pytest.mark.parametrize("code", [200, 500])
    async def test_no_answer_is_read_to_its_end_however_far_that_is(
        self, server, connected, monkeypatch, code
    ):
        monkeypatch.setattr(wire, "ANSWER_LIMIT", 1000)
        monkeypatch.setattr(wire, "LINE_LIMIT", 1000)
        server.answers = [lambda _: endless(code)]

        async with connected() as cluster:
            with pytest.raises(errors.Oversized):
                await cluster.get("/version")
            with pytest.raises(errors.Oversized):
                async for _ in cluster.watch(CONFIG_MAP):
                    pass

    async def test_is_taken_again_in_one_piece_when_its_token_expires(self, server, connected):
        server.answers = [page("a", token="old"), status(410, "Expired"), page("b", "c")]

        async with connected() as cluster:
            listing = await cluster.list(CONFIG_MAP)

        assert [item["metadata"]["name"] for item in listing.items] == ["b", "c"]
        assert dict(server.requests[2].url.params) == {}

    async def test_may_be_empty(self, server, connected):
        server.answers = [reply(200, {"metadata": {"resourceVersion": "3"}, "items": None})]

        async with connected() as cluster:
            listing = await cluster.list(CONFIG_MAP)

        assert (listing.items, listing.version) == ((), "3")


def line(kind: str, **metadata: Any) -> bytes:
    event = {"type": kind, "object": {"metadata": {"resourceVersion": "5", **metadata}}}
    return json.dumps(event, ensure_ascii=False).encode() + b"\n"


GARBLED = [
    b"<html>\n",
    b'{"type":"BOOKMARK","object":{"metadata":{"name":"x","a":"\xff"}}}\n',
    b'{"type":"ADDED","object":{"metadata":{"a":"\xff"}}}\n',
    b'{"type":"ADDED"\n',
    b"7\n",
    b'{"type":"ADDED","object":7}\n',
    b'{"type":"ADDED","object":{"metadata":{}}}\n',
    b'{"type":"ERROR","object":[]}\n',
    b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"1","annotations":3}}}\n',
    line("SURPRISE"),
]


class TestRead:
    @pytest.mark.parametrize("fields", ODD.values(), ids=ODD)
    async def test_an_object_that_cannot_be_decoded_is_an_error(self, server, connected, fields):
        server.answers = [httpx.Response(200, content=odd("x", fields))]

        async with connected() as cluster:
            with pytest.raises(errors.Undecodable, match=r"cannot be decoded: .* in metadata"):
                await cluster.read_object(CONFIG_MAP, "x", "ns")


class TestWatch:
    async def watch(self, server, connected, *pieces: Any, **more: Any) -> list[Any]:
        server.answers = [httpx.Response(200, stream=Chunks(pieces))]
        async with connected() as cluster:
            return [event async for event in cluster.watch(CONFIG_MAP, "ns", **more)]

    async def test_tells_changes_and_bookmarks(self, server, connected):
        stream = line("ADDED", name="a\x85b") + line("BOOKMARK", annotations={"a": "b"})
        stream += line("BOOKMARK", annotations={"k8s.io/initial-events-end": "true"})

        events = await self.watch(server, connected, stream[:30], stream[30:31], stream[31:])

        added = {"metadata": {"resourceVersion": "5", "name": "a\x85b"}}
        assert events == [Changed("ADDED", added, "5"), Bookmark("5"), Bookmark("5", synced=True)]

    async def test_asks_for_bookmarks_and_an_end(self, server, connected):
        await self.watch(server, connected, since="7", labels="a=b", seconds=100)

        assert server.requests[0].url.path == PATH
        assert dict(server.requests[0].url.params) == {
            "watch": "1",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": "100",
            "resourceVersion": "7",
            "labelSelector": "a=b",
        }

    async def test_asks_for_initial_events(self, server, connected):
        await self.watch(server, connected, initial=True)

        params = dict(server.requests[0].url.params)
        assert params["sendInitialEvents"] == "true"
        assert params["resourceVersionMatch"] == "NotOlderThan"
        assert "resourceVersion" not in params

    async def test_raises_what_an_error_event_stands_for(self, server, connected):
        gone = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired"}}

        with pytest.raises(errors.Gone):
            await self.watch(server, connected, json.dumps(gone).encode() + b"\n")

    @pytest.mark.parametrize("fields", ODD.values(), ids=ODD)
    async def test_one_object_that_cannot_be_decoded_ends_no_watch(self, server, connected, fields):
        lines = [
            b'{"type":"%s","object":%s}\n' % (kind, odd("odd", fields))
            for kind in (b"MODIFIED", b"DELETED")
        ]

        events = await self.watch(server, connected, *lines, line("ADDED", name="x"))

        told = [Undecoded(Key("", "odd"), "7", deleted=deleted) for deleted in (False, True)]
        assert events[:2] == told
        assert isinstance(events[2], Changed)

    @pytest.mark.parametrize("piece", GARBLED, ids=range(len(GARBLED)))
    async def test_raises_garbled_for_a_line_that_is_no_event(self, server, connected, piece):
        with pytest.raises(errors.Garbled, match=r"the watch sent no event|nor is it named"):
            await self.watch(server, connected, piece)

    async def test_raises_oversized_for_a_line_without_end(self, server, connected, monkeypatch):
        monkeypatch.setattr(wire, "LINE_LIMIT", 10)

        with pytest.raises(errors.Oversized, match=r"^GET .*: the watch sent a line of more than"):
            await self.watch(server, connected, b"x" * 11)

    async def test_takes_no_request_slot(self, server, connected):
        server.answers = [never, never, never, reply()]
        async with connected(concurrency=1) as cluster, anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(anext, cluster.watch(CONFIG_MAP))
            await anyio.wait_all_tasks_blocked()

            assert await cluster.read_object(CONFIG_MAP, "x", "ns")
            tasks.cancel_scope.cancel()
