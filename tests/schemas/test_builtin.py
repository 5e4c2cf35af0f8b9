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


class TestService:
    def test_the_selector_is_read(self):
        assert Service({"spec": {"selector": {"app": "demo"}}}).selector == {"app": "demo"}

    def test_a_service_without_selector_selects_nothing(self):
        assert Service({"spec": {}}).selector == {}

    @pytest.mark.parametrize(
        ("spec", "address"), [({"clusterIP": "None"}, "None"), ({}, ""), ({"clusterIP": None}, "")]
    )
    def test_the_address_is_read_and_a_headless_one_says_none(self, spec, address):
        assert Service({"spec": spec}).cluster_ip == address


class TestDeployment:
    def test_a_rollout_is_read_from_spec_and_status(self):
        deployment = Deployment(
            {
                "metadata": {"generation": 4},
                "spec": {"replicas": 3},
                "status": {
                    "observedGeneration": 3,
                    "replicas": 5,
                    "updatedReplicas": 2,
                    "readyReplicas": 4,
                    "availableReplicas": 1,
                },
            }
        )

        assert (deployment.generation, deployment.observed_generation) == (4, 3)
        assert (deployment.replicas, deployment.status_replicas) == (3, 5)
        assert (deployment.updated_replicas, deployment.available_replicas) == (2, 1)
        assert deployment.ready_replicas == 4

    def test_the_selector_is_read(self):
        selector = {"matchLabels": {"app": "demo"}}

        assert Deployment({"spec": {"selector": selector}}).selector == selector

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
    def test_a_condition_is_its_status_or_empty(self, conditions, status):
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


class TestSmallViews:
    def test_a_stateful_set_has_a_number_of_replicas(self):
        assert StatefulSet({"spec": {"replicas": 3}}).replicas == 3
        assert StatefulSet({}).replicas == 0

    def test_an_autoscaler_tells_what_it_scales(self):
        reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
        autoscaler = HorizontalPodAutoscaler({"spec": {"scaleTargetRef": reference}})

        assert autoscaler.target == ("Deployment", "web")
        assert HorizontalPodAutoscaler({}).target == ("", "")

    @pytest.mark.parametrize("kind", [ConfigMap, Secret])
    def test_data_is_read_by_key(self, kind):
        assert kind({"data": {"a": "b"}}).data == {"a": "b"}
        assert kind({}).data == {}

    def test_a_secret_has_a_type_and_may_be_immutable(self):
        assert Secret({"type": "Opaque", "immutable": True}).type == "Opaque"
        assert Secret({"immutable": True}).immutable
        assert not Secret({}).immutable

    def test_a_namespace_that_is_being_deleted_is_terminating(self):
        assert Namespace({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}).terminating
        assert not Namespace({"metadata": {}}).terminating
