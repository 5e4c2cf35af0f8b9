"""What somebody with the operator's own token cannot do, by the policy that the overlays bring."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import anyio
import pytest

from hedgerow.deploy.overlays import parts
from hedgerow_testing.api import Api, Object
from hedgerow_testing.sandbox.cluster import Sandbox
from hedgerow_testing.waiting import eventually
from support.cluster import bluegreens, cronjobs
from support.cluster.bluegreens import World
from support.operator.registered import REGISTRY

pytestmark = pytest.mark.cluster

ACCESS = (
    *("Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding"),
    *("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"),
)
SYSTEM = "nothing in a system namespace"
CHILDREN = "only children of its own resources"
TAKE_OVER = "not make a child of what is there already"
WIDGET = {
    "apiVersion": "example.com/v1",
    "kind": "Widget",
    "name": "demo",
    "uid": "6d34c7a5-6f4f-4d3a-9b52-3d0f7c1f0c55",
    "controller": True,
}


@pytest.fixture(scope="module")
def token(sandbox: Sandbox) -> Iterator[Api]:
    """The connection of whoever has the operator's token."""
    admin = Api(sandbox.kubeconfig)
    bluegreens.prepare(admin)
    cronjobs.prepare(admin)
    made = [
        o
        for p in parts("no-webhook", "none", REGISTRY.limited())  # without the policy on fields
        for o in p.objects
        if o["kind"] in ACCESS
    ]
    for manifest in made:
        admin.apply(manifest, "kubectl").must()
    stolen = anyio.run(sandbox.kubeconfig_for_service_account, "hedgerow-system", "hedgerow")
    api = Api(stolen)
    probe = deployment("default", "probe", {})
    eventually(
        lambda: CHILDREN in str(api.apply(probe, "hedgerow-bluegreen").body),
        what="the policy in force",
    )
    admin.delete(probe)  # made before it was, perhaps
    yield api
    api.close()
    for manifest in made:
        if manifest["kind"] not in ("Namespace", "ServiceAccount"):
            admin.delete(manifest).must()
    admin.close()


@pytest.fixture
def world(sandbox: Sandbox, namespace: str) -> Iterator[World]:
    api = Api(sandbox.kubeconfig)
    yield World(api, namespace)
    api.close()


def deployment(namespace: str, name: str, owner: Object) -> Object:
    labels = {"app": "a"}
    privileged = {"name": "c", "image": "i", "securityContext": {"privileged": True}}
    references = {"ownerReferences": [owner]} if owner else {}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace, **references},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [privileged]}},
        },
    }


def refusal(
    api: Api, manifest: Object, manager: str = "hedgerow-bluegreen", *, force: bool = False
) -> str:
    """Return why an apply is refused; fail where it is not."""
    reply = api.apply(manifest, manager, force=force)
    assert reply.status == 403, reply.body
    return str(reply.body["message"])


def owner(live: Object, **change: Any) -> Object:
    reference = {
        "apiVersion": live["apiVersion"],
        "kind": live["kind"],
        "name": live["metadata"]["name"],
        "uid": live["metadata"]["uid"],
        "controller": True,
    }
    return {**reference, **change}


class TestCreating:
    def test_children_of_a_resource_by_their_names_alone(self, token: Api, world: World):
        """Fact: a policy lets a child pass by its owner reference and name."""
        live = world.apply()
        child = deployment(world.namespace, "demoblue-deployment", owner(live))

        assert token.apply(child, "hedgerow-bluegreen").status == 201

    @pytest.mark.parametrize(
        ("name", "change"),
        [
            ("miner", {}),
            ("demoblue-deployment", {"controller": False}),
            ("demoblue-deployment", {"kind": "CronJob"}),
            ("demoblue-deployment", {"apiVersion": "apps/v1", "kind": "ReplicaSet"}),
            ("demoblue-deployment", {"name": "another"}),
        ],
        ids=["another name", "no controller", "another kind", "a foreign kind", "another owner"],
    )
    def test_nothing_else(self, token: Api, world: World, name: str, change: Object):
        """Fact: a policy reads owner references as the server has them."""
        live = world.apply()
        child = deployment(world.namespace, name, owner(live, **change))

        assert CHILDREN in refusal(token, child)

    @pytest.mark.parametrize("namespace", ["kube-system", "kube-public", "hedgerow-system"])
    def test_nothing_in_a_system_namespace(self, token: Api, world: World, namespace: str):
        """Fact: a policy knows the namespace of a request."""
        live = world.apply()
        child = deployment(namespace, "demoblue-deployment", owner(live))

        assert SYSTEM in refusal(token, child)


class TestChanging:
    @pytest.mark.parametrize(
        "former",
        [{}, WIDGET, {**WIDGET, "kind": "BlueGreen"}],
        ids=["nobody's", "a foreign controller's", "a namesake's of another group"],
    )
    def test_not_what_is_somebody_elses(self, token: Api, world: World, former: Object):
        """Fact: a policy sees that an object was there before, and whose."""
        live = world.apply()
        theirs = deployment(world.namespace, "demoblue-deployment", former)
        world.api.apply(theirs, "helm").must()
        same_uid = {"uid": former["uid"]} if former else {}
        taken = deployment(world.namespace, "demoblue-deployment", owner(live, **same_uid))
        taken["spec"] = {"replicas": 3}

        assert TAKE_OVER in refusal(token, taken, force=True)

    def test_nor_delete_it(self, token: Api, world: World):
        """Fact: a policy sees the object that a deletion is about."""
        theirs = deployment(world.namespace, "theirs", {})
        world.api.apply(theirs, "helm").must()

        reply = token.delete(theirs)

        assert (reply.status, CHILDREN in str(reply.body)) == (403, True)
        assert world.get("Deployment", "theirs")

    def test_an_orphaned_job_is_not_changed(self, token: Api, world: World):
        """Fact: a policy judges an apply that leaves owner and finalizers out."""
        job = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {
                "name": "demo-1",
                "namespace": world.namespace,
                "finalizers": ["example.com/kept"],
            },
            "spec": cronjobs.template()["spec"],
        }
        world.api.apply(job, "hedgerow-cronjob").must()
        identity = {**job, "metadata": {"name": "demo-1", "namespace": world.namespace}}

        changed = {**identity, "spec": {**job["spec"], "suspend": True}}
        assert CHILDREN in refusal(token, changed, "hedgerow-cronjob")
        assert CHILDREN in refusal(token, identity, "hedgerow-cronjob")
        world.api.merge(job, {"metadata": {"finalizers": None}}, "admin").must()
