from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
import yaml
from pydantic import ValidationError

from hedgerow.cli.install.definitions import packaged_document
from hedgerow_schemas.crd import render
from hedgerow_schemas.definition import EDITOR
from hedgerow_schemas.memcached import LARGEST, Memcached, MemcachedSpec, MemcachedStatus
from hedgerow_schemas.openapi import structural_schema

SAMPLE = Path(__file__).parents[2] / "manifests" / "samples" / "memcached.yaml"


@cache
def version():
    return render(Memcached, packaged_document(), describe=False)["spec"]["versions"][0]


def fields(part):
    return version()["schema"]["openAPIV3Schema"]["properties"][part]["properties"]


class TestMemcachedSpec:
    def test_size_alone_is_enough(self):
        assert MemcachedSpec.model_validate({"size": 3}) == MemcachedSpec(
            size=3, image="memcached:1.6-alpine", memory=64, max_connections=1024
        )

    @pytest.mark.parametrize(
        "given",
        [
            {},
            {"size": -1},
            {"size": LARGEST + 1},
            {"size": 1, "image": ""},
            {"size": 1, "image": " memcached"},
            {"size": 1, "memory": 1},
            {"size": 1, "memory": LARGEST + 1},
            {"size": 1, "maxConnections": 0},
            {"size": 1, "maxConnections": LARGEST + 1},
        ],
        ids=str,
    )
    def test_what_the_schema_refuses_the_model_refuses_too(self, given):
        with pytest.raises(ValidationError):
            MemcachedSpec.model_validate(given)

    @pytest.mark.parametrize("size", [0, 1, LARGEST])
    def test_every_number_of_pods_is_taken(self, size):
        assert MemcachedSpec.model_validate({"size": size}).size == size


class TestMemcachedStatus:
    def test_a_new_resource_has_an_empty_status(self):
        made = Memcached.model_validate({"metadata": {"name": "a"}, "spec": {"size": 1}})

        assert made.status == MemcachedStatus()

    def test_nodes_are_a_list_even_when_there_are_none(self):
        assert MemcachedStatus().wire()["nodes"] == MemcachedStatus().wire()["endpoints"] == []


class TestDefinition:
    def test_it_is_scaled_by_its_size(self):
        assert version()["subresources"] == {
            "status": {},
            "scale": {
                "specReplicasPath": ".spec.size",
                "statusReplicasPath": ".status.replicas",
                "labelSelectorPath": ".status.selector",
            },
        }

    def test_the_server_fills_in_what_the_spec_leaves_out(self):
        given = {name: field.get("default") for name, field in fields("spec").items()}

        assert given == {
            "size": None,
            "image": "memcached:1.6-alpine",
            "memory": 64,
            "maxConnections": 1024,
            **dict.fromkeys(("resources", "affinity", "tolerations", "priorityClassName")),
        }

    def test_numbers_are_of_32_bits(self):
        spec, status = fields("spec"), fields("status")

        for field in (spec["size"], spec["memory"], spec["maxConnections"]):
            assert (field["format"], field["maximum"]) == ("int32", LARGEST)
        for name in ("replicas", "readyReplicas"):
            assert status[name]["format"] == "int32"
            assert "default" not in status[name]

    def test_the_nodes_are_replaced_as_a_whole(self):
        assert fields("status")["nodes"]["x-kubernetes-list-type"] == "atomic"
        assert fields("status")["endpoints"]["x-kubernetes-list-type"] == "atomic"
        assert fields("spec")["tolerations"]["x-kubernetes-list-type"] == "atomic"

    def test_columns_show_what_is_asked_for_and_what_is_up(self):
        shown = [c["name"] for c in version()["additionalPrinterColumns"] if "priority" not in c]

        assert shown == ["Size", "Up", "Ready", "Contested", "Age"]

    def test_the_name_is_one_that_a_service_may_have(self):
        schema = structural_schema(Memcached, lambda _: {})
        (rule,) = schema["x-kubernetes-validations"]
        limits = schema[EDITOR]["allOf"][0]["properties"]["metadata"]["properties"]["name"]

        assert "self.metadata.name.size() <= 63" in rule["rule"]
        assert rule["optionalOldSelf"] is True
        assert limits["maxLength"] == 63


def test_the_sample_is_that_of_the_original():
    sample = yaml.safe_load(SAMPLE.read_text("utf-8"))

    assert sample["metadata"]["name"] == "memcached-sample"
    assert sample["spec"] == {"size": 3}
