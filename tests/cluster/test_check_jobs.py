"""A check on a real API server passes by the Job that hedgerow created, and by no other.

Somebody may do everything with Jobs, and nothing else: no BlueGreens, Deployments or Services.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hedgerow_testing.api import Api, Object
from hedgerow_testing.sandbox.cluster import Sandbox
from hedgerow_testing.waiting import eventually
from support.cluster.bluegreens import FIELD_MANAGER, USER, World, pods, prepare
from support.cluster.policies import Impersonated
from support.cluster.rights import grant
from support.operator.running import Operator, RunAs

pytestmark = pytest.mark.cluster

SOMEBODY = "jobber"
RULES = [
    {
        "apiGroups": ["batch"],
        "resources": ["jobs"],
        "verbs": ["get", "list", "create", "patch", "update", "delete"],
    },
    {"apiGroups": ["app.demo.kakao.com"], "resources": ["bluegreens"], "verbs": ["get"]},
]
NOWHERE = {"no": "where"}
DONE: Object = {"template": {"spec": {**pods("t", "true"), "restartPolicy": "Never"}}}
"""The Job of somebody that succeeds at once."""


@pytest.fixture(scope="module")
def operator(nodes_sandbox: Sandbox, run_as: RunAs) -> Operator:
    api = Api(nodes_sandbox.kubeconfig)
    prepare(api)
    grant(api, SOMEBODY, RULES)
    api.close()
    return run_as(nodes_sandbox, USER)


@pytest.fixture
def world(operator: Operator, nodes_sandbox: Sandbox, nodes_namespace: str) -> Iterator[World]:
    api = Api(nodes_sandbox.kubeconfig)
    yield World(api, nodes_namespace)
    api.close()


@pytest.fixture
def somebody(nodes_sandbox: Sandbox) -> Iterator[Api]:
    api = Impersonated(nodes_sandbox.kubeconfig, SOMEBODY)
    yield api
    api.close()


def apply(world: World, **job: object) -> None:
    """Apply a BlueGreen whose check is never scheduled, unless its Job says otherwise."""
    spec = {**pods("t", "test"), "restartPolicy": "Never", "nodeSelector": NOWHERE}
    check: Object = {"backoffLimit": 0, "template": {"spec": spec}, **job}
    world.apply(
        greenSpec=None,
        promotion="WhenChecked",
        checks=[{"name": "real", "timeoutSeconds": 3, "job": {"spec": check}}],
    )


def told(world: World) -> Object:
    """Return what the status says of the check; empty as long as it says nothing."""
    return next(iter(world.status().get("checks", ())), {})


def target(world: World, name: str) -> Object:
    metadata = {"name": name, "namespace": world.namespace}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata}


def forge(world: World, somebody: Api, manager: str) -> str:
    """Somebody makes a Job of the told name, with all marks of ours; return its uid."""
    check, live = told(world), world.get("BlueGreen", "demo") or {}
    owner = {"apiVersion": "app.demo.kakao.com/v1", "kind": "BlueGreen", "name": "demo"}
    job = target(world, check["job"])
    job["metadata"] |= {
        "labels": {"hedgerow.dev/controller": "bluegreen"},
        "annotations": {"app.demo.kakao.com/template": check["template"]},
        "ownerReferences": [{**owner, "uid": live["metadata"]["uid"], "controller": True}],
    }
    body = {**job, "spec": DONE}
    send = somebody.apply if manager == FIELD_MANAGER else somebody.create
    made = eventually(lambda: (reply := send(body, manager)).ok and reply.body, what="it is made")
    return made["metadata"]["uid"]


def complete(world: World, name: str) -> bool:
    job = world.api.get(target(world, name)).body
    conditions = job.get("status", {}).get("conditions", ())
    return any((one["type"], one["status"]) == ("Complete", "True") for one in conditions)


class TestSomebodysJob:
    @pytest.mark.parametrize("when", ["before ours", "after ours has failed"])
    def test_it_passes_no_check_and_has_the_name(
        self, world: World, operator: Operator, somebody: Api, when: str
    ):
        """Fact: the Job controller completes a Job, whoever made it with whatever marks."""
        apply(world)
        name = eventually(lambda: told(world).get("job"), what="the status names the Job")
        if when == "after ours has failed":
            eventually(lambda: world.status()["phase"] == "CheckFailed", what="it fails honestly")
        with operator.frozen():  # They are quicker.
            if when == "after ours has failed":
                somebody.delete(target(world, name)).must()
            uid = forge(world, somebody, "evil")

        eventually(lambda: world.condition("Stalled") == "True/NameTaken")
        eventually(lambda: complete(world, name), what="somebody's Job is done")
        eventually(lambda: "NameTaken" in [event["reason"] for event in world.events()])
        assert (world.status()["phase"], world.selected()) == ("Checking", "")

        live = world.api.get(target(world, name)).must()
        assert live["metadata"]["uid"] == uid
        assert not [e for e in live["metadata"]["managedFields"] if e["manager"] == FIELD_MANAGER]
        somebody.delete(target(world, name)).must()
        # The next one is ours, and fails as the template does.
        eventually(lambda: told(world).get("uid") not in (None, uid), what="ours is created")
        eventually(lambda: world.status()["phase"] == "CheckFailed", what="it fails honestly")
        assert world.selected() == ""

    def test_one_by_the_name_of_our_field_manager_makes_the_check_run_as_another(
        self, world: World, somebody: Api
    ):
        """Fact: anybody who may patch Jobs may apply in our field manager's name.

        It cannot be told from ours whose answer was lost, as by a crash of the operator.
        """
        apply(world)
        name = eventually(lambda: told(world).get("job"), what="the status names the Job")
        uid = forge(world, somebody, FIELD_MANAGER)

        eventually(lambda: world.status()["phase"] == "CheckFailed", what="it fails honestly")
        check = told(world)
        assert check["job"] != name
        assert (check["insteadOf"], check["uid"] != uid) == (uid, True)
        assert world.selected() == ""
        eventually(lambda: world.api.get(target(world, name)).status == 404, what="it is pruned")


class TestEndless:
    @pytest.mark.parametrize(
        "job", [{"suspend": True}, {"managedBy": "example.com/nobody"}], ids=str
    )
    def test_a_job_that_never_ends_has_failed_when_its_time_is_over(
        self, world: World, job: Object
    ):
        """Fact: the Job controller leaves a suspended or foreign-managed Job alone."""
        apply(world, **job)
        eventually(lambda: world.status().get("phase") == "CheckFailed", what="its time is over")
        assert "has not ended in 3 s" in told(world)["message"]

    @pytest.mark.parametrize("count", ["parallelism", "completions"])
    def test_more_than_sixteen_pods_are_refused(self, world: World, count: str):
        """Fact: the server checks the bounds of the definition."""
        with pytest.raises(AssertionError, match="should be less than or equal to 16"):
            apply(world, **{count: 17})
