"""Memcached: what is declared for a size, and what the status says of what is there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from controllers.caches import (
    OWN,
    applied,
    deployment,
    memcached,
    message,
    observed,
    pod,
    says,
    service,
)
from hedgerow.controllers.memcached import CONTROLLER, compose, footprint
from hedgerow_schemas.base import View
from hedgerow_schemas.builtin import Deployment, Pod, PodDisruptionBudget, Service
from hedgerow_schemas.memcached import LARGEST, MemcachedSpec

Object = dict[str, Any]


def template(**spec: Any) -> Object:
    return applied(compose(memcached(**spec), observed()))["Deployment"]["template"]


def container(**spec: Any) -> Object:
    (only,) = template(**spec)["spec"]["containers"]
    return only


class TestDeployment:
    def test_it_has_as_many_replicas_as_the_size_says(self):
        for size in (0, 1, 3, LARGEST):
            assert applied(compose(memcached(size), observed()))["Deployment"]["replicas"] == size

    def test_its_pods_have_the_labels_of_the_original_operator_and_it_selects_by_them(self):
        fields = applied(compose(memcached(), observed()))["Deployment"]

        assert fields["selector"] == {"matchLabels": OWN}
        assert fields["template"]["metadata"]["labels"] == OWN

    def test_an_option_and_its_value_are_two_words(self):
        assert container(memory=128, maxConnections=2048)["command"] == [
            *("memcached", "-m", "128", "-c", "2048", "-o", "modern", "-v")
        ]

    def test_the_image_is_that_of_the_spec(self):
        assert container()["image"] == "memcached:1.6-alpine"
        assert container(image="example/memcached:2")["image"] == "example/memcached:2"

    def test_memory_is_requested_in_full_and_the_processor_is_not_limited(self):
        resources = container()["resources"]

        assert resources["requests"] == {"cpu": "50m", "memory": "128Mi"}
        assert resources["limits"] == {"memory": "128Mi"}

    def test_both_probes_open_a_connection_and_the_restarting_one_is_patient(self):
        ready, live = container()["readinessProbe"], container()["livenessProbe"]

        assert ready["tcpSocket"] == live["tcpSocket"] == {"port": 11211}
        assert ready["periodSeconds"] * ready["failureThreshold"] < 30
        assert live["periodSeconds"] * live["failureThreshold"] >= 60

    def test_nothing_that_the_restricted_standard_forbids_is_left_open(self):
        assert template()["spec"]["securityContext"] == {
            "runAsNonRoot": True,
            "runAsUser": 11211,
            "runAsGroup": 11211,
            "seccompProfile": {"type": "RuntimeDefault"},
        }
        assert container()["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        }
        assert template()["spec"]["automountServiceAccountToken"] is False

    def test_its_pods_keep_apart_as_far_as_there_are_nodes(self):
        (constraint,) = template()["spec"]["topologySpreadConstraints"]

        assert constraint == {
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": OWN},
            "matchLabelKeys": ["pod-template-hash"],
        }

    def test_a_new_pod_comes_before_an_old_one_goes(self):
        assert applied(compose(memcached(), observed()))["Deployment"]["strategy"] == {
            "type": "RollingUpdate",
            "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0},
        }


@dataclass(frozen=True)
class Footprint:
    """What a container is given for what the spec says."""

    reason: str
    memory: int
    connections: int
    given: str


FOOTPRINTS = [
    Footprint("the default", 64, 1024, "128Mi"),
    Footprint("the least there can be", 2, 1, "51Mi"),
    Footprint("the last with the least headroom", 192, 64, "241Mi"),
    Footprint("from there on it is a quarter", 196, 64, "246Mi"),
    Footprint("connections are counted to the next MiB", 196, 65, "247Mi"),
    Footprint("much is spelled as the server spells it", 1024, 16384, "1536Mi"),
    Footprint("so much that a larger unit fits", 1632, 512, "2Gi"),
    Footprint("the most there can be", LARGEST, LARGEST, "2717908990Mi"),
]  # fmt: skip


AFFINITY = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}}
RESOURCES = {"requests": {"cpu": 1, "memory": "1024Mi"}, "claims": [{"name": "fast"}]}
TOLERATIONS = [{"key": "cache", "operator": "Exists", "effect": "NoSchedule"}, {"key": "b"}]


class TestPassedThrough:
    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("affinity", AFFINITY),
            ("affinity", {}),
            ("tolerations", TOLERATIONS),
            ("priorityClassName", "high"),
        ],
    )
    def test_the_pods_have_it_as_it_was_written_and_nothing_else_changes(self, field, value):
        without, given = template(), template(**{field: value})

        assert field not in without["spec"]
        assert given["spec"].pop(field) == value
        assert given == without

    def test_an_empty_list_declares_nothing(self):
        assert template(tolerations=[]) == template()

    @pytest.mark.parametrize("value", [RESOURCES, {}])
    def test_resources_stand_instead_of_those_that_follow_from_the_memory(self, value):
        assert container(resources=value) == {**container(), "resources": value}


class TestFootprint:
    @pytest.mark.parametrize("case", FOOTPRINTS, ids=lambda case: case.reason)
    def test_it_is_memory_and_headroom_and_connections(self, case):
        spec = MemcachedSpec(size=1, memory=case.memory, max_connections=case.connections)

        assert footprint(spec) == case.given


class TestService:
    def test_it_is_headless_on_the_port_of_memcached(self):
        assert applied(compose(memcached(), observed()))["Service"] == {
            "clusterIP": "None",
            "ports": [{"name": "memcached", "port": 11211, "protocol": "TCP", "targetPort": 11211}],
            "selector": OWN,
        }


class TestBudget:
    @pytest.mark.parametrize(("size", "there"), [(0, False), (1, False), (2, True), (9, True)])
    def test_it_is_there_from_two_servers_on(self, size, there):
        assert ("PodDisruptionBudget" in applied(compose(memcached(size), observed()))) is there

    def test_evictions_take_one_server_at_a_time_and_broken_ones_freely(self):
        assert applied(compose(memcached(), observed()))["PodDisruptionBudget"] == {
            "maxUnavailable": 1,
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
            "selector": {"matchLabels": OWN},
        }


@dataclass(frozen=True)
class Nodes:
    """Pods that are there, and which of them are nodes."""

    reason: str
    pods: tuple[Pod, ...]
    nodes: tuple[str, ...] = ()


EARLIER, LATER = "2026-01-01T10:59:59Z", "2026-01-01T11:00:01Z"
READY = [{"type": "Ready", "status": "True"}]
NODES = [
    Nodes("none", ()),
    Nodes("in any order", (pod("c"), pod("a"), pod("b")), ("a", "b", "c")),
    Nodes("of different ages",
          (pod("a", created=LATER), pod("c"), pod("d", created=EARLIER), pod("b")),
          ("d", "b", "c", "a")),
    Nodes("waiting or running", (pod("a", phase="Pending"), pod("b", phase="Running")), ("a", "b")),
    Nodes("ended", (pod("a", phase="Failed"), pod("b", phase="Succeeded"), pod("c")), ("c",)),
    Nodes("being deleted", (pod("a", going=True), pod("b")), ("b",)),
    Nodes("of another Deployment", (pod("a", owner="other-5f"), pod("b")), ("b",)),
    Nodes("of no Deployment", (pod("a", owner=""), pod("b")), ("b",)),
    Nodes("of other labels", (pod("a", {"memcached_cr": "cache"}), pod("b")), ("b",)),
    Nodes("with labels to spare", (pod("a", {**OWN, "more": "x"}),), ("a",)),
]  # fmt: skip


class TestNodes:
    @pytest.mark.parametrize("case", NODES, ids=lambda case: case.reason)
    def test_they_are_the_deployments_pods_the_oldest_first_and_then_by_name(self, case):
        assert compose(memcached(), observed(deployment(), *case.pods)).status.nodes == case.nodes

    def test_none_is_an_empty_list_never_null(self):
        wire = compose(memcached(), observed()).status.wire()

        assert wire["nodes"] == []
        assert (wire["replicas"], wire["readyReplicas"]) == (0, 0)

    def test_the_endpoints_are_the_dns_names_of_the_ready_ones_in_the_same_order(self):
        pods = (
            pod("a", created=LATER, podIP="10.0.0.1", conditions=READY),
            pod("b", podIP="10.0.0.12", conditions=READY),
            pod("c", podIP="fd00::1:2", conditions=READY),
            pod("e", podIP="10.0.0.3"),
            pod("f", conditions=READY),
        )
        reduced = [Pod(Pod.reduced(dict(each.raw))) for each in pods]

        status = compose(memcached(), observed(deployment(), service(), *reduced)).status

        assert status.nodes == ("b", "c", "e", "f", "a")
        assert status.endpoints == (
            "10-0-0-12.cache.ns.svc",
            "fd00--1-2.cache.ns.svc",
            "10-0-0-1.cache.ns.svc",
        )
        assert compose(memcached(), observed(deployment(), *reduced)).status.endpoints == ()

    def test_numbers_and_selector_are_what_kubectl_scale_and_autoscalers_read(self):
        status = compose(memcached(), observed(deployment(3, up=2))).status

        assert (status.replicas, status.ready_replicas) == (3, 2)
        assert status.selector == "app=memcached,memcached_cr=cache"

    @pytest.mark.parametrize(
        ("labels", "keys"),
        [
            ({"memcached_cr": "cache"}, (("ns", "cache"),)),
            ({"memcached_cr": ""}, ()),
            ({"app": "memcached"}, ()),
            (None, ()),
        ],
    )
    def test_a_pod_concerns_the_memcached_that_its_label_names(self, labels, keys):
        (relation,) = CONTROLLER.relates
        view = Pod({"metadata": {"name": "p", "namespace": "ns", "labels": labels}})

        assert relation.of(view) == keys
        assert (relation.kind, relation.labels) == (Pod, "memcached_cr")

    def test_pods_are_reduced_on_arrival(self):
        (relation,) = CONTROLLER.relates
        whole = {"metadata": {"name": "p", "managedFields": [{}]}, "spec": {"containers": []}}

        assert {"spec", "managedFields"}.isdisjoint(relation.reduce(whole))
        assert "managedFields" not in relation.reduce(whole)["metadata"]


@dataclass(frozen=True)
class Health:
    """One situation, and what Ready says about it."""

    reason: str
    size: int
    there: tuple[View, ...]
    ready: str
    message: str


HEALTH = [
    Health("nothing yet", 3, (), "False/Unavailable", "it has no Deployment of its own yet"),
    Health("all up", 3, (deployment(),), "True/Serving", "every node is available"),
    Health("one is missing, and it says why", 3,
           (deployment(up=2),
            pod("a", containerStatuses=[{"state": {"waiting": {"reason": "ErrImagePull"}}}])),
           "False/Unavailable", "2 of 3 replicas are available, pod a: ErrImagePull"),
    Health("none wanted, none there", 0, (deployment(0),), "True/ScaledToZero", "the size is 0"),
    Health("none wanted, nothing yet", 0, (), "False/Unavailable",
           "it has no Deployment of its own yet"),
    Health("somebody scaled it to zero", 3, (deployment(0),), "False/Unavailable",
           "it is scaled to zero"),
]  # fmt: skip


class TestHealth:
    @pytest.mark.parametrize("case", HEALTH, ids=lambda case: case.reason)
    def test_ready_is_what_the_deployment_says(self, case):
        desired = compose(memcached(case.size), observed(service(), *case.there))

        assert (says(desired), message(desired)) == (case.ready, case.message)
        assert says(desired, "Degraded") == ""


def test_it_owns_deployments_services_and_budgets_and_nothing_else():
    assert CONTROLLER.name == "memcached"
    assert CONTROLLER.owns == (Deployment, Service, PodDisruptionBudget)
