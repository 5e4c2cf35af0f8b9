"""Manifests: which resources files declare, and what is wrong with files."""

from __future__ import annotations

from typing import Any

import pytest

from hedgerow.cli.program import registry
from hedgerow.cli.targets import is_meant
from hedgerow.manifest import LARGEST, ManifestError
from hedgerow_tools.planning.files import Declared, OtherObject, PlanError, declared

BLUEGREEN = """
apiVersion: app.demo.kakao.com/v1
kind: BlueGreen
metadata: {name: demo}
spec: {routeTo: Blue, at: 2026-01-01T00:00:00Z}
"""


def read(text: str) -> list[Any]:
    return list(declared("f", text, "shop"))


class TestDeclared:
    def test_a_resource_gets_its_namespace_and_keeps_times_as_text(self):
        [found] = read(BLUEGREEN)

        assert isinstance(found, Declared)
        assert found.controller.name == "bluegreen"
        assert found.manifest["metadata"] == {"name": "demo", "namespace": "shop"}
        assert found.manifest["spec"]["at"] == "2026-01-01T00:00:00Z"

    def test_a_namespace_of_its_own_stays(self):
        [found] = read(BLUEGREEN.replace("{name: demo}", "{name: demo, namespace: other}"))

        assert found.manifest["metadata"]["namespace"] == "other"

    def test_lists_and_several_documents_are_read(self):
        items = "\n".join("  " + line for line in BLUEGREEN.strip().splitlines())
        listed = f"kind: List\nitems:\n-{items[1:]}\n"

        assert len(read(f"---\n{BLUEGREEN}---\n---\n{listed}")) == 2

    def test_labels_that_are_text_or_nothing_pass(self):
        meta = "{name: demo, labels: {1: a}, annotations: }"
        [found] = read(BLUEGREEN.replace("{name: demo}", meta))

        assert found.manifest["metadata"]["labels"] == {"1": "a"}

    def test_what_is_not_ours_is_named(self):
        named = "{apiVersion: batch/v1, kind: CronJob, metadata: {name: x}}"

        assert read(named) == [OtherObject("CronJob/x of batch/v1")]
        assert read("{kind: List, items: 7}") == [OtherObject("List")]
        assert read("{a: b}") == [OtherObject("an object without a kind")]

    def test_a_namespace_is_told_by_its_name(self):
        text = "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}"

        assert read(text) == [OtherObject("Namespace/shop of v1", "shop")]
        assert read(text.replace("v1", "x/v1")) == [OtherObject("Namespace/shop of x/v1")]

    def test_an_item_of_a_list_of_a_kind_is_of_that_kind(self):
        items = "[{metadata: {name: a}, spec: {}}, {kind: CronJob, apiVersion: batch/v1}]"
        found = read(f"{{apiVersion: app.demo.kakao.com/v1, kind: BlueGreenList, items: {items}}}")

        assert isinstance(found[0], Declared)
        assert found[0].title == "BlueGreen shop/a"
        assert found[1] == OtherObject("CronJob of batch/v1")

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("a: [", "f: line 2: did not find"),
            ("7", "f: it holds no Kubernetes object"),
            ("{kind: List, items: [7]}", "f: it holds no Kubernetes object"),
            (BLUEGREEN.replace("name: demo", "name: ''"), "f: a BlueGreen has no metadata.name"),
            (BLUEGREEN.replace("{name: demo}", "x"), "f: a BlueGreen has no metadata.name"),
            (" " * (LARGEST + 1), "f: it is larger than 3 MiB"),
            ("&l {kind: List, items: [*l]}", "f: line 1: it is nested within itself"),
            (
                BLUEGREEN.replace("{name: demo}", "{name: demo, namespace: 7}"),
                r"f: BlueGreen/demo: metadata.namespace is no string: 7$",
            ),
            (
                BLUEGREEN.replace("{name: demo}", "{name: demo, namespace: [a]}"),
                "f: BlueGreen/demo: metadata.namespace is no string",
            ),
            (
                BLUEGREEN.replace("name: demo", "generateName: demo-"),
                r"f: a BlueGreen has no metadata.name, and .* takes no generateName \(demo-\)",
            ),
            (BLUEGREEN.replace("name: demo", "name: 7"), "f: a BlueGreen has no metadata.name"),
            (
                BLUEGREEN.replace("{name: demo}", "{name: demo, annotations: {a: 1}}"),
                "f: BlueGreen/demo: metadata.annotations has what is no string",
            ),
            (
                BLUEGREEN.replace("{name: demo}", "{name: demo, labels: []}"),
                "f: BlueGreen/demo: metadata.labels has what is no string",
            ),
        ],
    )
    def test_what_cannot_be_read_is_told(self, text, said):
        with pytest.raises((PlanError, ManifestError), match=said):
            read(text)


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
