from __future__ import annotations

import json
from functools import cache

import pytest

from hedgerow.cli.install.definitions import packaged_document
from hedgerow_schemas.base import ApiResource, CustomResource, Model, Status
from hedgerow_schemas.bluegreen import BlueGreen
from hedgerow_schemas.crd import crd_name, render
from hedgerow_schemas.cronjob import CronJob
from hedgerow_schemas.definition import EDITOR, Column, Definition
from support.operator.registered import ALL

DOCUMENT = packaged_document()


class EmptySpec(Model):
    """What is wanted."""


class Bare(CustomResource):
    """A resource that presents itself with nothing."""

    api = ApiResource("example.com/v1", "Bare", "bares", namespaced=False)
    spec: EmptySpec = EmptySpec()
    status: Status = Status()


class Dressed(Bare):
    """A resource that presents itself."""

    api = ApiResource("example.com/v1", "Dressed", "dresseds")
    definition = Definition(
        columns=(Column("A", ".spec.a", "It."),), short_names=("dr",), categories=("all",)
    )


@cache
def rendered(resource, *, describe=False):
    """Render a definition once; nobody here changes it."""
    return render(resource, DOCUMENT, describe=describe)


def bluegreen():
    return rendered(BlueGreen)


def root(crd):
    return crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


def nodes(schema, path=""):
    """Yield every schema below one, itself first, with its path."""
    yield path, schema
    for name, field in schema.get("properties", {}).items():
        yield from nodes(field, f"{path}.{name}")
    for word in ("items", "additionalProperties"):
        if word in schema:
            yield from nodes(schema[word], f"{path}[]")


class TestNulls:
    @pytest.mark.parametrize("resource", ALL.resources, ids=lambda resource: resource.api.kind)
    def test_a_time_that_is_null_is_accepted_as_programs_in_go_write_none(self, resource):
        """`creationTimestamp: null` is in the metadata of each template that they print."""
        spec = root(rendered(resource))["properties"]["spec"]
        stamps = {path: node for path, node in nodes(spec) if path.endswith(".creationTimestamp")}

        assert [path for path, node in stamps.items() if node.get("nullable") is not True] == []

    def test_templates_with_metadata_are_in_both_that_have_pods(self):
        """So the test above is about something."""
        found = {
            resource.api.kind
            for resource in ALL.resources
            for path, _ in nodes(root(rendered(resource)))
            if path.endswith(".creationTimestamp")
        }

        assert {"BlueGreen", "CronJob"} <= found

    def test_nothing_else_may_be_null(self):
        for resource in ALL.resources:
            for path, node in nodes(root(rendered(resource))):
                assert "nullable" not in node or node["format"] == "date-time", path


class TestRender:
    def test_the_name_is_plural_and_group(self):
        assert crd_name(BlueGreen) == "bluegreens.app.demo.kakao.com"
        assert bluegreen()["metadata"]["name"] == "bluegreens.app.demo.kakao.com"

    def test_names_are_those_that_kubectl_takes(self):
        assert bluegreen()["spec"]["names"] == {
            "kind": "BlueGreen",
            "listKind": "BlueGreenList",
            "plural": "bluegreens",
            "singular": "bluegreen",
            "categories": ["hedgerow"],
            "shortNames": ["bg"],
        }

    def test_what_a_resource_does_not_have_is_left_out_rather_than_empty(self):
        crd = rendered(Bare)

        assert "shortNames" not in crd["spec"]["names"]

    def test_every_resource_has_the_columns_of_its_conditions(self):
        columns = rendered(Bare)["spec"]["versions"][0]
        named = [column["name"] for column in columns["additionalPrinterColumns"]]

        assert named == ["Ready", "Contested", "Reason", "Age"]

    def test_those_of_an_author_come_first_and_replace_one_of_the_same_name(self):
        mine = (Column("Size", ".spec.size", "How many."), Column("Ready", ".x", "Mine."))
        shown = Definition(columns=mine).shown

        assert [column.name for column in shown] == ["Size", "Ready", "Contested", "Reason", "Age"]
        assert shown[1] is mine[1]

    def test_the_scope_is_that_of_the_resource(self):
        assert rendered(Bare)["spec"]["scope"] == "Cluster"
        assert rendered(Dressed)["spec"]["scope"] == "Namespaced"

    def test_status_is_a_subresource(self):
        version = bluegreen()["spec"]["versions"][0]

        assert version["subresources"] == {"status": {}}
        assert (version["name"], version["served"], version["storage"]) == ("v1", True, True)

    def test_the_server_hears_of_metadata_only_that_it_is_there(self):
        properties = root(bluegreen())["properties"]

        assert set(properties) == {"apiVersion", "kind", "metadata", "spec", "status"}
        assert properties["metadata"] == {
            "type": "object",
            "properties": {"name": {"type": "string"}},
        }
        assert root(bluegreen())["required"] == ["spec"]

    def test_descriptions_of_kubernetes_come_along_only_when_asked_for(self):
        types = DOCUMENT["components"]["schemas"]
        name = "io.k8s.api.core.v1.Container"
        container = {**types[name], "description": "a container of theirs"}
        document = {"components": {"schemas": {**types, name: container}}}

        assert "theirs" not in json.dumps(render(BlueGreen, document, describe=False))
        assert "theirs" in json.dumps(render(BlueGreen, document, describe=True))

    def test_our_own_fields_are_always_described(self):
        theirs = (".metadata", ".spec.blueSpec.", ".spec.greenSpec.", ".spec.checks[].job.")
        ours = [
            (path, node)
            for path, node in nodes(root(bluegreen()))
            if not path.startswith(theirs) and not path.endswith("[]")
        ]

        assert [path for path, node in ours if not node.get("description")] == []

    def test_rendering_again_gives_the_same_bytes(self):
        again = render(BlueGreen, DOCUMENT, describe=False)

        assert json.dumps(bluegreen()) == json.dumps(again)


class TestEveryCrd:
    """What the API server asks of every structural schema, checked without one."""

    @pytest.fixture(params=ALL.resources, ids=lambda resource: resource.api.kind)
    def every_node(self, request):
        return list(nodes(root(rendered(request.param, describe=True))))

    def test_every_node_has_a_type(self, every_node):
        untyped = [
            p for p, n in every_node if "type" not in n and "x-kubernetes-int-or-string" not in n
        ]

        assert untyped == []

    def test_every_key_of_a_list_map_is_required_or_has_a_default(self, every_node):
        for path, node in every_node:
            for key in node.get("x-kubernetes-list-map-keys", ()):
                item = node["items"]
                given = key in item.get("required", ()) or "default" in item["properties"][key]
                assert given, f"{path}: {key}"

    @pytest.mark.parametrize(
        ("resource", "template"),
        [(BlueGreen, ".spec.blueSpec."), (CronJob, ".spec.jobTemplate.spec.template.spec.")],
    )
    def test_only_keys_that_may_be_left_out_have_a_default_in_a_type_of_kubernetes(
        self, resource, template
    ):
        defaults = {
            path.removeprefix(template): node["default"]
            for path, node in nodes(root(rendered(resource)))
            if path.startswith(template) and "default" in node
        }

        assert defaults == {
            "containers[].ports[].protocol": "TCP",
            "ephemeralContainers[].ports[].protocol": "TCP",
            "initContainers[].ports[].protocol": "TCP",
            "imagePullSecrets[].name": "",
        }

    def test_every_object_without_fields_keeps_what_is_in_it(self, every_node):
        emptied = [
            path
            for path, node in every_node
            if node.get("type") == "object"
            and not {"properties", "additionalProperties"} & set(node)
            and "x-kubernetes-preserve-unknown-fields" not in node
        ]

        assert emptied == []

    def test_nothing_meant_for_editors_reaches_the_server(self, every_node):
        assert [path for path, node in every_node if EDITOR in node] == []

    def test_every_list_says_how_it_is_merged(self, every_node):
        silent = [
            path
            for path, node in every_node
            if node.get("type") == "array" and "x-kubernetes-list-type" not in node
        ]

        assert silent == []
