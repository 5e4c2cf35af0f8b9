"""Guestbook: what its schema takes and refuses is what the original's does."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
import yaml
from pydantic import ValidationError

from hedgerow.cli.install.definitions import packaged_document
from hedgerow_schemas.crd import render
from hedgerow_schemas.guestbook import Guestbook, GuestbookSpec

SAMPLE = Path(__file__).parents[2] / "manifests" / "samples" / "guestbook.yaml"


@cache
def fields(part: str) -> dict:
    (version,) = render(Guestbook, packaged_document(), describe=False)["spec"]["versions"]
    return version["schema"]["openAPIV3Schema"]["properties"][part]


class TestSpec:
    @pytest.mark.parametrize(
        "given",
        [
            {"size": 1, "configMapName": "a"},
            {"size": 10, "configMapName": "a" * 15},
            *({"size": 2, "configMapName": "a", "alias": a} for a in ("Phone", "Address", "Name")),
        ],
        ids=str,
    )
    def test_what_the_original_takes_is_taken(self, given):
        assert GuestbookSpec.model_validate(given).size == given["size"]

    @pytest.mark.parametrize(
        "given",
        [
            {"configMapName": "a"},
            {"size": 1},
            {"size": 0, "configMapName": "a"},
            {"size": 11, "configMapName": "a"},
            {"size": 1, "configMapName": ""},
            {"size": 1, "configMapName": "a" * 16},
            {"size": 1, "configMapName": "a", "alias": "phone"},
            {"size": 1, "configMapName": "a", "alias": ""},
        ],
        ids=str,
    )
    def test_what_the_original_refuses_is_refused(self, given):
        with pytest.raises(ValidationError):
            GuestbookSpec.model_validate(given)

    def test_the_definition_says_the_same(self):
        spec = fields("spec")
        told = {
            name: {word: value for word, value in field.items() if word != "description"}
            for name, field in spec["properties"].items()
        }

        assert spec["required"] == ["size", "configMapName"]
        assert told == {
            "size": {"type": "integer", "format": "int32", "minimum": 1, "maximum": 10},
            "configMapName": {"type": "string", "minLength": 1, "maxLength": 15},
            "alias": {"type": "string", "enum": ["Phone", "Address", "Name"]},
        }


class TestStatus:
    def test_it_says_which_pod_is_active_and_which_stand_by(self):
        status = fields("status")["properties"]

        assert status["active"]["type"] == "string"
        assert status["standby"]["items"] == {"type": "string"}


class TestSample:
    def test_it_is_the_originals(self):
        sample = Guestbook.model_validate(yaml.safe_load(SAMPLE.read_text("utf-8")))

        assert sample.metadata.name == "guestbook-sample"
        assert sample.spec.wire() == {"size": 1, "configMapName": "myconfig", "alias": "Address"}
