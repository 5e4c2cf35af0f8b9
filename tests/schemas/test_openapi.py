from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from pydantic import Field, WithJsonSchema

from hedgerow_schemas.base import Model, Time
from hedgerow_schemas.definition import EDITOR, UPSTREAM, Rule, list_map, rules
from hedgerow_schemas.kubernetes_types import SchemaError
from hedgerow_schemas.openapi import structural_schema, upstream_types, without_editor


class Part(Model):
    """A part."""

    size: int = Field(ge=1, le=9, json_schema_extra={"format": "int32"})


class Whole(Model):
    plain: Part
    told: Part = Field(description="this part")
    many: tuple[Part, ...] = Field(default=(), max_length=3, json_schema_extra=list_map("size"))
    labels: dict[str, str] = Field(default_factory=dict)
    anything: dict[str, Any] = Field(default_factory=dict)
    since: Time | None = None
    only: Literal["A"] = "A"
    pods: Annotated[dict[str, Any], WithJsonSchema({UPSTREAM: "io.PodSpec"})] | None = Field(
        default=None, description="the pods"
    )


def upstream(name):
    return {"type": "object", "description": "theirs", "from": name}


def fields(model):
    return structural_schema(model, upstream)["properties"]


class TestStructural:
    def test_a_nested_model_is_written_out_with_its_docstring(self):
        assert fields(Whole)["plain"] == {
            "description": "A part.",
            "type": "object",
            "required": ["size"],
            "properties": {
                "size": {"type": "integer", "format": "int32", "minimum": 1, "maximum": 9}
            },
        }

    def test_the_description_of_a_field_wins_over_the_docstring(self):
        assert fields(Whole)["told"]["description"] == "this part"

    def test_a_list_keeps_its_type_its_keys_and_its_limits(self):
        many = fields(Whole)["many"]

        assert many | {"items": None} == {
            "type": "array",
            "maxItems": 3,
            "items": None,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["size"],
        }

    def test_a_map_of_text_stays_one_and_a_map_of_anything_is_preserved(self):
        assert fields(Whole)["labels"]["additionalProperties"] == {"type": "string"}
        assert fields(Whole)["anything"] == {
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": True,
        }

    def test_what_is_optional_is_never_null(self):
        assert fields(Whole)["since"] == {"type": "string", "format": "date-time"}

    def test_a_single_choice_is_an_enum(self):
        assert fields(Whole)["only"]["enum"] == ["A"]

    def test_a_type_of_kubernetes_is_asked_for_and_keeps_our_description(self):
        assert fields(Whole)["pods"] == {
            "description": "the pods",
            "type": "object",
            "from": "io.PodSpec",
        }

    def test_the_types_of_kubernetes_are_known_by_name(self):
        assert upstream_types(Whole) == {"io.PodSpec"}

    def test_required_is_what_has_no_default(self):
        assert structural_schema(Whole, upstream)["required"] == ["plain", "told"]

    @pytest.mark.parametrize(
        ("annotation", "default", "rendered"),
        [
            (str, "TCP", "TCP"),
            (int, 0, 0),
            (bool, False, False),
            (str, "", None),
            (tuple[int, ...], (1,), None),
            (dict[str, str], {"a": "b"}, None),
            (Part, Part(size=1), None),
            (int | None, None, None),
        ],
    )
    def test_only_a_scalar_that_says_something_is_the_servers_default(
        self, annotation, default, rendered
    ):
        model = type("One", (Model,), {"__annotations__": {"a": annotation}, "a": default})

        assert fields(model)["a"].get("default") == rendered

    @pytest.mark.parametrize(
        ("annotation", "default", "told"),
        [
            (tuple[int, ...], (1,), "Defaults to [1]."),
            (dict[str, str], {"a": "b"}, 'Defaults to {"a":"b"}.'),
            (Part, Part(size=7), 'Defaults to {"size":7}.'),
            (tuple[int, ...], (), None),
            (int | None, None, None),
        ],
    )
    def test_any_other_is_in_the_description(self, annotation, default, told):
        model = type("One", (Model,), {"__annotations__": {"a": annotation}, "a": default})
        described = fields(model)["a"].get("description", "")

        assert described.endswith(told) if told else "Defaults" not in described

    def test_that_of_a_model_is_not_where_its_fields_say_it(self):
        inner = type("Inner", (Model,), {"__annotations__": {"b": int}, "b": 3})
        model = type("One", (Model,), {"__annotations__": {"a": inner}, "a": inner()})

        assert "Defaults" not in fields(model)["a"].get("description", "")
        assert fields(model)["a"]["properties"]["b"]["default"] == 3

    def test_a_number_or_a_text_is_int_or_string(self):
        model = type("One", (Model,), {"__annotations__": {"a": int | str}, "a": 80})

        assert fields(model)["a"] == {"x-kubernetes-int-or-string": True, "default": 80}

    @pytest.mark.parametrize(
        ("annotation", "said"),
        [
            (int | bool, r"\.a: a choice of integer or boolean"),
            (dict[str, int | Part], r"\.a\[\*\]: a choice of integer or #"),
            (tuple[int, str], "prefixItems"),
            (Annotated[int, Field(gt=0)], "exclusiveMinimum"),
        ],
    )
    def test_what_cannot_be_said_is_refused(self, annotation, said):
        model = type("One", (Model,), {"__annotations__": {"a": annotation}})

        with pytest.raises(SchemaError, match=said):
            fields(model)

    def test_rules_stand_where_they_are_declared_and_editors_words_can_be_taken_out(self):
        extra = rules(Rule("self > 0", "positive", editor={"minimum": 1}))
        annotation = Annotated[int, Field(json_schema_extra=extra)]
        model = type("One", (Model,), {"__annotations__": {"a": annotation}})

        assert EDITOR in fields(model)["a"]
        assert without_editor([fields(model)["a"]]) == [
            {
                "type": "integer",
                "x-kubernetes-validations": [Rule("self > 0", "positive").wire()],
            }
        ]
