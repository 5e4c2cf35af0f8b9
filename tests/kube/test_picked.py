"""Picked: of all objects metadata alone is read, and the picked ones in whole."""

from __future__ import annotations

import gc
import json
import tracemalloc
from contextlib import aclosing
from typing import Any

import anyio.lowlevel
import httpx
import pytest

from hedgerow.kube import errors
from hedgerow.kube.picked import Picked
from hedgerow.kube.watch import Bookmark, Changed, Listing, Snapshot, Undecoded, reflect
from hedgerow.kube.wire import METADATA, METADATA_LIST
from hedgerow.objects import Key
from hedgerow.runtime.cache.store import Store
from hedgerow_schemas.builtin import Deployment
from kube.fakes import Chunks, reply, status

pytestmark = pytest.mark.anyio

API = Deployment.api
ANNOTATION = "example.com/mine"
Object = dict[str, Any]
UNDECODABLE = httpx.Response(200, content=b'{"metadata":{"name":"a"},"spec":"\xff"}')


def picks(obj: Object) -> bool:
    assert set(obj) <= {"apiVersion", "kind", "metadata"}, "it is asked by metadata alone"
    return ANNOTATION in (obj["metadata"].get("annotations") or {})


def partial(name: str, version: int, *, mine: bool) -> Object:
    meta: Object = {"name": name, "namespace": "ns", "uid": name, "resourceVersion": f"{version}"}
    if mine:
        meta["annotations"] = {ANNOTATION: "1"}
    return {"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": meta}


def whole(name: str, version: int) -> Object:
    meta = partial(name, version, mine=True)["metadata"]
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": {"a": version}}


def events(*told: tuple[str, Object]) -> httpx.Response:
    lines = [json.dumps({"type": kind, "object": obj}).encode() + b"\n" for kind, obj in told]
    return httpx.Response(200, stream=Chunks(lines))


async def heard(cluster: Any) -> list[Any]:
    async with aclosing(Picked(cluster, picks).watch(API, "ns", since="1")) as told:
        return [event async for event in told]


class TestList:
    async def test_only_picked_objects_are_read(self, server, connected):
        items = [partial("a", 3, mine=False), partial("b", 4, mine=True)]
        page = {"metadata": {"resourceVersion": "9"}, "items": items}
        server.answers = [reply(200, page), reply(200, whole("b", 5))]

        async with connected() as cluster:
            found = await Picked(cluster, picks).list(API, "ns", reduce=lambda obj: obj["spec"])

        assert (found.items, found.version) == (({"a": 5},), "9")
        listed, read = server.requests
        assert listed.headers["Accept"] == METADATA_LIST
        assert read.url.path.endswith("/namespaces/ns/deployments/b")
        assert read.headers["Accept"] == "application/json"

    async def test_several_are_read_at_the_same_time_and_reduced_as_they_arrive(self):
        cluster = Slow(20)
        reduced: list[int] = []

        def reduce(obj: Object) -> Object:
            reduced.append(cluster.reads)
            return obj

        found = await Picked(cluster, picks).list(API, "ns", reduce=reduce)

        names = sorted(item["metadata"]["name"] for item in found.items)
        assert names == sorted(f"mine-{number}" for number in range(20))
        assert (cluster.most, cluster.reads) == (8, 20)
        assert reduced[0] < 20, "not all were kept in whole"

    async def test_a_read_that_fails_fails_the_list(self, server, connected):
        page = {"metadata": {"resourceVersion": "9"}, "items": [partial("b", 4, mine=True)]}
        server.answers = [reply(200, page), status(403, "Forbidden")]

        async with connected() as cluster:
            with pytest.raises(errors.Forbidden):
                await Picked(cluster, picks).list(API, "ns")

    async def test_a_defect_of_what_reduces_comes_out_as_it_is(self):
        def reduce(_: Object) -> Object:
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await Picked(Slow(3), picks).list(API, "ns", reduce=reduce)

    async def test_one_that_is_gone_meanwhile_is_not_there(self, server, connected):
        page = {"metadata": {"resourceVersion": "9"}, "items": [partial("b", 4, mine=True)]}
        said = {"kind": "Status", "code": 404, "reason": "NotFound", "details": {"name": "b"}}
        gone = reply(404, said)
        server.answers = [reply(200, page), gone]

        async with connected() as cluster:
            found = await Picked(cluster, picks).list(API, "ns", reduce=lambda obj: obj)

        assert found.items == ()

    async def test_one_that_cannot_be_decoded_fails_no_list(self, server, connected):
        items = [partial("a", 3, mine=True), partial("b", 4, mine=True)]
        page = {"metadata": {"resourceVersion": "9"}, "items": items}
        server.answers = [reply(200, page), UNDECODABLE, reply(200, whole("b", 4))]

        async with connected() as cluster:
            found = await Picked(cluster, picks).list(API, "ns")

        assert found == Listing((whole("b", 4),), "9", (Undecoded(Key("ns", "a"), "3"),))


class TestWatch:
    async def test_a_picked_object_comes_in_whole_with_the_version_of_the_event(
        self, server, connected
    ):
        server.answers = [
            events(("MODIFIED", partial("b", 4, mine=True))),
            reply(200, whole("b", 6)),
        ]

        async with connected() as cluster:
            assert await heard(cluster) == [Changed("MODIFIED", whole("b", 6), "4")]
        assert server.requests[0].headers["Accept"] == METADATA

    async def test_all_others_are_told_as_deleted_and_not_read(self, server, connected):
        plain, mine = partial("a", 4, mine=False), partial("b", 5, mine=True)
        server.answers = [events(("ADDED", plain), ("DELETED", mine))]

        async with connected() as cluster:
            assert await heard(cluster) == [
                Changed("DELETED", plain, "4"),
                Changed("DELETED", mine, "5"),
            ]
        assert len(server.requests) == 1

    async def test_what_is_cached_in_that_version_is_not_read_again(self, server, connected):
        store = Store()
        store.put(whole("b", 6))
        echo, news = partial("b", 6, mine=True), partial("b", 7, mine=True)
        server.answers = [events(("MODIFIED", echo), ("MODIFIED", news)), reply(200, whole("b", 7))]

        async with connected() as cluster:
            picked = Picked(cluster, picks, store.has)
            async with aclosing(picked.watch(API, "ns", since="1")) as told:
                heard = [event async for event in told]
        assert heard == [Bookmark("6"), Changed("MODIFIED", whole("b", 7), "7")]

    async def test_one_that_cannot_be_decoded_ends_no_watch(self, server, connected):
        told = [("MODIFIED", partial(name, 4, mine=True)) for name in ("a", "b")]
        server.answers = [events(*told), UNDECODABLE, reply(200, whole("b", 4))]

        async with connected() as cluster:
            found = await heard(cluster)
        assert found == [Undecoded(Key("ns", "a"), "4"), Changed("MODIFIED", whole("b", 4), "4")]

    async def test_there_are_no_initial_events_so_that_it_is_listed(self, server, connected):
        page = {"metadata": {"resourceVersion": "9"}, "items": [partial("b", 4, mine=True)]}
        server.answers = [reply(200, page), reply(200, whole("b", 4))]

        async with connected() as cluster, aclosing(reflect(Picked(cluster, picks), API)) as told:
            assert await anext(told) == Snapshot((whole("b", 4),), "9")

    async def test_a_read_that_fails_ends_the_watch(self, server, connected):
        server.answers = [events(("ADDED", partial("b", 4, mine=True))), status(403, "Forbidden")]

        async with connected() as cluster:
            with pytest.raises(errors.Forbidden):
                await heard(cluster)


class Slow:
    """So many picked objects; counts how many reads overlap, which a server does not see."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.reads = self.most = self._open = 0

    async def list(self, *_: Any, reduce: Any, **__: Any) -> Any:
        items = (partial(f"mine-{number}", 1, mine=True) for number in range(self.number))
        return Listing(tuple(map(reduce, items)), "9")

    async def read_object(self, _: Any, name: str, __: str) -> Any:
        self._open += 1
        self.most = max(self.most, self._open)
        await anyio.lowlevel.checkpoint()
        self._open -= 1
        self.reads += 1
        return whole(name, 1)


class Foreign:
    """So many objects of others, without a server that would keep them in memory as well."""

    def __init__(self, number: int) -> None:
        self.number = number

    async def list(self, *_: Any, reduce: Any, **__: Any) -> Any:
        items = (partial(f"foreign-{number}", 1, mine=False) for number in range(self.number))
        return Listing(tuple(map(reduce, items)), str(self.number))

    async def read_object(self, *_: Any, **__: Any) -> Any:
        raise AssertionError

    async def watch(self, *_: Any, **__: Any) -> Any:
        while True:
            for number in range(self.number):
                version = self.number + number + 1
                obj = partial(f"foreign-{number}", version, mine=False)
                yield Changed("MODIFIED", obj, str(version))
            yield Bookmark(str(2 * self.number + 1))


async def kept_by(number: int) -> int:
    """Return how many bytes are kept after so many objects were listed, and each changed once."""
    store, cluster = Store(), Foreign(number)
    gc.collect()
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    stream = reflect(Picked(cluster, picks), API, on_listed=store.meet)  # type: ignore[arg-type]
    async with aclosing(stream) as told:
        async for event in told:
            match event:
                case Snapshot(items, version, met):
                    assert sum(map(len, store.replacing(items, version, met))) == 0
                case Changed(type="DELETED", object=obj):
                    assert store.remove(obj) is None
                case _:
                    break
        del event
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(store) == 0
    return after - before


class TestMemory:
    async def test_foreign_objects_take_none(self):
        few, many = await kept_by(100), await kept_by(5000)

        assert (many - few) / 4900 < 8, "bytes per foreign object"
