"""The owners of every object of real servers: each leaf once, each holding of an entry told."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from hedgerow_testing.api import Api, Object
from support.cluster.worlds import with_custom_resources
from support.objects.accounts import accounted, must_account
from support.objects.cases import Case
from support.objects.edits import having
from support.objects.hedge import HEDGE
from support.objects.manifests import CASES, RICH_DEPLOYMENT
from support.objects.workloads import AUTOSCALER, DEPLOYMENT
from support.programs.typed import answer

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def api(sandbox) -> Iterator[Api]:
    api = with_custom_resources(Api(sandbox.kubeconfig))
    api.apply(HEDGE, "test").must()
    api.served("test.hedgerow.example/v1")
    yield api
    api.close()


def written(api: Api, case: Case, namespace: str) -> Object:
    """Apply a case, then let others write to it in every way there is."""
    manifest = case.named("subject", namespace)
    api.apply(manifest, "one").must()
    api.apply(having(manifest, ("metadata", "labels", "more"), "x"), "two", force=True).must()
    for number, field in enumerate(case.fields):
        edited = having(api.get(manifest).must(), field.path, field.other)
        api.put(edited, f"writer-{number}")  # what may not change is refused
    note = {"metadata": {"annotations": {"note": "x"}}}
    api.merge(manifest, note, "kubectl-annotate").must()
    return api.get(manifest).must()


class TestEveryLeaf:
    @pytest.mark.parametrize("case", CASES, ids=str)
    def test_of_what_many_wrote_to(self, api, namespace, case):
        """Fact: the entries that the server keeps of many ways to write."""
        live = written(api, case, namespace)

        assert len(must_account(live).holders) >= 3

        api.merge(live, {"metadata": {"managedFields": [{}]}}, "wiper").must()
        bare = must_account(api.get(live).must())
        assert bare.holders == ()
        api.apply(case.named("subject", namespace), "one", force=True).must()
        again = must_account(api.get(live).must())
        assert "before-first-apply" in {holder.manager for holder in again.holders}

    def test_of_every_object_that_there_is_in_every_version(self, api, namespace):
        """Fact: the entries of every object that a server makes by itself."""
        for case in (DEPLOYMENT, AUTOSCALER):
            written(api, case, namespace)
        kinds = accounted(api)

        assert sum(kinds.values()) > 150
        assert {
            "APIService", "ClusterRole", "CustomResourceDefinition", "FlowSchema", "Lease",
            "Namespace", "PriorityClass", "Service",
        } <= set(kinds)  # fmt: skip

    def test_of_items_with_the_same_key(self, api, namespace):
        """Fact: the server stores items with the same key, and one entry for both."""
        manifest = RICH_DEPLOYMENT.named("double", namespace)
        [main, side] = manifest["spec"]["template"]["spec"]["containers"]
        side = {**side, "env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]}
        where = ("spec", "template", "spec", "containers")
        live = api.create(having(manifest, where, [main, side]), "one").must()
        found = must_account(live)

        path = '.spec.template.spec.containers[name="side"].env[name="A"]'
        assert len([node for node in found.places() if node.path == path]) == 2

    def test_of_a_status_and_a_scale(self, api, namespace):
        """Fact: the server books scale and status under their subresources."""
        manifest = having(DEPLOYMENT.named("scaled", namespace), ("spec", "replicas"), 1)
        api.apply(manifest, "one").must()
        api.merge(manifest, {"spec": {"replicas": 3}}, "kubectl", "scale").must()
        status = {"status": {"conditions": [{"type": "Available", "status": "True"}]}}
        api.merge(manifest, status, "kube-controller-manager", "status").must()
        found = must_account(api.get(manifest).must())
        held = {node.path: [h.subresource for h in node.holders] for node in found.places()}

        assert held[".spec.replicas"] == ["scale"]
        assert held['.status.conditions[type="Available"].status'] == ["status"]

    def test_of_an_entry_in_another_version(self, api, namespace):
        """Fact: the server keeps an entry in a version in which the object is not read."""
        manifest = AUTOSCALER.named("old", namespace)
        old = {
            **manifest,
            "apiVersion": "autoscaling/v1",
            "spec": {
                "scaleTargetRef": manifest["spec"]["scaleTargetRef"],
                "maxReplicas": 5,
                "targetCPUUtilizationPercentage": 60,
            },
        }
        api.apply(old, "one").must()
        found = must_account(api.get(manifest).must())

        assert [(gone.path, gone.version) for gone in found.gone] == [
            (".spec.targetCPUUtilizationPercentage", "autoscaling/v1")
        ]
        held = {node.path: node.holders for node in found.places()}
        assert held[".spec.maxReplicas"][0].manager == "one"


def test_whether_a_list_or_map_is_atomic_is_known_from_the_servers_openapi(
    api, sandbox, namespace, capsys
):
    """Fact: the server's OpenAPI says of `limits` and `strategy` what its applies then do."""
    place = {"name": "x", "namespace": namespace}
    limits = {"limits": [{"type": "Container", "default": {"cpu": "1"}}]}
    labels = {"app": "x"}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    rolling = {"selector": {"matchLabels": labels}, "template": pod, "strategy": {}}
    for version, kind, spec in (("v1", "LimitRange", limits), ("apps/v1", "Deployment", rolling)):
        body = {"apiVersion": version, "kind": kind, "metadata": place, "spec": spec}
        api.apply(body, "helm").must()

    def owners(kind: str) -> dict[str, Object]:
        words = (f"{kind}/x", "-o", "json", "-n", namespace)
        told = answer(capsys, "owners", *words, "--kubeconfig", str(sandbox.kubeconfig))
        assert (told.code, told.err) == (0, "")
        return {field["path"]: field for field in json.loads(told.out)["fields"]}

    range_, deployed = map(owners, ("limitrange", "deployment"))

    assert [one["manager"] for one in range_[".spec.limits"]["managers"]] == ["helm"]
    assert not any(path.startswith(".spec.limits[") for path in range_)
    assert deployed[".spec.strategy.type"]["managers"] == []
    assert [one["manager"] for one in deployed[".spec.selector"]["managers"]] == ["helm"]
