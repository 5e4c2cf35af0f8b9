from __future__ import annotations

import pytest
from jsonschema import Draft7Validator

from hedgerow.cli.install.definitions import packaged_document
from hedgerow_schemas.bluegreen import BlueGreen
from hedgerow_schemas.editor import editor_schema
from support.objects import generated
from support.objects.specimen import specimen

DOCUMENT = packaged_document()
SCHEMA = editor_schema(BlueGreen, DOCUMENT)
PODS = {"containers": [{"name": "blue", "image": "ealen/echo-server"}]}


def manifest(name="demo", **spec):
    return {
        "apiVersion": "app.demo.kakao.com/v1",
        "kind": "BlueGreen",
        "metadata": {"name": name},
        "spec": {"routeTo": "Blue", "blueSpec": PODS, **spec},
    }


def complaints(given):
    return [f"{e.json_path}: {e.message}" for e in Draft7Validator(SCHEMA).iter_errors(given)]


class TestEditorSchema:
    def test_every_reference_leads_to_a_definition(self):
        def references(node):
            if isinstance(node, dict):
                yield from [node["$ref"]] if isinstance(node.get("$ref"), str) else []
                for value in node.values():
                    yield from references(value)
            if isinstance(node, list):
                for value in node:
                    yield from references(value)

        known = {f"#/definitions/{name}" for name in SCHEMA["definitions"]}
        assert set(references(SCHEMA)) <= known

    def test_every_field_of_a_pod_specification_is_known(self):
        pods = specimen(DOCUMENT, "io.k8s.api.core.v1.PodSpec")

        assert complaints(manifest(blueSpec=pods)) == []

    def test_what_a_generator_prints_is_no_mistake(self):
        assert complaints(generated.bluegreen("default")) == []

    @pytest.mark.parametrize(
        ("given", "complaint"),
        [
            (manifest(routeTo="Green"), "$.spec: 'greenSpec' is a required property"),
            (manifest(routeTo="Purple"), "$.spec.routeTo: 'Purple' is not one of"),
            (manifest("1demo"), "$.metadata.name: '1demo' does not match"),
            (manifest("d" * 48), "is too long"),
            (manifest(prots=[]), "'prots' was unexpected"),
            (manifest(ports=[]), "$.spec.ports: [] should be non-empty"),
            (manifest(ports=[{"port": 80, "targetPort": "80"}]), "$.spec.ports[0].targetPort"),
            (manifest(blueSpec={"containers": [{"image": "a"}]}), "'name' is a required property"),
            (manifest(blueSpec={"containers": [{"name": "a", "imag": "b"}]}), "'imag' was"),
            ({**manifest(), "kind": "Bluegreen"}, "$.kind: 'BlueGreen' was expected"),
        ],
    )
    def test_what_the_server_refuses_is_marked_while_typing(self, given, complaint):
        found = complaints(given)

        assert len(found) == 1
        assert complaint in found[0]
