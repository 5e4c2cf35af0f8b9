"""Wire: the bytes that the API server takes and gives."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.kube import wire
from hedgerow.kube.wire import Response
from hedgerow_schemas.base import ApiResource

CONFIG_MAP = ApiResource("v1", "ConfigMap", "configmaps")
NODE = ApiResource("v1", "Node", "nodes", namespaced=False)
DEPLOYMENT = ApiResource("apps/v1", "Deployment", "deployments")


class TestEncode:
    @given(st.dictionaries(st.text(), st.text() | st.integers() | st.none()))
    def test_is_json_of_the_same_value(self, body):
        assert json.loads(wire.encode(body)) == body

    @given(st.characters(exclude_categories=["Cs"]))
    def test_leaves_no_character_that_yaml_refuses_or_folds(self, character):
        text = wire.encode({"x": character}).decode()

        assert not any("\x7f" <= c <= "\x9f" or c in "\u2028\u2029\ufffe\uffff" for c in text)

    @pytest.mark.parametrize(
        ("character", "written"),
        [
            ("\x7f", r"\u007f"),
            ("\x85", r"\u0085"),
            ("\x9f", r"\u009f"),
            ("\u2029", r"\u2029"),
            ("\uffff", r"\uffff"),
            ("\xa0", "\xa0"),
            ("ä", "ä"),
            ("\ufeff", "\ufeff"),
            ("😀", "😀"),
        ],
    )
    def test_escapes_those_and_leaves_the_rest_raw(self, character, written):
        assert wire.encode({"x": character}).decode() == f'{{"x":"{written}"}}'

    def test_refuses_a_lone_surrogate(self):
        with pytest.raises(ValueError, match="surrogates not allowed"):
            wire.encode({"x": "\ud800"})


class TestPath:
    @pytest.mark.parametrize(
        ("given", "path"),
        [
            ((CONFIG_MAP,), "/api/v1/configmaps"),
            ((CONFIG_MAP, "ns"), "/api/v1/namespaces/ns/configmaps"),
            ((CONFIG_MAP, "ns", "a"), "/api/v1/namespaces/ns/configmaps/a"),
            (
                (DEPLOYMENT, "ns", "a", "status"),
                "/apis/apps/v1/namespaces/ns/deployments/a/status",
            ),
            ((NODE, "", "a"), "/api/v1/nodes/a"),
            ((NODE, "ignored", "a"), "/api/v1/nodes/a"),
            ((NODE, "", "system:a/b"), "/api/v1/nodes/system%3Aa%2Fb"),
        ],
    )
    def test_is_where_the_server_has_it(self, given, path):
        assert wire.path(*given) == path

    def test_of_a_namespaced_object_needs_its_namespace(self):
        with pytest.raises(ValueError, match="ConfigMap a: a namespaced object needs"):
            wire.path(CONFIG_MAP, "", "a")

    @pytest.mark.parametrize("name", [".", ".."])
    def test_never_climbs(self, name):
        with pytest.raises(ValueError, match="is no name"):
            wire.path(CONFIG_MAP, "ns", name)


class TestWarnings:
    def test_are_unquoted_and_each_told_once(self):
        texts = [b'299 - "use \\"b\\" instead"', b'299 - "old", 299 - "old"', b"nonsense"]

        assert Response(200, [(b"Warning", text) for text in texts], b"").warnings == (
            'use "b" instead',
            "old",
        )


class TestSeconds:
    @pytest.mark.parametrize(
        ("header", "seconds"),
        [(None, 0.0), ("3", 3.0), ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0), ("-1", 0.0)],
    )
    def test_takes_whole_seconds_only(self, header, seconds):
        assert wire.seconds(header) == seconds


class TestLines:
    @given(st.lists(st.text(min_size=1).filter(lambda s: "\n" not in s)), st.data())
    def test_are_the_same_however_the_stream_is_cut(self, lines, data):
        stream = "".join(f"{line}\n" for line in lines).encode()
        cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)))))
        splitter, found = wire.LineSplitter(), []

        for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
            found += splitter.feed(stream[start:end])

        assert found == [line.encode() for line in lines]

    def test_end_at_a_line_feed_only(self):
        lines = wire.LineSplitter().feed("a\x85b\u2028c\rd\n".encode())

        assert lines == ["a\x85b\u2028c\rd".encode()]

    def test_skip_empty_ones(self):
        assert wire.LineSplitter().feed(b"\n\na\n\n") == [b"a"]

    def test_are_bounded(self, monkeypatch):
        monkeypatch.setattr(wire, "LINE_LIMIT", 5)
        splitter = wire.LineSplitter()
        splitter.feed(b"abc")

        with pytest.raises(ValueError, match=r"a line of more than \d+ MiB"):
            splitter.feed(b"def")
