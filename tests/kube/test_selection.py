"""Selection: only the objects of a shard are decoded, whatever is in the others."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.encoding import decode
from hedgerow.kube import errors
from hedgerow.kube.selection import CHANGES, drops, may_have, named, split
from hedgerow.kube.watch import Bookmark, Changed, Undecoded
from hedgerow.objects import Key
from hedgerow.shard import MOST, Shard, point_of
from kube.asking import CONFIG_MAP
from kube.fakes import Chunks
from kube.test_cluster_lists import ODD

Object = dict[str, Any]
NAMES = ("mine", "others", "", "a-b", "\u00e4")
MINE = Shard(point_of("mine") % MOST, MOST)
"""Of these names it serves only the first."""

words = st.sampled_from(["metadata", "namespace", "object", "type", "name", "items", 'a"b', "\\"])
texts = st.one_of(
    words,
    st.sampled_from(NAMES),
    st.text(max_size=8),
    st.sampled_from(['"namespace":"mine"', '\\"']),
)
values = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(allow_nan=False, allow_infinity=False),
        texts,
    ),
    lambda below: st.one_of(
        st.lists(below, max_size=4), st.dictionaries(st.one_of(words, texts), below, max_size=4)
    ),
    max_leaves=12,
)
"""JSON that has the words that are looked for at the wrong places."""


@st.composite
def shuffled(draw: st.DrawFn, required: Object) -> Object:
    """Return a map with these members, and others, in any order."""
    others = draw(st.dictionaries(texts, values, max_size=4))
    members = [*{**others, **required}.items()]
    return dict(draw(st.permutations(members)))


@st.composite
def objects(draw: st.DrawFn) -> Object:
    named = draw(st.sampled_from(NAMES))
    metadata = draw(shuffled({"namespace": named} if named else {"name": "x"}))
    return draw(shuffled({"metadata": metadata}))


@st.composite
def spelled(draw: st.DrawFn, value: Any) -> bytes:
    """Return JSON for a value, as one of several writers spells it."""
    text = json.dumps(
        value,
        ensure_ascii=draw(st.booleans()),
        indent=draw(st.sampled_from([None, 1])),
        separators=draw(st.sampled_from([None, (",", ":"), (" , ", " :\t")])),
    )
    if draw(st.booleans()):  # any character may be escaped
        text = text.replace("namespace", "n\\u0061mespace").replace("metadata", "met\\u0061data")
    return text.encode("utf-8", "surrogatepass")


def theirs(value: Object) -> Any:
    """Return the namespace that a decoded object has, if it has one that is text."""
    metadata = value.get("metadata")
    return metadata.get("namespace", "") if isinstance(metadata, dict) else None


def namespace_of(content: bytes) -> str | None:
    try:
        return named(content).namespace
    except ValueError:
        return None


class TestNamespaces:
    @pytest.mark.hypothesis
    @given(data=st.data())
    def test_the_namespace_is_that_of_the_decoded_object(self, data):
        content = data.draw(spelled(data.draw(objects())))
        try:
            wanted = theirs(decode(content))
        except ValueError:  # such as a lone surrogate
            return
        found = namespace_of(content)

        assert found == wanted or (found is None and not isinstance(wanted, str))

    @pytest.mark.parametrize(
        ("content", "namespace"),
        [
            (b'{"metadata":{"namespace":"a"},"metadata":{"namespace":"b"}}', "b"),
            (b'{"metadata":{"namespace":"a","namespace":"b"}}', "b"),
            (b'{"metadata":{"namespace":"a"},"metadata":{}}', ""),
            (b'{"metadata":{"annotations":{"x":"\\"namespace\\":\\"b\\""},"namespace":"a"}}', "a"),
            (b'{"spec":{"metadata":{"namespace":"b"}},"metadata":{"namespace":"a"}}', "a"),
            (b'{"metadata":{"namespace":null}}', None),
            (b'{"metadata":{"namespace":1}}', None),
            (b'{"metadata":[]}', None),
            (b'{"spec":{}}', None),
            (b'{"metadata":{"namespace":"a"}', None),
            (b"[" * 100_000, None),
        ],
    )
    def test_of_odd_objects(self, content, namespace):
        assert namespace_of(content) == namespace


class TestLines:
    @pytest.mark.hypothesis
    @given(data=st.data(), kind=st.sampled_from([*CHANGES, "BOOKMARK", "ERROR"]))
    def test_what_is_dropped_is_not_wanted(self, data, kind):
        event = data.draw(shuffled({"type": kind, "object": data.draw(objects())}))
        content = data.draw(spelled(event))
        try:
            place = theirs(decode(content)["object"])
        except ValueError:
            return

        if drops(MINE, content):
            assert kind in CHANGES
            assert place != "mine"
        elif kind in CHANGES and isinstance(place, str):
            assert place == "mine"

    @pytest.mark.hypothesis
    @given(items=st.lists(objects(), max_size=5))
    def test_of_a_list_what_may_be_wanted_stays(self, items):
        content = json.dumps({"metadata": {"resourceVersion": "3"}, "items": items}).encode()
        found, parts = split(content)

        assert found == {"resourceVersion": "3"}
        assert [decode(bytes(part)) for part in parts if may_have(MINE, part)] == [
            item for item in items if theirs(item) == "mine" or not isinstance(theirs(item), str)
        ]

    def test_a_list_has_metadata_and_may_have_no_items(self):
        with pytest.raises(ValueError):
            split(b'{"items":[]}')
        assert split(b'{"metadata":{},"items":null}') == ({}, [])


def line(kind: str, **metadata: str) -> bytes:
    return json.dumps({"type": kind, "object": {"metadata": metadata}}).encode() + b"\n"


@pytest.mark.anyio
class TestCluster:
    async def test_a_watch_tells_of_the_shards_objects_and_of_bookmarks(self, server, connected):
        lines = (
            line("ADDED", name="a", namespace="mine", resourceVersion="1"),
            line("ADDED", name="b", namespace="others", resourceVersion="2"),
            line("BOOKMARK", resourceVersion="3"),
        )
        server.answers = [httpx.Response(200, stream=Chunks(lines))]
        async with connected() as cluster:
            found = [e async for e in cluster.only(MINE).watch(CONFIG_MAP)]

        assert [type(event) for event in found] == [Changed, Bookmark]
        assert [event.version for event in found] == ["1", "3"]

    async def test_an_error_is_raised(self, server, connected):
        error = {"metadata": {}, "code": 410, "reason": "Expired"}
        told = json.dumps({"type": "ERROR", "object": error}).encode() + b"\n"
        server.answers = [httpx.Response(200, stream=Chunks([told]))]
        async with connected() as cluster:
            with pytest.raises(errors.Gone):
                [e async for e in cluster.only(MINE).watch(CONFIG_MAP)]

    @pytest.mark.parametrize("fields", ODD.values(), ids=ODD)
    async def test_what_cannot_be_decoded_is_named_if_it_is_wanted(self, fields, server, connected):
        text = b'{"metadata":{"managedFields":[%s],"name":"x","namespace":"%s"}}'
        both = [text % (fields, name) for name in (b"mine", b"others")]
        content = b'{"metadata":{"resourceVersion":"4"},"items":[%s]}' % b",".join(both)
        told = [b'{"type":"ADDED","object":%s}\n' % one for one in both]
        answers = [httpx.Response(200, content=content), httpx.Response(200, stream=Chunks(told))]
        server.answers = answers
        async with connected() as cluster:
            found = await cluster.only(MINE).list(CONFIG_MAP)
            events = [e async for e in cluster.only(MINE).watch(CONFIG_MAP)]

        assert (found.items, found.undecoded) == ((), (Undecoded(Key("mine", "x"), ""),))
        assert events == [Undecoded(Key("mine", "x"), "")]
