"""What a model refuses, in Kubernetes's words."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from pydantic import AfterValidator, BaseModel, Field, TypeAdapter, ValidationError

from hedgerow.settings import Settings
from hedgerow.validation import field_errors, in_a_line
from hedgerow_schemas.base import ObjectMeta
from hedgerow_schemas.bluegreen import BlueGreen
from support.operator.registered import RESOURCES

PYDANTIC = ("Input should", "Field required", "Value error", "valid ", "cannot be read")
WRONG = ("", "no", -1, 1 << 70, 0.5, float("nan"), True, None, [], [None], {}, {"a": None})
DEMO = {"metadata": {"name": "demo"}}


def refused(model: Any, given: Any) -> ValidationError | None:
    try:
        TypeAdapter(model).validate_python(given)
    except ValidationError as error:
        return error
    return None


def details(model: Any, given: Any) -> list[str]:
    error = refused(model, given)
    assert error is not None
    return [found.detail for found in field_errors(error)]


class TestDetails:
    @pytest.mark.parametrize(
        ("kind", "given", "expected"),
        [
            (bool, "perhaps", "must be true or false"),
            (int, "x", "must be an integer"),
            (float, "x", "must be a number"),
            (str, 5, "must be a string"),
            (list[int], 5, "must be a list"),
            (tuple[int, ...], 5, "must be a list"),
            (dict[str, int], 5, "must be a map"),
            (BlueGreen, 5, "must be a map"),
            (Literal["A", "B"], "C", "must be 'A' or 'B'"),
            (Annotated[int, Field(ge=1)], 0, "must be at least 1"),
            (Annotated[int, Field(le=1)], 2, "must be at most 1"),
            (Annotated[float, Field(gt=0)], 0, "must be greater than 0"),
            (Annotated[int, Field(lt=1)], 1, "must be less than 1"),
            (Annotated[float, Field(allow_inf_nan=False)], float("inf"), "must be a finite number"),
            (Annotated[str, Field(max_length=1)], "ab", "must have at most 1 characters"),
            (Annotated[str, Field(min_length=1)], "", "must have at least 1 characters"),
            (Annotated[str, Field(pattern="^a{2}$")], "b", "must match ^a{2}$"),
            (Annotated[list[int], Field(max_length=1)], [1, 2], "must have at most 1 items"),
            (Annotated[list[int], Field(min_length=1)], [], "must have at least 1 items"),
            (type, 5, "has a value that cannot be read"),
        ],
    )
    def test_each_kind_of_error_has_a_sentence(self, kind, given, expected):
        assert details(kind, given) == [expected]

    def test_what_a_validator_says_is_said_as_it_is(self):
        def refuse(_: str) -> str:
            raise ValueError("it is {odd}")

        assert details(Annotated[str, AfterValidator(refuse)], "x") == ["it is {odd}"]

    def test_a_field_that_is_missing_is_required(self):
        error = refused(BlueGreen, DEMO | {"spec": {}})
        [found] = field_errors(error)

        assert str(found) == "spec.routeTo: Required value: must be set"

    def test_a_field_that_there_is_not_is_named(self):
        class Closed(BaseModel, extra="forbid"):
            pass

        assert in_a_line(refused(Closed, {"a": 1})) == "a: there is no such field"


class TestPlaces:
    def test_every_bad_field_is_named_in_one_line(self):
        error = refused(BlueGreen, DEMO | {"spec": {"promotion": "Never", "ports": [{"port": 0}]}})

        assert in_a_line(error) == (
            "spec.routeTo: must be set; spec.promotion: must be 'Immediate', 'WhenAvailable' or"
            " 'WhenChecked';"
            " spec.ports[0].port: must be at least 1"
        )

    def test_an_int_or_string_is_one_field_and_no_two(self):
        ports = [{"port": 80, "targetPort": []}]
        error = refused(BlueGreen, DEMO | {"spec": {"routeTo": "Blue", "ports": ports}})

        assert in_a_line(error) == "spec.ports[0].targetPort: must be an integer or a string"

    def test_a_key_that_is_called_like_a_type_is_a_key(self):
        error = refused(dict[str, int], {"int": []})

        assert in_a_line(error) == "int: must be an integer"

    def test_what_is_wrong_as_a_whole_has_no_path(self):
        assert in_a_line(refused(BlueGreen, 5)) == "must be a map"


def wrongs(model: type[BaseModel], values=WRONG):
    for name, field in model.model_fields.items():
        for value in values:
            yield {field.alias or name: value}


@pytest.mark.parametrize("resource", RESOURCES)
def test_no_word_of_pydantic_is_said_of_a_resource(resource):
    spec = resource.model_fields["spec"].annotation
    given = [DEMO | {"spec": wrong} for wrong in wrongs(spec)]
    given += [{"metadata": DEMO["metadata"] | wrong} for wrong in wrongs(ObjectMeta)]
    said = [in_a_line(error) for each in given if (error := refused(resource, each))]

    assert len(said) > 20
    assert [line for line in said if any(word in line for word in PYDANTIC)] == []


def test_no_word_of_pydantic_is_said_of_a_setting():
    given = wrongs(Settings, ("", "perhaps", "-1", "5", "1:x", ["No"], ["-"]))
    said = [in_a_line(error) for each in given if (error := refused(Settings, each))]

    assert len(said) > 40
    assert [line for line in said if any(word in line for word in PYDANTIC)] == []
