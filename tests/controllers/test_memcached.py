"""Memcached: what is declared for a size, and what the status says of what is there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from controllers.caches import OTHER, OWN, applied, deployment, memcached, pod, service
from controllers.told import message, observed, says
from hedgerow.controllers.memcached import CONTROLLER, compose, footprint
from hedgerow_schemas.base import View
from hedgerow_schemas.builtin import Deployment, Pod, PodDisruptionBudget, Service
from hedgerow_schemas.memcached import LARGEST, MemcachedSpec
from support.objects.parts import Part

Object = dict[str, Any]


def declared(*there: View, **spec: Any) -> dict[str, Object]:
    """Return the specs of the children, by kind."""
    return applied(compose(memcached(**spec), observed(*there)))


def template(**spec: Any) -> Object:
    return declared(**spec)["Deployment"]["template"]


def container(**spec: Any) -> Object:
    (only,) = template(**spec)["spec"]["containers"]
    return only


PORT = {"name": "memcached", "port": 11211, "protocol": "TCP", "targetPort": 11211}
ANSWERS: Object = {"tcpSocket": {"port": 11211}}
SERVER: Object = {
    "name": "memcached",
    "image": "memcached:1.6-alpine",
    # An option and its value are two words.
    "command": ["memcached", "-m", "64", "-c", "1024", "-o", "modern", "-v"],
    "ports": [{"name": "memcached", "containerPort": 11211, "protocol": "TCP"}],
    # Memory is requested in full, and the processor is not limited.
    "resources": {"requests": {"cpu": "50m", "memory": "128Mi"}, "limits": {"memory": "128Mi"}},
    # A restart empties the cache: that waits for a minute.
    "readinessProbe": ANSWERS | {"periodSeconds": 5, "failureThreshold": 3},
    "livenessProbe": ANSWERS | {"periodSeconds": 10, "failureThreshold": 6},
    "securityContext": {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
    },
}
PODS: Object = {
    "automountServiceAccountToken": False,
    "containers": [SERVER],
    # Nothing that the restricted standard forbids is left open.
    "securityContext": {
        "runAsNonRoot": True,
        "runAsUser": 11211,
        "runAsGroup": 11211,
        "seccompProfile": {"type": "RuntimeDefault"},
    },
    # They keep apart as far as there are nodes; those of an older template do not count.
    "topologySpreadConstraints": [
        {
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": OWN},
            "matchLabelKeys": ["pod-template-hash"],
        }
    ],
}
CHILDREN: Object = {
    # The labels are those of the original operator; a new pod comes before an old one goes.
    "Deployment": {
        "replicas": 3,
        "selector": {"matchLabels": OWN},
        "strategy": {
            "type": "RollingUpdate",
            "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0},
        },
        "template": {"metadata": {"labels": OWN}, "spec": PODS},
    },
    "Service": {"clusterIP": "None", "ports": [PORT], "selector": OWN},
    # Evictions take one server at a time, and broken ones freely.
    "PodDisruptionBudget": {
        "maxUnavailable": 1,
        "unhealthyPodEvictionPolicy": "AlwaysAllow",
        "selector": {"matchLabels": OWN},
    },
}
WORDS = ["memcached", "-m", "128", "-c", "2048", "-o", "modern", "-v"]
RESOURCES = {"requests": {"cpu": 1, "memory": "1024Mi"}, "claims": [{"name": "fast"}]}
AFFINITY = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}}
TOLERATIONS = [{"key": "cache", "operator": "Exists", "effect": "NoSchedule"}, {"key": "b"}]


class TestChildren:
    def test_they_are_these(self):
        assert declared() == CHILDREN

    @pytest.mark.parametrize(("size", "budget"), [(0, 0), (1, 0), (2, 1), (9, 1), (LARGEST, 1)])
    def test_a_size_is_so_many_replicas_and_from_two_on_a_budget(self, size, budget):
        found = declared(size=size)

        assert found["Deployment"] == CHILDREN["Deployment"] | {"replicas": size}
        assert len(found) == 2 + budget

    @pytest.mark.parametrize(
        ("spec", "changes"),
        [
            ({"memory": 128, "maxConnections": 2048}, {"command": WORDS}),
            ({"image": "example/memcached:2"}, {"image": "example/memcached:2"}),
            ({"resources": RESOURCES}, {"resources": RESOURCES}),
            ({"resources": {}}, {"resources": {}}),
        ],
    )
    def test_a_container_is_what_the_spec_says(self, spec, changes):
        found = container(**spec)
        if "memory" in spec:
            found["resources"] = SERVER["resources"]  # TestFootprint has the numbers

        assert found == SERVER | changes

    @pytest.mark.parametrize(
        ("spec", "changes"),
        [
            ({"affinity": AFFINITY}, {"affinity": AFFINITY}),
            ({"affinity": {}}, {"affinity": {}}),
            ({"tolerations": TOLERATIONS}, {"tolerations": TOLERATIONS}),
            ({"tolerations": []}, {}),
            ({"priorityClassName": "high"}, {"priorityClassName": "high"}),
        ],
    )
    def test_pods_have_as_it_was_written_where_they_may_run(self, spec, changes):
        assert template(**spec)["spec"] == PODS | changes


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
]


class TestFootprint:
    @pytest.mark.parametrize("case", FOOTPRINTS, ids=lambda case: case.reason)
    def test_it_is_memory_and_headroom_and_connections(self, case):
        spec = MemcachedSpec(size=1, memory=case.memory, max_connections=case.connections)

        assert footprint(spec) == case.given
        resources = container(memory=case.memory, maxConnections=case.connections)["resources"]
        assert resources["requests"]["memory"] == resources["limits"]["memory"] == case.given


@dataclass(frozen=True)
class Nodes:
    """Pods that are there, and which of them are nodes."""

    reason: str
    pods: tuple[Pod, ...]
    nodes: tuple[str, ...] = ()
    labels: Object | None = None
    """By which the live Deployment selects."""


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
    Nodes("by the live selector", (pod("a", {**OWN, **OTHER}), pod("b", OTHER), pod("c", OWN)),
          ("a", "b"), OTHER),
]  # fmt: skip


class TestStatus:
    @pytest.mark.parametrize("case", NODES, ids=lambda case: case.reason)
    def test_nodes_are_the_deployments_pods_the_oldest_first_and_then_by_name(self, case):
        there = deployment(labels=case.labels)

        assert compose(memcached(), observed(there, *case.pods)).status.nodes == case.nodes

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


class TestPodsOfOthers:
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
        assert (relation.kind, relation.select.labels) == (Pod, "memcached_cr")

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


STUCK = pod("a", containerStatuses=[{"state": {"waiting": {"reason": "ErrImagePull"}}}])
HEALTH = [
    Health("nothing yet", 3, (), "False/Unavailable", "it has no Deployment of its own yet"),
    Health("all up", 3, (deployment(),), "True/Serving", "every node is available"),
    Health("one is missing, and it says why", 3, (deployment(up=2), STUCK), "False/Unavailable",
           "2 of 3 replicas are available, pod a: ErrImagePull"),
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


@dataclass(frozen=True)
class Found:
    """What is found of the original operator's, and what is said to stay as it is."""

    reason: str
    there: tuple[View, ...]
    says: Part | None = None


ADDRESSED = service("10.96.0.7")
OTHERWISE = deployment(labels=OTHER)
# Each field, how to have it otherwise, and what that costs.
OF_SERVICE = (
    "Service/cache: .spec.clusterIP is 10.96.0.7",
    "`kubectl delete service cache -n ns`",
    "clients lose that address",
)
OF_DEPLOYMENT = (
    'Deployment/cache: .spec.selector is {"matchLabels": {"app": "cache"}}',
    "`kubectl delete deployment cache -n ns`",
    "empties the cache",
)
FOUND = [
    Found("nothing", ()),
    Found("our own", (deployment(), service())),
    Found("a Service that has no address yet", (service(""),)),
    Found("a Service with an address", (deployment(), ADDRESSED), Part(*OF_SERVICE)),
    Found("a Deployment that selects otherwise", (OTHERWISE, service()), Part(*OF_DEPLOYMENT)),
    Found("both", (OTHERWISE, ADDRESSED), Part(*OF_DEPLOYMENT, *OF_SERVICE)),
]


class TestOfTheOriginal:
    """Objects of the original operator are met as they are, and said to be so."""

    @pytest.mark.parametrize("case", FOUND, ids=lambda case: case.reason)
    def test_what_stays_is_named_and_a_cache_that_serves_is_ready(self, case):
        desired = compose(memcached(), observed(*case.there))

        assert says(desired, "Degraded") == ("True/Immutable" if case.says else "")
        assert case.says is None or message(desired, "Degraded") == case.says
        assert says(desired) == ("True/Serving" if len(case.there) == 2 else "False/Unavailable")

    def test_a_live_selector_is_declared_wherever_pods_are_selected(self):
        fields = declared(OTHERWISE)
        pods = fields["Deployment"]["template"]

        assert fields["Deployment"]["selector"] == {"matchLabels": OTHER}
        assert fields["PodDisruptionBudget"]["selector"] == {"matchLabels": OTHER}
        assert fields["Service"]["selector"] == OTHER
        (constraint,) = pods["spec"]["topologySpreadConstraints"]
        assert constraint["labelSelector"] == {"matchLabels": OTHER}
        # So they are found, and watched.
        assert pods["metadata"]["labels"] == {**OWN, **OTHER}
        assert compose(memcached(), observed(OTHERWISE)).status.selector == "app=cache"

    def test_one_of_expressions_alone_leaves_the_service_our_labels(self):
        live = dict(deployment().raw)
        chosen = {"matchExpressions": [{"key": "app", "operator": "In", "values": ["cache"]}]}
        there = Deployment({**live, "spec": {**live["spec"], "selector": chosen}})
        desired = compose(memcached(), observed(there, pod("a", OTHER)))
        fields = applied(desired)

        assert fields["Deployment"]["selector"] == chosen
        assert fields["Deployment"]["template"]["metadata"]["labels"] == OWN
        assert fields["Service"]["selector"] == OWN
        assert (desired.status.nodes, desired.status.selector) == (("a",), "app in (cache)")

    @pytest.mark.parametrize("address", ["10.96.0.7", "", "None"])
    def test_an_address_is_left_undeclared_and_all_else_is_declared(self, address):
        usual = CHILDREN["Service"]
        kept = {"ports": [PORT], "selector": OWN}

        assert declared(service(address)) == CHILDREN | {
            "Service": kept if "." in address else usual
        }


def test_it_owns_deployments_services_and_budgets_and_nothing_else():
    assert CONTROLLER.name == "memcached"
    assert CONTROLLER.owns == (Deployment, Service, PodDisruptionBudget)
