"""Structure: which maps and lists of a kind the server's OpenAPI calls atomic."""

from __future__ import annotations

from typing import Any

import pytest

from hedgerow_schemas.base import ApiResource
from hedgerow_tools.fields.diff import difference
from hedgerow_tools.fields.field_tree import Ownership, owners
from hedgerow_tools.fields.structure import Structure, structure_of
from support.objects.judged import Object, item, live, want

API = ApiResource("x.example/v1", "Hedge", "hedges")
TEXT = {"type": "string"}
NAMED = {"type": "object", "properties": {"name": TEXT, "x": TEXT}}
SPEC: Object = {
    "plain": {"type": "array", "items": NAMED},
    "keyed": {
        "type": "array",
        "items": {"allOf": [{"$ref": "#/components/schemas/Named"}]},
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
    },
    "set": {"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"},
    "limits": {"type": "array", "items": NAMED, "x-kubernetes-list-type": "atomic"},
    "strategy": {"default": {}, "allOf": [{"$ref": "#/components/schemas/Named"}]},
    "labels": {"type": "object", "additionalProperties": TEXT},
    "selector": {
        "x-kubernetes-map-type": "atomic",
        "allOf": [{"$ref": "#/components/schemas/Named"}],
    },
    "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    "text": TEXT,
}  # fmt: skip
KIND = {"group": "x.example", "version": "v1", "kind": "Hedge"}
HEDGE = {
    "type": "object",
    "properties": {"spec": {"type": "object", "properties": SPEC}},
    "x-kubernetes-group-version-kind": [{**KIND, "version": "v2"}, KIND],
}
DOCUMENT = {"components": {"schemas": {"Other": {}, "Named": NAMED, "example.Hedge": HEDGE}}}


def known() -> Structure:
    found = structure_of(DOCUMENT, API)
    assert found is not None
    return found


def place(*path: str) -> Structure | None:
    found: Structure | None = known()
    for element in path:
        found = found.below(element) if found else None
    return found


@pytest.mark.parametrize(
    ("name", "atomic"),
    [
        ("plain", True), ("keyed", False), ("set", False), ("limits", True), ("strategy", False),
        ("labels", False), ("selector", True), ("any", None), ("text", None),
    ],
)  # fmt: skip
def test_lists_are_atomic_and_maps_granular_unless_it_says_otherwise(
    name: str, atomic: bool | None
) -> None:
    found = place("f:spec", f"f:{name}")

    assert found is not None
    assert found.is_atomic is atomic


@pytest.mark.parametrize(
    ("name", "element"), [("keyed", 'k:{"name": ""}'), ("set", 'v:""'), ("limits", "")]
)
def test_an_item_of_a_list_that_is_not_atomic_has_an_element(name: str, element: str) -> None:
    found = place("f:spec", f"f:{name}")

    assert found is not None
    assert found.item_element.replace(" ", "") == element.replace(" ", "")


@pytest.mark.parametrize(
    "path",
    [
        ("f:spec", "f:unknown"),
        ("f:spec", "f:any", "f:x"),
        ("f:spec", "f:text", "f:x"),
        ("f:spec", "f:text", 'v:"x"'),
    ],
)
def test_of_what_it_does_not_name_nothing_is_said(path: tuple[str, ...]) -> None:
    assert place(*path) is None


def test_it_goes_into_items_and_keys() -> None:
    inside = place("f:spec", "f:keyed", 'k:{"name":"a"}')
    label = place("f:spec", "f:labels", "f:x")

    assert inside is not None
    assert inside.is_atomic is False
    assert label is not None
    assert label.is_atomic is None


@pytest.mark.parametrize(
    "document",
    [
        None, "no JSON", {}, {"components": None}, {"components": {"schemas": None}},
        {"components": {"schemas": {"x": {}}}}, {"components": {"schemas": {"x": None}}},
    ],
)  # fmt: skip
def test_a_document_without_the_kind_has_none(document: Any) -> None:
    assert structure_of(document, API) is None


def leaves(found: Ownership) -> dict[str, Any]:
    return {
        node.path: [holder.manager for holder in node.holders]
        for node in found.leaves()
        if node.path.startswith(".spec")
    }


def look(tree: Object, **spec: Any) -> Object:
    return live(want("Hedge", "x.example/v1", spec=spec), ("one", {"f:spec": tree}))


class TestOwners:
    """What holds where the managed fields do not show it, or show what was before."""

    @pytest.mark.parametrize("structure", [None, known()])
    def test_a_list_whose_name_is_that_of_a_map_is_held_as_a_whole(
        self, structure: Structure | None
    ) -> None:
        found = owners(look({"f:limits": {}}, limits=[{"name": "a"}]), structure=structure)

        assert leaves(found) == {".spec.limits": ["one"]}

    def test_defaults_in_a_granular_map_are_nobodys(self) -> None:
        found = owners(look({"f:strategy": {}}, strategy={"x": "1"}), structure=known())

        assert leaves(found) == {".spec.strategy.x": []}

    def test_so_are_the_items_of_a_list_that_was_atomic_before(self) -> None:
        found = owners(
            look({"f:keyed": {}, "f:set": {}}, keyed=[{"name": "a"}], set=["b"]), structure=known()
        )

        assert leaves(found) == {'.spec.keyed[name="a"].name': [], '.spec.set[="b"]': []}

    def test_who_held_a_part_of_what_is_atomic_now_holds_it(self) -> None:
        tree = {"f:plain": {'k:{"name":"a"}': item("name")}, "f:selector": {"f:x": {}}}
        found = owners(look(tree, plain=[{"name": "a"}], selector={"x": "1"}), structure=known())

        assert leaves(found) == {".spec.plain": ["one"], ".spec.selector": ["one"]}

    def test_what_is_atomic_and_nobodys_is_one_field(self) -> None:
        found = owners(look({}, plain=[{"name": "a"}], any={"x": [1]}), structure=known())

        assert leaves(found) == {".spec.plain": [], ".spec.any.x[0]": []}

    def test_a_difference_knows_it_too(self) -> None:
        before = look({"f:strategy": {}}, strategy={"x": "1"})
        after = look({"f:strategy": {"f:x": {}}}, strategy={"x": "2"})
        [line] = difference(before, after, "one", known())

        assert (line.path, line.holders) == (".spec.strategy.x", ())
