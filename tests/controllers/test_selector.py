from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from hedgerow.workloads import matches, named_by, selector_text
from hedgerow_schemas.base import View

Object = dict[str, Any]


def expression(key: str, operator: str, *values: str) -> Object:
    more = {"values": list(values)} if values else {}
    return {"matchExpressions": [{"key": key, "operator": operator, **more}]}


@dataclass(frozen=True)
class Case:
    """A selector, its string form, and labels that it selects and that it does not."""

    reason: str
    selector: Object
    text: str
    selected: tuple[Object, ...]
    spared: tuple[Object, ...]


CASES = [
    Case("empty", {}, "", ({}, {"a": "1"}), ()),
    Case("one label", {"matchLabels": {"a": "1"}}, "a=1", ({"a": "1", "b": "2"},), ({"a": "2"},)),
    Case("an empty value", {"matchLabels": {"a": ""}}, "a=", ({"a": ""},), ({}, {"a": "1"})),
    Case("in", expression("a", "In", "2", "1"), "a in (1,2)", ({"a": "2"},), ({"a": "3"}, {})),
    Case("not in", expression("a", "NotIn", "1"), "a notin (1)", ({"a": "2"}, {}), ({"a": "1"},)),
    Case("there", expression("a", "Exists"), "a", ({"a": ""},), ({},)),
    Case("not there", expression("a", "DoesNotExist"), "!a", ({},), ({"a": ""},)),
    Case("all of several, by key",
         {"matchLabels": {"b": "2", "a": "1"}, **expression("aa", "Exists")}, "a=1,aa,b=2",
         ({"a": "1", "aa": "x", "b": "2"},), ({"a": "1", "b": "2"}, {"a": "1", "aa": "x"})),
]  # fmt: skip


class TestMatches:
    @pytest.mark.parametrize("case", CASES, ids=lambda case: case.reason)
    def test_it_selects_as_the_server_does(self, case):
        assert [labels for labels in case.selected if not matches(case.selector, labels)] == []
        assert [labels for labels in case.spared if matches(case.selector, labels)] == []

    @pytest.mark.parametrize(
        "selector",
        [
            expression("a", "Unheard"),
            {"matchExpressions": [3]},
            {"matchExpressions": [{"values": ["1"]}]},
        ],
        ids=str,
    )
    def test_what_is_ill_typed_selects_nothing(self, selector):
        assert not matches(selector, {"a": "1", "": ""})

    def test_what_is_no_selector_at_all_reads_as_empty(self):
        assert matches({"matchLabels": None, "matchExpressions": "x"}, {})


class TestText:
    @pytest.mark.parametrize("case", CASES, ids=lambda case: case.reason)
    def test_it_is_written_as_kubectl_parses_it(self, case):
        assert selector_text(case.selector) == case.text


class TestNames:
    @pytest.mark.parametrize(
        ("labels", "keys"),
        [
            ({"of": "demo"}, (("ns", "demo"),)),
            ({"of": ""}, ()),
            ({"of": 3}, ()),
            ({}, ()),
        ],
    )
    def test_the_label_names_a_resource_of_the_same_namespace(self, labels, keys):
        assert named_by("of")(View({"metadata": {"namespace": "ns", "labels": labels}})) == keys
