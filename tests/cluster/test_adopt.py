"""`hedgerow adopt`, as typed on a real server where no operator runs."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from hedgerow.kube.client import connect
from hedgerow.kube.errors import Stale
from hedgerow_schemas.base import ApiResource
from hedgerow_testing.api import Object
from hedgerow_tools.moving.adoption import replace_managed_fields
from support.cluster.bluegreens import FIELD_MANAGER
from support.programs.typed import Garden, Typing, body, typing

pytestmark = pytest.mark.cluster

CHILD = f"deploy/{Garden.NAME}"
IMAGE = '.spec.template.spec.containers[name="c"].image'
DEPLOYMENT = ApiResource("apps/v1", "Deployment", "deployments")


@pytest.fixture
def typed(sandbox, namespace, capsys) -> Typing:
    return typing(sandbox.kubeconfig, namespace, capsys)


@pytest.fixture
def garden(api, namespace) -> Garden:
    return Garden(api, namespace)


@pytest.fixture
def contested(garden: Garden) -> Garden:
    """What another operator made, of which hedgerow declares another image."""
    garden.original()
    garden.half()
    garden.contest(IMAGE)
    return garden


def others(live: Object) -> list[tuple[str, ...]]:
    keys = ("manager", "operation", "subresource")
    entries = live["metadata"].get("managedFields", [])
    return [tuple(filter(None, map(e.get, keys))) for e in entries]


@pytest.mark.oldest
class TestMoves:
    def test_contested_and_shared_fields_are_the_controllers_then(self, contested, typed):
        """Fact: the server takes a JSON patch of managed fields, and stores what is left."""
        before = contested.live()

        told = typed("adopt", CHILD, "--from", "manager", "--yes")

        assert told.code == 0, told.err
        after = contested.live()
        assert body(after) == body(before)
        assert others(after) == [(FIELD_MANAGER, "Apply")]
        assert contested.held("image") == contested.held("selector") == {FIELD_MANAGER}
        assert contested.held("args") == contested.held("replicas") == set()
        assert "no value changed" in told.out
        assert "as soon as the operator runs" in told.out
        live = contested.declare()  # the controller's next apply meets no conflict
        container = live["spec"]["template"]["spec"]["containers"][0]
        assert (container["image"], container["args"]) == ("example/echo:1", ["x"])


class TestStatus:
    def test_the_status_of_a_resource_is_adopted_from_an_original_operator(self, garden, typed):
        """Fact: an entry of the status may be removed through the main resource."""
        live = garden.api.get(garden.owner_target).must()
        live["status"] = {"routeTo": "Green"}
        garden.api.put(live, "manager", "status").must()
        garden.contest(".status.routeTo", of="BlueGreen/demo")

        told = typed("adopt", "bluegreen/demo", "--from", "manager", "--yes")

        assert told.code == 0, told.err
        after = garden.api.get(garden.owner_target).must()
        assert after["status"]["routeTo"] == "Green"
        assert (FIELD_MANAGER, "Apply", "status") in others(after)
        assert not any(one[0] == "manager" for one in others(after))
        assert garden.held("routeTo", after) == {"user", FIELD_MANAGER}


class TestFields:
    """Items of a list go along with single fields of theirs."""

    def hook(self, name: str, **more: Any) -> Object:
        config = {"url": "https://127.0.0.1:1/a", **more}
        rule = {"apiGroups": ["none.example.com"], "apiVersions": ["v1"], "resources": [name]}
        return {
            "name": f"{name}.example.com",
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "failurePolicy": "Ignore",
            "clientConfig": config,
            "rules": [{**rule, "operations": ["CREATE"]}],
        }

    def test_an_item_goes_with_its_key_and_is_removed_by_who_has_it_then(
        self, api, namespace, typed
    ):
        """Fact: the server removes an item that an apply leaves out, if nobody else holds it."""
        kind = {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
        }
        target = {**kind, "metadata": {"name": namespace}}
        both = [self.hook("a"), self.hook("b")]
        api.apply({**target, "webhooks": both}, "helm").must()
        bundle = {"name": "a.example.com", "clientConfig": {"caBundle": "LS0t"}}
        # The injector's update holds the item's key, as no other field of the item.
        api.apply({**target, "webhooks": [bundle]}, "injector").must()
        words = (
            "adopt",
            f"validatingwebhookconfiguration/{namespace}",
            "--from",
            "injector",
            "--to",
            "helm",
        )
        path = "webhooks[*].clientConfig.caBundle"
        before = api.get(target).must()
        try:
            told = typed(*words, "--field", path, "--yes")

            assert told.code == 0, told.err
            after = api.get(target).must()
            assert body(after) == body(before)
            assert others(after) == [("helm", "Apply")]
            left = api.apply({**target, "webhooks": both[1:]}, "helm").must()
            assert [one["name"] for one in left["webhooks"]] == ["b.example.com"]
        finally:
            api.delete(before).must()

    def test_it_is_in_both_entries_if_both_have_something_of_it(
        self, api, namespace, typed, tmp_path
    ):
        """Fact: the server keeps an item in an entry that gets one field of it by a patch."""
        target = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "web", "namespace": namespace},
        }
        labels = {"a": "b"}
        container = {"name": "c", "image": "x:1", "args": ["a"]}
        pod = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
        api.apply(
            {**target, "spec": {"selector": {"matchLabels": labels}, "template": pod}}, "old"
        ).must()
        former = api.get(target).must()

        saved = str(tmp_path / "undo")
        words = ("adopt", "deploy/web", "--from", "old", "--to", "new")
        field = ("--field", "spec.template.spec.containers[*].image")
        told = typed(*words, *field, "--yes", "--save", saved)

        assert told.code == 0, told.err
        held = {
            e["manager"]: e["fieldsV1"]["f:spec"]["f:template"]["f:spec"]
            for e in api.get(target).must()["metadata"]["managedFields"]
        }
        item = 'k:{"name":"c"}'
        key = {".": {}, "f:name": {}}
        assert held["new"]["f:containers"] == {item: {**key, "f:image": {}}}
        assert held["old"]["f:containers"] == {item: {**key, "f:args": {}}}
        assert typed("adopt", "--undo", saved, "--yes").code == 0
        assert body(api.get(target).must()) == body(former)
        now = api.get(target).must()["metadata"]["managedFields"]
        assert now == former["metadata"]["managedFields"]


class TestTheOneWrite:
    """What the server refuses of it, so that nothing is removed that was not looked at."""

    @pytest.fixture
    def remove(self, sandbox):
        def removing(live: Object, edits: dict[int, Any]) -> Object:
            async def sent() -> Object:
                async with connect(kubeconfig=str(sandbox.kubeconfig)) as cluster:
                    return await replace_managed_fields(cluster, DEPLOYMENT, live, edits)

            return anyio.run(sent)

        return removing

    @pytest.mark.parametrize("what", ["uid", "resourceVersion", "managedFields"])
    def test_an_object_that_is_not_as_it_was_looked_at_stays(self, contested, remove, what):
        """Fact: the server refuses a JSON patch whose test of uid, version or entry fails."""
        live = contested.live()
        meta = live["metadata"]
        other = {
            "uid": "another",
            "resourceVersion": "1",
            "managedFields": [{**e, "time": "2020-01-01T00:00:00Z"} for e in meta["managedFields"]],
        }

        with pytest.raises(Stale):
            remove({**live, "metadata": {**meta, what: other[what]}}, {1: ()})
        assert contested.live() == live
