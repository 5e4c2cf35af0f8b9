"""Worlds: generated resources and observations for every controller.

A new controller adds a `Subject` with a strategy of its own; the properties come for free.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from hypothesis import strategies as st

from controllers.subject import Subject
from hedgerow.contract import Controller
from hedgerow.controllers import guestbook, memcached
from hedgerow.controllers.bluegreen import controller as bluegreen
from hedgerow.controllers.cronjob import controller
from hedgerow.controllers.cronjob.starts import SCHEDULED_AT
from hedgerow_schemas.base import Resource
from hedgerow_schemas.bluegreen import LONGEST_NAME, BlueGreen
from hedgerow_schemas.cronjob import CronJob
from hedgerow_schemas.guestbook import Guestbook
from hedgerow_schemas.memcached import LARGEST, Memcached

Object = dict[str, Any]

labels = st.from_regex(r"[a-z]([-a-z0-9]{0,45}[a-z0-9])?", fullmatch=True).filter(
    lambda name: len(name) <= LONGEST_NAME
)
containers = st.fixed_dictionaries(
    {"name": st.sampled_from(["c", "main"]), "image": st.sampled_from(["example/echo:1", "x"])},
    optional={
        "args": st.lists(st.sampled_from(["-v", "--port=80"]), min_size=1, max_size=2),
        "resources": st.sampled_from(
            [{"limits": {"cpu": "1000m"}}, {"requests": {"memory": "1024Mi"}}]
        ),
        "env": st.sampled_from(
            [
                [{"name": "A", "value": "1"}],
                [{"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
            ]
        ),
        "ports": st.sampled_from(
            [[{"containerPort": 80, "protocol": "TCP"}], [{"containerPort": 80}]]
        ),
    },
)
pod_specs = st.fixed_dictionaries(
    {"containers": st.lists(containers, min_size=1, max_size=1)},
    optional={
        "terminationGracePeriodSeconds": st.integers(0, 60),
        "volumes": st.just([{"name": "scratch", "emptyDir": {}}]),
        "securityContext": st.just({}),
        "nodeSelector": st.just({"disk": "ssd"}),
    },
)
WEB: Object = {"name": "web", "containerPort": 8080, "protocol": "TCP"}
ports = {"port": st.integers(1, 65535), "name": st.sampled_from(["http", "admin", "metrics"])}
port_lists = st.lists(
    st.one_of(
        st.fixed_dictionaries(
            ports,
            optional={
                "protocol": st.sampled_from(["TCP", "UDP"]),
                "targetPort": st.integers(1, 65535),
            },
        ),
        st.fixed_dictionaries({**ports, "targetPort": st.just(WEB["name"])}),
    ),
    min_size=1,
    max_size=3,
    unique_by=(lambda port: port["name"], lambda port: port["port"]),
)


checks = st.fixed_dictionaries(
    {
        "name": st.just("orders"),
        "job": pod_specs.map(
            lambda pod: {"spec": {"template": {"spec": {**pod, "restartPolicy": "Never"}}}}
        ),
    }
)
switches = st.one_of(
    st.fixed_dictionaries(
        {"promotion": st.just("WhenChecked"), "checks": st.lists(checks, min_size=1, max_size=1)},
        optional={"bakeSeconds": st.just(60)},
    ),
    st.fixed_dictionaries({"switch": st.just("Overlap"), "overlapSeconds": st.integers(0, 60)}),
    st.fixed_dictionaries({"preview": st.booleans(), "hold": st.booleans()}),
)
"""What a switch may wait for; each is valid by itself."""


def with_web(pods: Object) -> Object:
    [container] = pods["containers"]
    return {**pods, "containers": [{**container, "ports": [*container.get("ports", ()), WEB]}]}


@st.composite
def bluegreens(draw: st.DrawFn, more: st.SearchStrategy[Object] | None = None) -> Object:
    """Valid BlueGreens: the chosen colour has pods, and each the ports that are asked for by name.

    Otherwise where the traffic is depends on what was routed before.
    """
    spec: Object = {"routeTo": draw(st.sampled_from(["Blue", "Green"]))}
    for colour in ("Blue", "Green"):
        if colour == spec["routeTo"] or draw(st.booleans()):
            spec[f"{colour.lower()}Spec"] = draw(pod_specs)
    if draw(st.booleans()):
        spec["promotion"] = draw(st.sampled_from(["Immediate", "WhenAvailable"]))
    if draw(st.booleans()):
        spec["ports"] = draw(port_lists)
        if any(port.get("targetPort") == WEB["name"] for port in spec["ports"]):
            for colour in {"blueSpec", "greenSpec"} & spec.keys():
                spec[colour] = with_web(spec[colour])
    if more is not None:
        spec |= draw(more)
    return {
        "apiVersion": BlueGreen.api.group_version,
        "kind": BlueGreen.api.kind,
        "metadata": {"name": draw(labels), "namespace": "default", "uid": "owner-uid"},
        "spec": spec,
        "status": draw(st.sampled_from([{}, {"routeTo": "Blue"}, {"routeTo": "Grey"}])),
    }


@st.composite
def memcacheds(draw: st.DrawFn) -> Object:
    """Valid Memcacheds, the largest included."""
    counts = st.sampled_from([1, 64, 1000, 1024, LARGEST])
    spec = st.fixed_dictionaries(
        {"size": st.sampled_from([0, 1, 2, 3, LARGEST])},
        optional={
            "image": st.sampled_from(["memcached", "registry.example:5000/memcached:1.6"]),
            "memory": counts.filter(lambda count: count > 1),
            "maxConnections": counts,
        },
    )
    return {
        "apiVersion": Memcached.api.group_version,
        "kind": Memcached.api.kind,
        "metadata": {"name": draw(labels), "namespace": "default", "uid": "owner-uid"},
        "spec": draw(spec),
        "status": draw(st.sampled_from([{}, {"nodes": ["a"], "replicas": 1}])),
    }


@st.composite
def guestbooks(draw: st.DrawFn) -> Object:
    """Valid Guestbooks, of two ConfigMaps between which they change."""
    spec = st.fixed_dictionaries(
        {
            "size": st.sampled_from([1, 2, 10]),
            "configMapName": st.sampled_from(["pages", "others"]),
        },
        optional={"alias": st.sampled_from(["Phone", "Address", "Name"])},
    )
    return {
        "apiVersion": Guestbook.api.group_version,
        "kind": Guestbook.api.kind,
        "metadata": {"name": draw(labels), "namespace": "default", "uid": "owner-uid"},
        "spec": draw(spec),
        "status": draw(st.sampled_from([{}, {"active": "a", "standby": ["b"]}])),
    }


@st.composite
def cronjobs(draw: st.DrawFn) -> Object:
    """Valid CronJobs, of schedules that are due, stalled, far off or no schedules at all."""
    pod = {**draw(pod_specs), "restartPolicy": "Never"}
    marks = st.dictionaries(st.sampled_from(["a", "b"]), st.sampled_from(["1", "2"]), max_size=2)
    named = st.fixed_dictionaries({}, optional={"labels": marks, "annotations": marks})
    counts = st.integers(0, 2)
    spec = st.fixed_dictionaries(
        {
            "schedule": st.sampled_from(
                ["0 * * * *", "* * * * *", "@every 7m", "0 0 30 2 *", "junk", "TZ=UTC @hourly"]
            ),
            "jobTemplate": st.fixed_dictionaries(
                {"spec": st.just({"template": {"spec": pod}})}, optional={"metadata": named}
            ),
        },
        optional={
            "startingDeadlineSeconds": st.sampled_from([0, 60, 86_400]),
            "concurrencyPolicy": st.sampled_from(["Allow", "Forbid", "Replace"]),
            "activeLimit": st.integers(1, 2),
            "suspend": st.booleans(),
            **dict.fromkeys(["successfulJobsHistoryLimit", "failedJobsHistoryLimit"], counts),
        },
    )
    return {
        "apiVersion": CronJob.api.group_version,
        "kind": CronJob.api.kind,
        "metadata": {"name": draw(labels), "namespace": "default", "uid": "owner-uid"},
        "spec": draw(spec),
        "status": draw(
            st.sampled_from(
                [
                    {},
                    {"lastScheduleTime": "2026-01-01T11:00:00Z"},
                    {"lastScheduleTime": "9999-01-01T00:00:00Z", "missed": 101},
                ]
            )
        ),
    }


def paths(text: str) -> tuple[tuple[str, ...], ...]:
    """Return paths that are given one after the other, such as `status; status replicas`."""
    return tuple(tuple(path.split()) for path in text.split(";"))


MADE = paths("metadata generation; metadata deletionTimestamp; metadata ownerReferences")
LABELS = paths("metadata labels; metadata labels pod-template-hash")
ROLLED_OUT = paths(
    "status; status replicas; status updatedReplicas; status availableReplicas;"
    " status observedGeneration; status conditions"
)
SUBJECTS = (
    Subject(
        cast("Controller[Resource]", controller.CONTROLLER),
        cronjobs(),
        lambda name: (
            *(f"{name}-{second}" for second in (0, 1_767_265_200, 1_767_268_800, 10**12)),
            f"{name}-by-hand",
            "other",
        ),
        paths(
            f"metadata annotations; metadata annotations {SCHEDULED_AT};"
            " metadata deletionTimestamp; metadata finalizers; metadata uid;"
            " status; status conditions; status startTime; status completionTime"
        ),
        lasting=True,
    ),
    Subject(
        cast("Controller[Resource]", bluegreen.CONTROLLER),
        bluegreens(),
        lambda name: (name, f"{name}blue-deployment", f"{name}green-deployment", "other"),
        (
            *(*MADE, *LABELS, *ROLLED_OUT),
            *paths("spec; spec selector; spec replicas; status containerStatuses"),
            *paths("status initContainerStatuses"),
        ),
    ),
    Subject(
        cast("Controller[Resource]", guestbook.CONTROLLER),
        guestbooks(),
        lambda name: (name, "pages", "others"),
        (
            *(*MADE, *ROLLED_OUT),
            *paths(f"metadata labels; metadata labels {guestbook.NAMED_BY}; spec replicas"),
            *paths("spec template spec volumes; status phase"),
        ),
    ),
    Subject(
        cast("Controller[Resource]", memcached.CONTROLLER),
        memcacheds(),
        lambda name: (name, "other"),
        (
            *(*MADE, *LABELS, *ROLLED_OUT),
            *paths("metadata labels memcached_cr; spec; spec clusterIP; spec selector"),
            *paths("spec selector matchLabels; spec selector matchExpressions; spec replicas"),
            *paths("status phase; status readyReplicas; status containerStatuses"),
        ),
    ),
)

SWITCHING = replace(
    next(subject for subject in SUBJECTS if subject.controller is bluegreen.CONTROLLER),
    resources=bluegreens(switches),
)
"""BlueGreens whose switch waits for something: how they end depends on what was before."""
