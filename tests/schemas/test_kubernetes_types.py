from __future__ import annotations

import re

import pytest

from hedgerow_schemas.kubernetes_types import (
    INT_OR_STRING,
    QUANTITY,
    SchemaError,
    Upstream,
    closure,
    excerpt,
)


def document(**types):
    return {"info": {"version": "1.37"}, "components": {"schemas": types}}


def ref(name):
    return {"$ref": f"#/components/schemas/{name}"}


def inline(node, **types):
    return Upstream(document(Type=node, **types), describe=True).inline("Type")


def obj(required=(), **properties):
    return {"type": "object", "properties": properties} | (
        {"required": list(required)} if required else {}
    )


TIME = "io.k8s.apimachinery.pkg.apis.meta.v1.Time"
NAMED = obj(name={"type": "string", "default": ""})
PORTS = obj(
    required=["port"],
    port={"type": "integer", "default": 0},
    protocol={"type": "string", "default": "TCP"},
)
LIST_MAP = {"type": "array", "x-kubernetes-list-type": "map"}


class TestUpstream:
    @pytest.mark.parametrize(
        "node", [ref("Other"), {"allOf": [ref("Other")], "default": {}}], ids=["ref", "allOf"]
    )
    def test_a_reference_is_written_out(self, node):
        assert inline(obj(a=node), Other=NAMED) == obj(a=obj(name={"type": "string"}))

    def test_references_are_followed_through_maps_and_lists(self):
        node = obj(
            a={"type": "array", "items": ref("Leaf")},
            b={"type": "object", "additionalProperties": ref("Leaf")},
        )
        leaf = {"type": "string"}

        assert inline(node, Leaf=leaf) == obj(
            a={"type": "array", "items": leaf}, b={"type": "object", "additionalProperties": leaf}
        )

    def test_a_description_beside_a_reference_wins_over_that_of_the_type(self):
        node = obj(a={"allOf": [ref("Leaf")], "description": "this one"}, b=ref("Leaf"))
        described = inline(node, Leaf={"type": "string", "description": "any"})

        assert described["properties"]["a"]["description"] == "this one"
        assert described["properties"]["b"]["description"] == "any"

    def test_descriptions_are_left_out_unless_asked_for(self):
        node = obj(a={"type": "string", "description": "a"}) | {"description": "whole"}
        plain = Upstream(document(Type=node), describe=False).inline("Type")

        assert plain == obj(a={"type": "string"})

    def test_a_field_named_description_is_a_field(self):
        node = obj(description={"type": "string", "description": "what it is"})

        assert Upstream(document(Type=node), describe=False).inline("Type") == obj(
            description={"type": "string"}
        )

    def test_quantities_and_ports_take_numbers_and_text(self):
        node = obj(q=ref(QUANTITY), i=ref(INT_OR_STRING), f=ref("Fields"))
        one_of = {"oneOf": [{"type": "string"}, {"type": "number"}]}
        types = {QUANTITY: one_of, INT_OR_STRING: one_of, "Fields": {"type": "object"}}
        fields = inline(node, **types)["properties"]

        assert fields["q"]["x-kubernetes-int-or-string"] is True
        assert fields["i"] == {"x-kubernetes-int-or-string": True}
        assert fields["f"]["x-kubernetes-preserve-unknown-fields"] is True

    def test_a_time_may_be_null_as_go_writes_one_that_is_not_set(self):
        time = {"type": "string", "format": "date-time"}
        found = inline(obj(at=ref(TIME), of=ref("Other")), **{TIME: time, "Other": time})

        assert found == obj(at=time | {"nullable": True}, of=time)

    @pytest.mark.parametrize(
        "text", ["1", "0.5", ".5", "1.", "-1", "+2", "100m", "1Gi", "1e3", "1E", "2E-1", "5n"]
    )
    def test_a_quantity_of_kubernetes_is_accepted(self, text):
        assert re.search(_quantity_pattern(), text)

    @pytest.mark.parametrize("text", ["", "1Gb", "one", "1 Gi", "Gi", "1e", "1.2.3", "0x10", "1gi"])
    def test_anything_else_is_no_quantity(self, text):
        assert not re.search(_quantity_pattern(), text)

    def test_a_default_is_dropped_since_it_would_change_what_the_user_wrote(self):
        node = obj(mode={"type": "string", "default": "ReadWrite"})

        assert inline(node) == obj(mode={"type": "string"})

    def test_the_keys_of_a_list_map_keep_the_default_that_lets_them_be_left_out(self):
        node = LIST_MAP | {"x-kubernetes-list-map-keys": ["port", "protocol"], "items": ref("Port")}
        item = inline(obj(ports=node), Port=PORTS)["properties"]["ports"]["items"]

        assert item["properties"] == {
            "port": {"type": "integer"},
            "protocol": {"type": "string", "default": "TCP"},
        }

    def test_the_same_type_elsewhere_keeps_no_default(self):
        listed = LIST_MAP | {"x-kubernetes-list-map-keys": ["name"], "items": ref("Named")}
        fields = inline(obj(one=ref("Named"), many=listed), Named=NAMED)["properties"]

        assert fields["one"]["properties"]["name"] == {"type": "string"}
        assert fields["many"]["items"]["properties"]["name"] == {"type": "string", "default": ""}

    def test_what_only_openapi_knows_is_dropped(self):
        node = obj() | {
            "x-kubernetes-unions": [],
            "x-kubernetes-patch-strategy": "merge",
            "x-kubernetes-patch-merge-key": "name",
            "x-kubernetes-group-version-kind": [],
        }

        assert inline(node) == obj()

    def test_what_has_no_place_in_a_structural_schema_is_refused(self):
        with pytest.raises(SchemaError, match=r"not: .* has no place"):
            inline({"type": "string", "not": {"enum": ["x"]}})

    def test_a_combination_is_refused(self):
        with pytest.raises(SchemaError, match="allOf of 2"):
            inline({"allOf": [ref("A"), ref("B")]})

    def test_a_type_that_refers_to_itself_is_refused(self):
        with pytest.raises(SchemaError, match="Type refers to itself through Type -> Other"):
            inline(obj(a=ref("Other")), Other=obj(b=ref("Type")))

    def test_a_type_that_is_not_there_is_refused(self):
        with pytest.raises(SchemaError, match="no Other"):
            inline(obj(a=ref("Other")))

    def test_definitions_hold_each_type_once_and_refer_to_it(self):
        upstream = Upstream(
            document(A=obj(b=ref("B"), c=ref("B")), B=NAMED, C=NAMED), describe=True
        )

        assert upstream.definitions(["A"], lambda name, _keys: {"$ref": name}) == {
            "A": obj(b={"$ref": "B"}, c={"$ref": "B"}),
            "B": obj(name={"type": "string"}),
        }


class TestExcerpt:
    def test_an_excerpt_holds_the_named_types_and_all_they_need(self):
        whole = document(A=obj(b={"allOf": [ref("B")]}), B=NAMED, C=NAMED)

        assert set(excerpt(whole, ["A"])["components"]["schemas"]) == {"A", "B"}

    def test_an_excerpt_carries_no_descriptions(self):
        node = obj(description={"type": "string", "description": "gone"}) | {"description": "gone"}

        assert excerpt(document(A=node), ["A"])["components"]["schemas"]["A"] == obj(
            description={"type": "string"}
        )

    def test_an_excerpt_of_an_excerpt_is_the_same(self):
        once = excerpt(document(B=NAMED, A=obj(b=[ref("B")])), ["A"])

        assert excerpt(once, ["A"]) == once

    def test_types_that_need_each_other_are_found_once(self):
        assert closure({"A": obj(b=ref("B")), "B": obj(a=ref("A"))}, ["A"]) == {"A", "B"}


def _quantity_pattern():
    return inline(obj(q=ref(QUANTITY)), **{QUANTITY: {}})["properties"]["q"]["pattern"]
