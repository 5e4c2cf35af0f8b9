from __future__ import annotations

import pytest

from hedgerow_schemas.builtin import (
    LONGEST_TEXT,
    ConfigMap,
    Deployment,
    HorizontalPodAutoscaler,
    Namespace,
    Pod,
    Secret,
    Service,
    StatefulSet,
)

HASH = "6b474476c4"


def pod(**status):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"demoblue-deployment-{HASH}-nrjsm",
            "namespace": "shop",
            "uid": "u1",
            "resourceVersion": "7",
            "labels": {"pod-template-hash": HASH},
            "annotations": {"dropped": "yes"},
            "ownerReferences": [
                {"kind": "Config", "name": "other"},
                {
                    "kind": "ReplicaSet",
                    "name": f"demoblue-deployment-{HASH}",
                    "uid": "r1",
                    "controller": True,
                },
            ],
        },
        "spec": {"containers": [{"name": "blue"}]},
        "status": {"phase": "Running", **status},
    }


def waiting(reason):
    return {"name": "c", "state": {"waiting": {"reason": reason}}, "restartCount": 3}


RUNNING = {"name": "c", "state": {"running": {}}}


ROLLOUT = {
    "metadata": {"generation": 4},
    "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "demo"}}},
    "status": {
        "observedGeneration": 3, "replicas": 5, "updatedReplicas": 2, "readyReplicas": 4,
        "availableReplicas": 1,
    },
}  # fmt: skip
AUTOSCALED = {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}
GOING = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
READ = [
    (Service, {"spec": {"selector": {"app": "demo"}}}, {"selector": {"app": "demo"}}),
    (Service, {"spec": {}}, {"selector": {}, "cluster_ip": ""}),
    (Service, {"spec": {"clusterIP": "None"}}, {"cluster_ip": "None"}),
    (Service, {"spec": {"clusterIP": None}}, {"cluster_ip": ""}),
    (Deployment, ROLLOUT, {
        "generation": 4, "observed_generation": 3, "replicas": 3, "status_replicas": 5,
        "updated_replicas": 2, "available_replicas": 1, "ready_replicas": 4,
        "selector": {"matchLabels": {"app": "demo"}},
    }),
    (StatefulSet, {"spec": {"replicas": 3}}, {"replicas": 3}),
    (StatefulSet, {}, {"replicas": 0}),
    (HorizontalPodAutoscaler, {"spec": AUTOSCALED}, {"target": ("Deployment", "web")}),
    (HorizontalPodAutoscaler, {}, {"target": ("", "")}),
    (ConfigMap, {"data": {"a": "b"}}, {"data": {"a": "b"}}),
    (ConfigMap, {}, {"data": {}}),
    (Secret, {"data": {"a": "b"}}, {"data": {"a": "b"}}),
    (Secret, {}, {"data": {}, "immutable": False}),
    (Secret, {"type": "Opaque", "immutable": True}, {"type": "Opaque", "immutable": True}),
    (Namespace, {"metadata": GOING}, {"terminating": True}),
    (Namespace, {"metadata": {}}, {"terminating": False}),
]  # fmt: skip


@pytest.mark.parametrize(("view", "obj", "told"), READ)
def test_what_is_read_of_an_object(view, obj, told):
    assert {name: getattr(view(obj), name) for name in told} == told


@pytest.mark.parametrize(
    ("conditions", "status"),
    [
        ([{"type": "Progressing", "status": "True"}], ""),
        ([{"type": "Available", "status": "False"}], "False"),
        (["odd", {"type": "Available", "status": "True"}], "True"),
        (None, ""),
    ],
    ids=["another", "false", "beside an oddity", "no conditions"],
)
def test_a_condition_is_its_status_or_empty(conditions, status):
    assert Deployment({"status": {"conditions": conditions}}).condition("Available") == status


NOT_SCHEDULED = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "Unschedulable",
    "message": "no node",
}
NOT_READY = {"type": "Ready", "status": "False", "reason": "Gates", "message": "a gate"}


class TestPod:
    def test_a_pod_is_ready_by_its_condition(self):
        ready = Pod(pod(conditions=[{"type": "Ready", "status": "True"}]))

        assert (ready.phase, ready.ready) == ("Running", True)
        assert not Pod(pod()).ready

    @pytest.mark.parametrize(
        ("status", "reason"),
        [
            ({}, ""),
            ({"containerStatuses": [RUNNING]}, ""),
            ({"containerStatuses": [RUNNING, waiting("ErrImagePull")]}, "ErrImagePull"),
            ({"containerStatuses": ["odd"]}, ""),
            (
                {
                    "containerStatuses": [waiting("PodInitializing")],
                    "initContainerStatuses": [waiting("CrashLoopBackOff")],
                },
                "CrashLoopBackOff",
            ),
        ],
        ids=["no status", "running", "second waits", "ill-typed", "init containers first"],
    )
    def test_the_first_reason_to_wait_is_given(self, status, reason):
        assert Pod(pod(**status)).waiting_reason == reason

    @pytest.mark.parametrize(
        ("status", "why"),
        [
            ({}, ""),
            ({"conditions": [NOT_SCHEDULED, NOT_READY]}, "no node"),
            ({"conditions": [{**NOT_SCHEDULED, "message": ""}]}, "Unschedulable"),
            ({"conditions": [{**NOT_SCHEDULED, "status": "True"}]}, ""),
            ({"conditions": [NOT_READY], "containerStatuses": [waiting("A")]}, "A"),
            ({"conditions": [NOT_READY]}, "a gate"),
            ({"conditions": [{**NOT_READY, "message": ""}]}, "Gates"),
            ({"conditions": [{**NOT_READY, "status": "True"}]}, ""),
            ({"conditions": [NOT_READY], "phase": "Failed"}, ""),
            ({"conditions": [NOT_READY], "phase": "Succeeded"}, ""),
        ],
    )
    def test_why_it_is_not_ready_is_what_its_writers_say(self, status, why):
        live = pod(**status)

        assert Pod(live).why_not_ready == why
        assert Pod(Pod.reduced(live)).why_not_ready == why

    @pytest.mark.parametrize("said", [NOT_SCHEDULED, NOT_READY], ids=lambda said: said["type"])
    def test_a_reduced_pod_keeps_the_beginning_of_a_long_text(self, said):
        long, cut = ({"reason": "x" * n, "message": "y" * n} for n in (9_000, LONGEST_TEXT))
        kept = Pod.reduced(pod(conditions=[said | long]))["status"]["conditions"]

        assert kept == [said | cut]

    @pytest.mark.parametrize(
        ("phase", "going", "active"),
        [
            ("Pending", None, True),
            ("Running", None, True),
            ("Unknown", None, True),
            ("Succeeded", None, False),
            ("Failed", None, False),
            ("Running", "2026-01-01T00:00:00Z", False),
        ],
    )
    def test_what_has_ended_or_is_going_counts_as_no_replica(self, phase, going, active):
        live = pod(phase=phase)
        live["metadata"]["deletionTimestamp"] = going

        assert Pod(live).active is active
        assert Pod(Pod.reduced(live)).active is active

    def test_the_deployment_is_the_replica_sets_name_without_the_hash(self):
        assert Pod(pod()).deployment == "demoblue-deployment"

    @pytest.mark.parametrize(
        ("labels", "owners"),
        [
            ({"pod-template-hash": HASH}, []),
            ({}, [{"kind": "ReplicaSet", "name": "web-"}]),
            ({"pod-template-hash": "other"}, [{"kind": "ReplicaSet", "name": f"web-{HASH}"}]),
            ({"pod-template-hash": HASH}, [{"kind": "Job", "name": f"web-{HASH}"}]),
        ],
        ids=["no owner", "no hash", "another hash", "another kind"],
    )
    def test_a_pod_of_no_deployment_names_none(self, labels, owners):
        live = pod()
        live["metadata"] |= {"labels": labels, "ownerReferences": owners}

        assert Pod(live).deployment == ""

    def test_a_reduced_pod_reads_like_the_whole_one(self):
        whole = pod(
            conditions=[
                {"type": "PodScheduled", "status": "True"},
                {"type": "Ready", "status": "True"},
            ],
            containerStatuses=[RUNNING, waiting("CrashLoopBackOff")],
            podIP="10.0.0.1",
        )
        whole["spec"]["nodeName"] = "node-1"
        whole["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
        reduced = Pod.reduced(whole)

        assert Pod(reduced).node_name == "node-1"
        for read in (
            *("name", "namespace", "uid", "created", "address", "phase", "ready"),
            *("waiting_reason", "deployment"),
        ):
            assert getattr(Pod(reduced), read) == getattr(Pod(whole), read) != ""
        assert reduced["metadata"]["resourceVersion"] == "7"

    def test_a_reduced_pod_holds_nothing_else(self):
        reduced = Pod.reduced(pod(containerStatuses=[RUNNING], hostIP="10.0.0.1"))

        assert "spec" not in reduced
        assert "annotations" not in reduced["metadata"]
        assert reduced["status"] == {
            "phase": "Running",
            "conditions": [],
            "initContainerStatuses": [],
            "containerStatuses": [{}],
        }

    def test_reducing_an_empty_object_gives_an_empty_reading(self):
        reduced = Pod(Pod.reduced({}))

        assert (reduced.name, reduced.ready, reduced.deployment) == ("", False, "")
