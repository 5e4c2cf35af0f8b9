"""The samples, as an editor checks them against the committed JSON Schemas."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft7Validator

from hedgerow_testing.generate import SCHEMAS, editor_file
from support.operator.registered import ALL

ROOT = Path(__file__).parents[2]
SAMPLES = sorted(
    path for path in (ROOT / "manifests" / "samples").glob("*.yaml") if path.stem != "kustomization"
)


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_a_sample_is_valid_by_the_schema_that_it_names(path):
    first = path.read_text("utf-8").splitlines()[0]
    named = (path.parent / first.removeprefix("# yaml-language-server: $schema=")).resolve()
    sample = yaml.safe_load(path.read_text("utf-8"))
    kind = next(r for r in ALL.resources if r.api.kind == sample["kind"])

    assert named == ROOT / SCHEMAS / editor_file(kind)
    schema = json.loads(named.read_text("utf-8"))
    assert [e.message for e in Draft7Validator(schema).iter_errors(sample)] == []


@pytest.mark.parametrize("resource", ALL.resources, ids=lambda resource: resource.api.kind)
def test_a_schema_is_valid_draft_7_which_editors_read(resource):
    schema = json.loads((ROOT / SCHEMAS / editor_file(resource)).read_text("utf-8"))

    Draft7Validator.check_schema(schema)
