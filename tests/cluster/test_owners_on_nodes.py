"""The owners of what controllers and nodes wrote: each leaf once, each holding of an entry told."""

from __future__ import annotations

import pytest

from hedgerow_testing.api import Api
from hedgerow_testing.waiting import eventually
from support.objects.accounts import accounted
from support.objects.manifests import SERVICE
from support.objects.workloads import DEPLOYMENT

pytestmark = pytest.mark.cluster


def test_every_leaf_of_every_object_that_controllers_wrote_to(nodes_sandbox, nodes_namespace):
    """Fact: the entries that controllers and nodes leave."""
    api = Api(nodes_sandbox.kubeconfig)
    for case in (DEPLOYMENT, SERVICE):
        api.apply(case.named("x", nodes_namespace), "one").must()
    deployment = DEPLOYMENT.named("x", nodes_namespace)
    eventually(lambda: "availableReplicas" in api.get(deployment).must()["status"])
    for group, plural in (("", "endpoints"), ("discovery.k8s.io", "endpointslices")):
        root = f"/apis/{group}" if group else "/api"
        path = f"{root}/v1/namespaces/{nodes_namespace}/{plural}"
        eventually(lambda path=path: api.raw("GET", path).must()["items"], what=path)
    events = f"/api/v1/namespaces/{nodes_namespace}/events"
    eventually(lambda: api.raw("GET", events).must()["items"], what=events)
    kinds = accounted(api)
    api.close()

    assert {
        "EndpointSlice", "Endpoints", "Event", "Node", "Pod", "ReplicaSet", "ServiceAccount",
    } <= set(kinds)  # fmt: skip
