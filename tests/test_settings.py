"""What `hedgerow run` can be told, and how nonsense is refused."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from hedgerow.core.meta import Installation
from hedgerow.settings import Settings


class TestDefaults:
    def test_everything_everywhere_with_patience(self):
        made = Settings()

        assert (made.controllers, made.namespaces, made.instance) == ((), (), "")
        assert (made.log_format, made.debug, made.grace_seconds) == ("auto", False, 20.0)

    def test_settings_do_not_change(self):
        with pytest.raises(ValidationError, match="frozen"):
            Settings().debug = True  # type: ignore[misc]


class TestValues:
    @pytest.mark.parametrize("name", ["shop", "a", "0", "a-b", "a" * 63])
    def test_a_namespace_is_a_dns_label(self, name):
        assert Settings(namespaces=(name,)).namespaces == (name,)

    @pytest.mark.parametrize("name", ["two", "a", "0a-9", "a" * 20])
    def test_an_instance_fits_into_a_label_value_and_a_field_manager(self, name):
        installation = Installation(Settings(instance=name).instance)

        assert len(installation.label("x" * 42)) <= 63
        assert len(installation.field_manager("x" * 42)) <= 128

    @pytest.mark.parametrize(
        ("field", "value", "says"),
        [
            ("namespaces", ("Shop",), "String should match pattern"),
            ("namespaces", ("a", ""), "String should match pattern"),
            ("namespaces", ("a_b",), "String should match pattern"),
            ("namespaces", ("-a",), "String should match pattern"),
            ("namespaces", ("a\n",), "String should match pattern"),
            ("namespaces", ("a.b",), "String should match pattern"),
            ("namespaces", ("a" * 64,), "at most 63 characters"),
            ("instance", "Two", "String should match pattern"),
            ("instance", "-", "String should match pattern"),
            ("instance", "a" * 21, "at most 20 characters"),
            ("log_format", "xml", "'auto', 'human' or 'json'"),
            ("grace_seconds", 0, "greater than 0"),
            ("grace_seconds", "soon", "valid number"),
            ("colour", "blue", "Extra inputs are not permitted"),
        ],
    )
    def test_nonsense_is_refused_with_its_field_and_the_reason(self, field, value, says):
        given: dict[str, Any] = {field: value}

        with pytest.raises(ValidationError) as caught:
            Settings(**given)

        (error,) = caught.value.errors()
        assert error["loc"][0] == field
        assert says in error["msg"]
