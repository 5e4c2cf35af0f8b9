"""Manifests: what is wrong with objects of files, and which kinds a word means."""

from __future__ import annotations

import pytest

from hedgerow.cli.program import registry
from hedgerow.cli.targets import is_meant
from hedgerow.deploy.manifest import objects_in
from hedgerow_tools.planning.files import flaw

BLUEGREEN = """
apiVersion: app.demo.kakao.com/v1
kind: BlueGreen
metadata: {name: demo}
spec: {routeTo: Blue, at: 2026-01-01T00:00:00Z}
"""


def flaw_of(text: str) -> str:
    [found] = objects_in("f", text)
    return flaw(found)


class TestFlaw:
    def test_labels_that_are_text_or_nothing_pass(self):
        assert not flaw_of(BLUEGREEN)
        meta = "{name: demo, labels: {1: a, b: }, annotations: }"
        assert not flaw_of(BLUEGREEN.replace("{name: demo}", meta))

    @pytest.mark.parametrize(
        ("meta", "said"),
        [
            ("{name: ''}", "a BlueGreen has no metadata.name"),
            ("x", "a BlueGreen has no metadata.name"),
            ("{name: }", "a BlueGreen has no metadata.name"),
            ("{name: 7}", "a BlueGreen: metadata.name is no string: 7"),
            ("{name: y}", "a BlueGreen: metadata.name is no string: True"),
            ("{generateName: demo-}", "an apply takes no generateName (demo-)"),
            ("{name: demo, namespace: 7}", "BlueGreen/demo: metadata.namespace is no string: 7"),
            ("{name: demo, namespace: [a]}", "BlueGreen/demo: metadata.namespace is no string"),
            ("{name: demo, annotations: {a: 1}}", "metadata.annotations has what is no string"),
            ("{name: demo, labels: []}", "metadata.labels has what is no string"),
        ],
    )
    def test_what_cannot_be_applied_is_told(self, meta, said):
        assert said in flaw_of(BLUEGREEN.replace("{name: demo}", meta))


class TestKinds:
    @pytest.mark.parametrize(
        ("word", "names"),
        [
            ("", []),
            ("bg", ["bluegreen"]),
            ("BlueGreens", ["bluegreen"]),
            ("bluegreen.app.demo.kakao.com", ["bluegreen"]),
            ("bluegreen.v1.app.demo.kakao.com", ["bluegreen"]),
            ("bluegreen.other.io", []),
            ("deployment", []),
        ],
    )
    def test_a_word_means_a_kind_as_for_kubectl(self, word, names):
        ours = [each for each in registry().controllers if each.is_custom]
        assert [each.name for each in ours if is_meant(each, word)] == names
